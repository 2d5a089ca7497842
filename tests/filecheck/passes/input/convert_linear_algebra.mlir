// RUN: eyas opt %s --passes convert-linear-algebra | filecheck %s

// A matrix of a batch after the other, and in it a column after the other.
// CHECK-LABEL: func.func @cholesky
// CHECK: %[[A:.+]] = torch_c.to_builtin_tensor %arg0 : !torch.vtensor<[2,3,3],f32> -> tensor<2x3x3xf32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: math.sqrt
// CHECK: torch_c.from_builtin_tensor %{{.+}} : tensor<2x3x3xf32> -> !torch.vtensor<[2,3,3],f32>
// CHECK: torch_c.from_builtin_tensor %{{.+}} : tensor<2xi32> -> !torch.vtensor<[2],si32>
// CHECK-NOT: torch.operator
func.func @cholesky(%arg0: !torch.vtensor<[2,3,3],f32>) -> (!torch.vtensor<[2,3,3],f32>, !torch.vtensor<[2],si32>) {
  %0:2 = torch.operator "torch.eyas.cholesky"(%arg0) : (!torch.vtensor<[2,3,3],f32>) -> (!torch.vtensor<[2,3,3],f32>, !torch.vtensor<[2],si32>)
  return %0#0, %0#1 : !torch.vtensor<[2,3,3],f32>, !torch.vtensor<[2],si32>
}

// What is known of the matrix is not asked at run time.
// CHECK-LABEL: func.func @unit
// CHECK: scf.for
// CHECK-NOT: arith.divf
// CHECK: return
func.func @unit(%arg0: !torch.vtensor<[1,3,3],f32>, %arg1: !torch.vtensor<[1,3,2],f32>) -> !torch.vtensor<[1,3,2],f32> {
  %true = torch.constant.bool true
  %0 = torch.operator "torch.eyas.solve_triangular"(%arg0, %arg1, %true, %true) : (!torch.vtensor<[1,3,3],f32>, !torch.vtensor<[1,3,2],f32>, !torch.bool, !torch.bool) -> !torch.vtensor<[1,3,2],f32>
  return %0 : !torch.vtensor<[1,3,2],f32>
}
