// RUN: eyas opt %s --passes form-dispatches{fuse=false} | filecheck %s

#id = affine_map<(a, b) -> (a, b)>

// Without fusion the rectifier does not join the product; the fill is still copied to where it is used.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  // CHECK: scf.execute_region -> tensor<8x8xf32>
  // CHECK: linalg.fill
  // CHECK: linalg.matmul
  // CHECK: scf.yield
  // CHECK: scf.execute_region -> tensor<8x8xf32>
  // CHECK: linalg.generic
  // CHECK: scf.yield
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x8xf32>) outs(%init : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
