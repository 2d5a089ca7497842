// RUN: eyas opt %s --passes propagate-reshapes,canonicalize,cse | filecheck %s

#id2 = affine_map<(a, b) -> (a, b)>
#id3 = affine_map<(a, b, c) -> (a, b, c)>
#id4 = affine_map<(a, b, c, d) -> (a, b, c, d)>
#last = affine_map<(a, b, c) -> (c)>
#keep = affine_map<(a, b, c) -> (a, b, 0)>
#middle = affine_map<(a, b, c) -> (b, c)>

// Bias and residual follow the product in its own shape; the residual's reshape is free.
// CHECK-LABEL: func.func @epilogue
// CHECK: [[P:%.*]] = linalg.matmul
// CHECK-NOT: tensor.expand_shape
// CHECK-DAG: [[R:%.*]] = tensor.collapse_shape %arg3 {{\[\[}}0, 1], [2]]
// CHECK-DAG: [[B:%.*]] = linalg.generic {{.*}}ins([[P]], %arg2 : tensor<8x16xf32>, tensor<16xf32>)
// CHECK: [[S:%.*]] = linalg.generic {{.*}}ins([[B]], [[R]] : tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK: [[E:%.*]] = tensor.expand_shape [[S]] {{\[\[}}0, 1], [2]]
// CHECK: return [[E]]
func.func @epilogue(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<16xf32>, %r: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 4, 16] : tensor<8x16xf32> into tensor<2x4x16xf32>
  %o = tensor.empty() : tensor<2x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#id3, #last, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %b : tensor<2x4x16xf32>, tensor<16xf32>) outs(%o : tensor<2x4x16xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<2x4x16xf32>
  %2 = linalg.generic {indexing_maps = [#id3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %r : tensor<2x4x16xf32>, tensor<2x4x16xf32>) outs(%o : tensor<2x4x16xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<2x4x16xf32>
  return %2 : tensor<2x4x16xf32>
}

// An operand that walks through half of a group cannot follow.
// CHECK-LABEL: func.func @half_of_a_group
// CHECK: [[E:%.*]] = tensor.expand_shape
// CHECK: linalg.generic {{.*}}ins([[E]], %arg2
func.func @half_of_a_group(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>, %b: tensor<4x16xf32>) -> tensor<2x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = tensor.expand_shape %p [[0, 1], [2]] output_shape [2, 4, 16] : tensor<8x16xf32> into tensor<2x4x16xf32>
  %o = tensor.empty() : tensor<2x4x16xf32>
  %1 = linalg.generic {indexing_maps = [#id3, #middle, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %b : tensor<2x4x16xf32>, tensor<4x16xf32>) outs(%o : tensor<2x4x16xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<2x4x16xf32>
  return %1 : tensor<2x4x16xf32>
}

// What is scaled by its own sum stays in the shape of the sum.
// CHECK-LABEL: func.func @norm
// CHECK: [[E:%.*]] = tensor.expand_shape
// CHECK: [[S:%.*]] = linalg.generic {{.*}}"reduction"{{.*}}ins([[E]]
// CHECK: linalg.generic {{.*}}ins([[E]], [[S]] :
func.func @norm(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>) -> tensor<1x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = tensor.expand_shape %p [[0, 1], [2]] output_shape [1, 8, 16] : tensor<8x16xf32> into tensor<1x8x16xf32>
  %o = tensor.empty() : tensor<1x8x16xf32>
  %q = tensor.empty() : tensor<1x8x1xf32>
  %g = linalg.fill ins(%zero : f32) outs(%q : tensor<1x8x1xf32>) -> tensor<1x8x1xf32>
  %1 = linalg.generic {indexing_maps = [#id3, #keep], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0 : tensor<1x8x16xf32>) outs(%g : tensor<1x8x1xf32>) {
  ^bb0(%i: f32, %j: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x8x1xf32>
  %2 = linalg.generic {indexing_maps = [#id3, #keep, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %1 : tensor<1x8x16xf32>, tensor<1x8x1xf32>) outs(%o : tensor<1x8x16xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %s = arith.subf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16xf32>
  return %2 : tensor<1x8x16xf32>
}

// A reduction makes the unit dimension that its readers want.
// CHECK-LABEL: func.func @keep_unit_dims
// CHECK-NOT: tensor.expand_shape
// CHECK: linalg.generic {{.*}}"reduction"{{.*}}outs({{.*}} : tensor<1x8x1xf32>)
func.func @keep_unit_dims(%x: tensor<1x8x16xf32>) -> tensor<1x8x1xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x8xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<1x8xf32>) -> tensor<1x8xf32>
  %0 = linalg.generic {indexing_maps = [#id3, affine_map<(a, b, c) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<1x8x16xf32>) outs(%f : tensor<1x8xf32>) {
  ^bb0(%i: f32, %j: f32):
    %s = arith.maximumf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x8xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [1, 8, 1] : tensor<1x8xf32> into tensor<1x8x1xf32>
  return %1 : tensor<1x8x1xf32>
}

// A source with a unit dimension of its own is read in its own rank.
// CHECK-LABEL: func.func @unit_source
// CHECK: [[P:%.*]] = linalg.batch_matmul
// CHECK: [[G:%.*]] = linalg.generic {{.*}}ins([[P]] : tensor<1x8x16xf32>) outs({{.*}} : tensor<1x8x16xf32>)
// CHECK: tensor.expand_shape [[G]]
func.func @unit_source(%x: tensor<1x8x4xf32>, %w: tensor<1x4x16xf32>) -> tensor<1x1x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
  %p = linalg.batch_matmul ins(%x, %w : tensor<1x8x4xf32>, tensor<1x4x16xf32>) outs(%f : tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
  %0 = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [1, 1, 8, 16] : tensor<1x8x16xf32> into tensor<1x1x8x16xf32>
  %o = tensor.empty() : tensor<1x1x8x16xf32>
  %1 = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<1x1x8x16xf32>) outs(%o : tensor<1x1x8x16xf32>) {
  ^bb0(%i: f32, %k: f32):
    %s = math.tanh %i : f32
    linalg.yield %s : f32
  } -> tensor<1x1x8x16xf32>
  return %1 : tensor<1x1x8x16xf32>
}

// A mean that lost its unit dimension is read with it, so that nothing stands between it and the norm.
// CHECK-LABEL: func.func @read_with_unit_dims
// CHECK-NOT: tensor.collapse_shape
// CHECK: [[M:%.*]] = linalg.generic {{.*}}"reduction"
// CHECK: linalg.generic {{.*}}ins(%arg0, [[M]] : tensor<1x8x16xf32>, tensor<1x8x1xf32>)
func.func @read_with_unit_dims(%x: tensor<1x8x16xf32>) -> tensor<1x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x1xf32>) -> tensor<1x8x1xf32>
  %0 = linalg.generic {indexing_maps = [#id3, #keep], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<1x8x16xf32>) outs(%f : tensor<1x8x1xf32>) {
  ^bb0(%i: f32, %j: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x8x1xf32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<1x8x1xf32> into tensor<1x8xf32>
  %o = tensor.empty() : tensor<1x8x16xf32>
  %2 = linalg.generic {indexing_maps = [#id3, affine_map<(a, b, c) -> (a, b)>, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %1 : tensor<1x8x16xf32>, tensor<1x8xf32>) outs(%o : tensor<1x8x16xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %s = arith.subf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16xf32>
  return %2 : tensor<1x8x16xf32>
}

// A repeated row is read where it is. A sum along what is repeated keeps the copy: it alone says how often.
// CHECK-LABEL: func.func @repeated
// CHECK: [[C:%.*]] = linalg.generic {{.*}}ins(%arg1 : tensor<8xf32>) outs({{.*}} : tensor<2x8x16xf32>)
// CHECK: linalg.generic {{.*}}ins(%arg0, %arg1 : tensor<2x8x16xf32>, tensor<8xf32>)
// CHECK: linalg.generic {{.*}}"reduction"{{.*}}ins([[C]] :
func.func @repeated(%x: tensor<2x8x16xf32>, %r: tensor<8xf32>) -> (tensor<2x8x16xf32>, tensor<2x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x16xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (b)>, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%r : tensor<8xf32>) outs(%e : tensor<2x8x16xf32>) {
  ^bb0(%i: f32, %k: f32):
    linalg.yield %i : f32
  } -> tensor<2x8x16xf32>
  %0 = linalg.generic {indexing_maps = [#id3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %c : tensor<2x8x16xf32>, tensor<2x8x16xf32>) outs(%e : tensor<2x8x16xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %s = arith.mulf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<2x8x16xf32>
  %f = tensor.empty() : tensor<2x8xf32>
  %g = linalg.fill ins(%zero : f32) outs(%f : tensor<2x8xf32>) -> tensor<2x8xf32>
  %1 = linalg.generic {indexing_maps = [#id3, affine_map<(a, b, c) -> (a, b)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%c : tensor<2x8x16xf32>) outs(%g : tensor<2x8xf32>) {
  ^bb0(%i: f32, %j: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<2x8xf32>
  return %0, %1 : tensor<2x8x16xf32>, tensor<2x8xf32>
}

// All ops of a chain that forks and joins (the tanh of GELU) follow the product.
// CHECK-LABEL: func.func @fork_and_join
// CHECK: linalg.matmul
// CHECK-NOT: tensor<1x8x16xf32>)
// CHECK: [[R:%.*]] = linalg.generic {{.*}}ins({{.*}} : tensor<8x16xf32>, tensor<8x16xf32>) outs({{.*}} : tensor<8x16xf32>)
// CHECK: tensor.expand_shape [[R]]
func.func @fork_and_join(%x: tensor<8x4xf32>, %w: tensor<4x16xf32>) -> tensor<1x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %small = arith.constant 0.044 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %0 = tensor.expand_shape %p [[0, 1], [2]] output_shape [1, 8, 16] : tensor<8x16xf32> into tensor<1x8x16xf32>
  %o = tensor.empty() : tensor<1x8x16xf32>
  %1 = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0 : tensor<1x8x16xf32>) outs(%o : tensor<1x8x16xf32>) {
  ^bb0(%i: f32, %k: f32):
    %s = arith.mulf %i, %i : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16xf32>
  %2 = linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1 : tensor<1x8x16xf32>) outs(%o : tensor<1x8x16xf32>) {
  ^bb0(%i: f32, %k: f32):
    %s = arith.mulf %i, %small : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16xf32>
  %3 = linalg.generic {indexing_maps = [#id3, #id3, #id3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%0, %2 : tensor<1x8x16xf32>, tensor<1x8x16xf32>) outs(%o : tensor<1x8x16xf32>) {
  ^bb0(%i: f32, %j: f32, %k: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<1x8x16xf32>
  return %3 : tensor<1x8x16xf32>
}
