// RUN: eyas opt %s --passes verify-input-contract | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %w = "flow.parameter"() {key = "w"} : () -> tensor<4x4xf32>
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%d) : tensor<?x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: linalg.matmul
  %m = linalg.matmul ins(%x, %w : tensor<?x4xf32>, tensor<4x4xf32>) outs(%f : tensor<?x4xf32>) -> tensor<?x4xf32>
  return %m : tensor<?x4xf32>
}
