// RUN: eyas opt %s --passes hide-constants | filecheck %s

// CHECK-LABEL: func.func @computed_of_constants
func.func @computed_of_constants(%arg0: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],ui8> {
  // CHECK: torch.vtensor.literal
  // CHECK: %[[C:.+]] = arith.constant -56 : i8
  // CHECK: %[[F:.+]] = linalg.fill ins(%[[C]] : i8)
  // CHECK: torch_c.from_builtin_tensor %[[F]] : tensor<3xi8> -> !torch.vtensor<[3],ui8>
  // CHECK: torch.aten.div.Tensor_mode
  %0 = torch.vtensor.literal(dense<[1, 2, 3]> : tensor<3xui8>) : !torch.vtensor<[3],ui8>
  %int200 = torch.constant.int 200
  %none = torch.constant.none
  %int0 = torch.constant.int 0
  %false = torch.constant.bool false
  %str = torch.constant.str "floor"
  %1 = torch.aten.full_like %arg0, %int200, %int0, %none, %none, %false, %none : !torch.vtensor<[3],f32>, !torch.int, !torch.int, !torch.none, !torch.none, !torch.bool, !torch.none -> !torch.vtensor<[3],ui8>
  %2 = torch.aten.div.Tensor_mode %1, %0, %str : !torch.vtensor<[3],ui8>, !torch.vtensor<[3],ui8>, !torch.str -> !torch.vtensor<[3],ui8>
  return %2 : !torch.vtensor<[3],ui8>
}

// What is beside something that is not constant is not computed, and stays.
// CHECK-LABEL: func.func @used_with_an_argument
func.func @used_with_an_argument(%arg0: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> {
  // CHECK: torch.vtensor.literal
  // CHECK-NOT: arith.constant
  %0 = torch.vtensor.literal(dense<[1.0, 2.0, 3.0]> : tensor<3xf32>) : !torch.vtensor<[3],f32>
  %1 = torch.aten.mul.Tensor %arg0, %0 : !torch.vtensor<[3],f32>, !torch.vtensor<[3],f32> -> !torch.vtensor<[3],f32>
  return %1 : !torch.vtensor<[3],f32>
}

// A size that is read from a constant is needed as a number.
// CHECK-LABEL: func.func @read_as_a_number
func.func @read_as_a_number() -> !torch.int {
  // CHECK: torch.vtensor.literal
  // CHECK-NOT: arith.constant
  %0 = torch.vtensor.literal(dense<2> : tensor<si64>) : !torch.vtensor<[],si64>
  %1 = torch.aten.mul.Tensor %0, %0 : !torch.vtensor<[],si64>, !torch.vtensor<[],si64> -> !torch.vtensor<[],si64>
  %2 = torch.aten.Int.Tensor %1 : !torch.vtensor<[],si64> -> !torch.int
  return %2 : !torch.int
}
