// RUN: eyas opt %s --passes form-dispatches,cse | filecheck %s

#id = affine_map<(a, b) -> (a, b)>
#tr = affine_map<(a, b) -> (b, a)>

// The fill and the rectifier join the product: one region, one result.
// CHECK-LABEL: func.func @fused
func.func @fused(%x: tensor<8x4xf32>, %w: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  // CHECK: scf.execute_region -> tensor<8x8xf32>
  // CHECK: linalg.fill
  // CHECK: linalg.matmul
  // CHECK: linalg.generic
  // CHECK: scf.yield
  // CHECK-NOT: scf.execute_region
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x8xf32>) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  // CHECK: return
  return %1 : tensor<8x8xf32>
}

// An op that reads the product in another order starts a region of its own, and says why.
// CHECK-LABEL: func.func @apart
func.func @apart(%x: tensor<8x4xf32>, %w: tensor<4x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  // CHECK: scf.execute_region
  // CHECK: linalg.matmul
  // CHECK: scf.execute_region
  // CHECK: flow.not_fused = "it reads a contraction's result in another order"
  %0 = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
