// RUN: eyas opt %s --passes convert-checks | filecheck %s

// CHECK-LABEL: func.func @holds
func.func @holds(%arg0: !torch.vtensor<[],i1>) {
  // CHECK: %[[T:.+]] = torch_c.to_builtin_tensor %arg0 : !torch.vtensor<[],i1> -> tensor<i1>
  // CHECK: %[[V:.+]] = tensor.extract %[[T]][] : tensor<i1>
  // CHECK: cf.assert %[[V]], "the first" {flow.keep}
  // CHECK-NOT: torch.operator
  torch.operator "eyas.check"(%arg0) {torch.onnx.wanted = 1 : si64, torch.onnx.message = "the first"} : (!torch.vtensor<[],i1>) -> ()
  return
}

// CHECK-LABEL: func.func @does_not_hold
func.func @does_not_hold(%arg0: !torch.vtensor<[1],i1>) {
  // CHECK: %[[V:.+]] = tensor.extract %{{.+}}[%c0] : tensor<1xi1>
  // CHECK: %[[N:.+]] = arith.xori %[[V]], %true
  // CHECK: cf.assert %[[N]], "the other" {flow.keep}
  torch.operator "eyas.check"(%arg0) {torch.onnx.wanted = 0 : si64, torch.onnx.message = "the other"} : (!torch.vtensor<[1],i1>) -> ()
  return
}
