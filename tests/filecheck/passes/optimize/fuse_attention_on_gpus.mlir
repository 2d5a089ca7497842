// RUN: eyas opt %s --passes 'fuse-attention{target=vulkan:hopper}' | filecheck %s

#id = affine_map<(a, b, c) -> (a, b, c)>
#keep = affine_map<(a, b, c) -> (a, b, 0)>

// Rows are taken in pieces there: keys are read as they lie, and an operand that nobody reads says how deep heads are.
// CHECK-DAG: [[QUERIES:#.*]] = affine_map<(d0, d1, d2, d3) -> (d1, d0 * 8 + d3)>
// CHECK-DAG: [[KEYS:#.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d0 * 8 + d3)>
// CHECK-DAG: [[DEPTH:#.*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-LABEL: func.func @softmax
// CHECK: [[SAYS:%.*]] = tensor.empty() : tensor<8xf32>
// CHECK: linalg.generic {indexing_maps = {{.}}[[QUERIES]], [[KEYS]], [[DEPTH]], {{.*}}ins(%arg0, %arg1, [[SAYS]] {{.*}}flow.group = 0
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}%arg2 {{.*}}flow.group = 0
// CHECK: arith.divf
func.func @softmax(%q: tensor<16x32xf32>, %k: tensor<24x32xf32>, %v: tensor<24x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %qe = tensor.expand_shape %q [[0], [1, 2]] output_shape [16, 4, 8] : tensor<16x32xf32> into tensor<16x4x8xf32>
  %ke = tensor.expand_shape %k [[0], [1, 2]] output_shape [24, 4, 8] : tensor<24x32xf32> into tensor<24x4x8xf32>
  %ve = tensor.expand_shape %v [[0], [1, 2]] output_shape [24, 4, 8] : tensor<24x32xf32> into tensor<24x4x8xf32>
  %e0 = tensor.empty() : tensor<4x16x8xf32>
  %e1 = tensor.empty() : tensor<4x8x24xf32>
  %e2 = tensor.empty() : tensor<4x24x8xf32>
  %qt = linalg.transpose ins(%qe : tensor<16x4x8xf32>) outs(%e0 : tensor<4x16x8xf32>) permutation = [1, 0, 2]
  %kt = linalg.transpose ins(%ke : tensor<24x4x8xf32>) outs(%e1 : tensor<4x8x24xf32>) permutation = [1, 2, 0]
  %vt = linalg.transpose ins(%ve : tensor<24x4x8xf32>) outs(%e2 : tensor<4x24x8xf32>) permutation = [1, 0, 2]
  %e3 = tensor.empty() : tensor<4x16x24xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
  %s = linalg.batch_matmul ins(%qt, %kt : tensor<4x16x8xf32>, tensor<4x8x24xf32>) outs(%f3 : tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
  %e4 = tensor.empty() : tensor<4x16x1xf32>
  %f4 = linalg.fill ins(%low : f32) outs(%e4 : tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
  %m = linalg.generic {indexing_maps = [#id, #keep], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<4x16x24xf32>) outs(%f4 : tensor<4x16x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.maximumf %i, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x16x1xf32>
  %x = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %m : tensor<4x16x24xf32>, tensor<4x16x1xf32>) outs(%e3 : tensor<4x16x24xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %d = arith.subf %i, %j : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x16x24xf32>
  %f5 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
  %sum = linalg.generic {indexing_maps = [#id, #keep], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<4x16x24xf32>) outs(%f5 : tensor<4x16x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %i, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x16x1xf32>
  %p = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %sum : tensor<4x16x24xf32>, tensor<4x16x1xf32>) outs(%e3 : tensor<4x16x24xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.divf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<4x16x24xf32>
  %f6 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x16x8xf32>) -> tensor<4x16x8xf32>
  %o = linalg.batch_matmul ins(%p, %vt : tensor<4x16x24xf32>, tensor<4x24x8xf32>) outs(%f6 : tensor<4x16x8xf32>) -> tensor<4x16x8xf32>
  %e7 = tensor.empty() : tensor<16x4x8xf32>
  %t = linalg.transpose ins(%o : tensor<4x16x8xf32>) outs(%e7 : tensor<16x4x8xf32>) permutation = [1, 0, 2]
  %c = tensor.collapse_shape %t [[0], [1, 2]] : tensor<16x4x8xf32> into tensor<16x32xf32>
  return %c : tensor<16x32xf32>
}

// One query is worth it, too.
// CHECK-LABEL: func.func @one_query
// CHECK-NOT: linalg.batch_matmul
// CHECK: flow.group = 1
func.func @one_query(%q: tensor<1x32xf32>, %k: tensor<24x32xf32>, %v: tensor<24x32xf32>) -> tensor<1x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %qe = tensor.expand_shape %q [[0], [1, 2]] output_shape [1, 4, 8] : tensor<1x32xf32> into tensor<1x4x8xf32>
  %ke = tensor.expand_shape %k [[0], [1, 2]] output_shape [24, 4, 8] : tensor<24x32xf32> into tensor<24x4x8xf32>
  %ve = tensor.expand_shape %v [[0], [1, 2]] output_shape [24, 4, 8] : tensor<24x32xf32> into tensor<24x4x8xf32>
  %e0 = tensor.empty() : tensor<4x1x8xf32>
  %e1 = tensor.empty() : tensor<4x8x24xf32>
  %e2 = tensor.empty() : tensor<4x24x8xf32>
  %qt = linalg.transpose ins(%qe : tensor<1x4x8xf32>) outs(%e0 : tensor<4x1x8xf32>) permutation = [1, 0, 2]
  %kt = linalg.transpose ins(%ke : tensor<24x4x8xf32>) outs(%e1 : tensor<4x8x24xf32>) permutation = [1, 2, 0]
  %vt = linalg.transpose ins(%ve : tensor<24x4x8xf32>) outs(%e2 : tensor<4x24x8xf32>) permutation = [1, 0, 2]
  %e3 = tensor.empty() : tensor<4x1x24xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<4x1x24xf32>) -> tensor<4x1x24xf32>
  %s = linalg.batch_matmul ins(%qt, %kt : tensor<4x1x8xf32>, tensor<4x8x24xf32>) outs(%f3 : tensor<4x1x24xf32>) -> tensor<4x1x24xf32>
  %e4 = tensor.empty() : tensor<4x1x1xf32>
  %f4 = linalg.fill ins(%low : f32) outs(%e4 : tensor<4x1x1xf32>) -> tensor<4x1x1xf32>
  %m = linalg.generic {indexing_maps = [#id, #keep], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<4x1x24xf32>) outs(%f4 : tensor<4x1x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.maximumf %i, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x1x1xf32>
  %x = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %m : tensor<4x1x24xf32>, tensor<4x1x1xf32>) outs(%e3 : tensor<4x1x24xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %d = arith.subf %i, %j : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x1x24xf32>
  %f5 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4x1x1xf32>) -> tensor<4x1x1xf32>
  %sum = linalg.generic {indexing_maps = [#id, #keep], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<4x1x24xf32>) outs(%f5 : tensor<4x1x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %i, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x1x1xf32>
  %p = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %sum : tensor<4x1x24xf32>, tensor<4x1x1xf32>) outs(%e3 : tensor<4x1x24xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.divf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<4x1x24xf32>
  %f6 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
  %o = linalg.batch_matmul ins(%p, %vt : tensor<4x1x24xf32>, tensor<4x24x8xf32>) outs(%f6 : tensor<4x1x8xf32>) -> tensor<4x1x8xf32>
  %e7 = tensor.empty() : tensor<1x4x8xf32>
  %t = linalg.transpose ins(%o : tensor<4x1x8xf32>) outs(%e7 : tensor<1x4x8xf32>) permutation = [1, 0, 2]
  %c = tensor.collapse_shape %t [[0], [1, 2]] : tensor<1x4x8xf32> into tensor<1x32xf32>
  return %c : tensor<1x32xf32>
}

// With another factor behind the maximum, rows cannot be taken in pieces.
// CHECK-LABEL: func.func @divided_behind_the_maximum
// CHECK: linalg.batch_matmul
// CHECK-NOT: flow.group
// CHECK: linalg.batch_matmul
func.func @divided_behind_the_maximum(%q: tensor<16x32xf32>, %k: tensor<24x32xf32>, %v: tensor<24x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %eight = arith.constant 8.0 : f32
  %qe = tensor.expand_shape %q [[0], [1, 2]] output_shape [16, 4, 8] : tensor<16x32xf32> into tensor<16x4x8xf32>
  %ke = tensor.expand_shape %k [[0], [1, 2]] output_shape [24, 4, 8] : tensor<24x32xf32> into tensor<24x4x8xf32>
  %ve = tensor.expand_shape %v [[0], [1, 2]] output_shape [24, 4, 8] : tensor<24x32xf32> into tensor<24x4x8xf32>
  %e0 = tensor.empty() : tensor<4x16x8xf32>
  %e1 = tensor.empty() : tensor<4x8x24xf32>
  %e2 = tensor.empty() : tensor<4x24x8xf32>
  %qt = linalg.transpose ins(%qe : tensor<16x4x8xf32>) outs(%e0 : tensor<4x16x8xf32>) permutation = [1, 0, 2]
  %kt = linalg.transpose ins(%ke : tensor<24x4x8xf32>) outs(%e1 : tensor<4x8x24xf32>) permutation = [1, 2, 0]
  %vt = linalg.transpose ins(%ve : tensor<24x4x8xf32>) outs(%e2 : tensor<4x24x8xf32>) permutation = [1, 0, 2]
  %e3 = tensor.empty() : tensor<4x16x24xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
  %s = linalg.batch_matmul ins(%qt, %kt : tensor<4x16x8xf32>, tensor<4x8x24xf32>) outs(%f3 : tensor<4x16x24xf32>) -> tensor<4x16x24xf32>
  %e4 = tensor.empty() : tensor<4x16x1xf32>
  %f4 = linalg.fill ins(%low : f32) outs(%e4 : tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
  %m = linalg.generic {indexing_maps = [#id, #keep], iterator_types = ["parallel", "parallel", "reduction"]} ins(%s : tensor<4x16x24xf32>) outs(%f4 : tensor<4x16x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.maximumf %i, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x16x1xf32>
  %x = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %m : tensor<4x16x24xf32>, tensor<4x16x1xf32>) outs(%e3 : tensor<4x16x24xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %d = arith.subf %i, %j : f32
    %h = arith.divf %d, %eight : f32
    %r = math.exp %h : f32
    linalg.yield %r : f32
  } -> tensor<4x16x24xf32>
  %f5 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<4x16x1xf32>) -> tensor<4x16x1xf32>
  %sum = linalg.generic {indexing_maps = [#id, #keep], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<4x16x24xf32>) outs(%f5 : tensor<4x16x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %i, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x16x1xf32>
  %p = linalg.generic {indexing_maps = [#id, #keep, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %sum : tensor<4x16x24xf32>, tensor<4x16x1xf32>) outs(%e3 : tensor<4x16x24xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.divf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<4x16x24xf32>
  %f6 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<4x16x8xf32>) -> tensor<4x16x8xf32>
  %o = linalg.batch_matmul ins(%p, %vt : tensor<4x16x24xf32>, tensor<4x24x8xf32>) outs(%f6 : tensor<4x16x8xf32>) -> tensor<4x16x8xf32>
  %e7 = tensor.empty() : tensor<16x4x8xf32>
  %t = linalg.transpose ins(%o : tensor<4x16x8xf32>) outs(%e7 : tensor<16x4x8xf32>) permutation = [1, 0, 2]
  %c = tensor.collapse_shape %t [[0], [1, 2]] : tensor<16x4x8xf32> into tensor<16x32xf32>
  return %c : tensor<16x32xf32>
}
