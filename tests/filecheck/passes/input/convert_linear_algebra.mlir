// RUN: eyas opt %s --passes convert-linear-algebra | filecheck %s

// A root for each column, of matrices one after the other; and for each the minor that is not positive.
// CHECK-LABEL: func.func @cholesky
func.func @cholesky(%a: !torch.vtensor<[2,4,4],f32>) -> (!torch.vtensor<[2,4,4],f32>, !torch.vtensor<[2],si32>) {
  // CHECK: torch_c.to_builtin_tensor
  // CHECK: scf.for
  // CHECK: tensor.extract
  // CHECK: math.sqrt
  // CHECK: tensor.insert
  // CHECK: torch_c.from_builtin_tensor %{{.+}} : tensor<2x4x4xf32> -> !torch.vtensor<[2,4,4],f32>
  // CHECK: torch_c.from_builtin_tensor %{{.+}} : tensor<2xi32> -> !torch.vtensor<[2],si32>
  // CHECK-NOT: torch.operator
  %0:2 = torch.operator "torch.eyas.cholesky"(%a) : (!torch.vtensor<[2,4,4],f32>) -> (!torch.vtensor<[2,4,4],f32>, !torch.vtensor<[2],si32>)
  return %0#0, %0#1 : !torch.vtensor<[2,4,4],f32>, !torch.vtensor<[2],si32>
}

// Rows are exchanged, so that the largest element divides; the code is the same whatever the size is.
// CHECK-LABEL: func.func @lu
func.func @lu(%a: !torch.vtensor<[1,?,?],f64>) -> !torch.vtensor<[1,?,?],f64> {
  // CHECK: tensor.dim
  // CHECK: scf.for
  // CHECK: math.absf
  // CHECK: arith.divf
  // CHECK-NOT: torch.operator
  %0:3 = torch.operator "torch.eyas.lu"(%a) : (!torch.vtensor<[1,?,?],f64>) -> (!torch.vtensor<[1,?,?],f64>, !torch.vtensor<[1,?],si32>, !torch.vtensor<[1],si32>)
  return %0#0 : !torch.vtensor<[1,?,?],f64>
}
