// RUN: eyas opt %s --passes 'lower-precision,canonicalize,cse' | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0, 0)>

// Factors are rounded where they are made, before they are moved; what passes by a product is read as it is kept.
// CHECK-LABEL: func.func @residual
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: %[[W:.+]] = linalg.transpose ins({{.*}} : tensor<16x16xf16>)
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: %[[X:.+]] = linalg.generic {{.*}} outs({{.*}} : tensor<8x16xf16>)
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: linalg.matmul ins(%[[X]], %[[W]] : tensor<8x16xf16>, tensor<16x16xf16>) outs({{.*}} : tensor<8x16xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], {{.*}} : tensor<8x16xf16>, tensor<8x16xf32>)
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: return {{.*}} : tensor<8x16xf32>
func.func @residual(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %et = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %w = "flow.parameter"() {key = "w"} : () -> tensor<16x16xf32>
  %wt = linalg.transpose ins(%w : tensor<16x16xf32>) outs(%et : tensor<16x16xf32>) permutation = [1, 0]
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.maximumf %i, %zero : f32
    linalg.yield %r : f32
  } -> tensor<8x16xf32>
  %m = linalg.matmul ins(%a, %wt : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %m : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<8x16xf32>
  return %s : tensor<8x16xf32>
}

// Statistics of rows are those of f32.
// CHECK-LABEL: func.func @rows
// CHECK-NOT: f16
func.func @rows(%x: tensor<8x16xf32>) -> tensor<8x1xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x1xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x1xf32>) -> tensor<8x1xf32>
  %s = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x16xf32>) outs(%f : tensor<8x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %i, %o : f32
    linalg.yield %r : f32
  } -> tensor<8x1xf32>
  return %s : tensor<8x1xf32>
}

// What hides scores is used beside a product and stays; as a factor it is the lowest f16, and no infinity.
// CHECK-LABEL: func.func @mask
// CHECK: arith.mulf {{.*}} : f32
// CHECK: } -> tensor<8x8xf32>
// CHECK: arith.maximumf {{.*}} : f32
// CHECK: arith.minimumf {{.*}} : f32
// CHECK: arith.truncf
// CHECK: linalg.generic {{.*}} ins({{.*}}, {{.*}} : tensor<8x8xf32>, tensor<8x8xf32>) outs
func.func @mask(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant -3.40282347E+38 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.mulf %i, %lowest : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %m = linalg.matmul ins(%b, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = linalg.matmul ins(%y, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%m : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%b, %n : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}
