// RUN: eyas opt %s --passes convert-random | filecheck %s

// The state is the last argument and result; the key of each op comes from it and the op's place.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[STATE:arg1]]: tensor<2xi64>) -> (!torch.vtensor<[?,4],f32>, tensor<2xi64>) attributes {flow.draws}
func.func @main(%arg0: !torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?,4],f32> {
  // CHECK: %[[SEED:.+]] = tensor.extract_slice %[[STATE]][0] [1] [1]
  // CHECK: %[[CALLS:.+]] = tensor.extract_slice %[[STATE]][1] [1] [1]
  // CHECK: %[[KEYS:.+]] = linalg.generic {{.*}} ins(%[[SEED]], %[[CALLS]], %{{.+}} :
  // CHECK: %[[KEY:.+]] = tensor.extract_slice %[[KEYS]][0, 0] [1, 1] [1, 1]
  // CHECK: tensor.empty(%{{.+}}) : tensor<?x4xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[KEY]],
  // CHECK: linalg.index 0
  // CHECK: arith.xori
  // CHECK: math.log
  // CHECK: math.cos
  // CHECK: %[[NEXT:.+]] = linalg.generic {{.*}} ins(%[[STATE]],
  // CHECK: return %{{.+}}, %[[NEXT]]
  %0 = torch.operator "eyas.random"(%arg0) {torch.onnx.distribution = "normal"} : (!torch.vtensor<[?,4],f32>) -> !torch.vtensor<[?,4],f32>
  return %0 : !torch.vtensor<[?,4],f32>
}
