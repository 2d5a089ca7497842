// RUN: eyas opt %s --passes convert-rows | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%ys: !torch.vtensor<[9,?,4],f32>, %i: !torch.vtensor<[],si64>, %y: !torch.vtensor<[1,?,4],f32>) -> !torch.vtensor<[9,?,4],f32> {
  // CHECK: %[[N:.+]] = tensor.extract %{{.+}}[] : tensor<i64>
  // CHECK: %[[AT:.+]] = arith.index_cast %[[N]]
  // CHECK: tensor.insert_slice %[[Y:.+]] into %{{.+}}[%[[AT]], 0, 0] [1, %{{.+}}, 4] [1, 1, 1] : tensor<1x?x4xf32> into tensor<9x?x4xf32>
  // CHECK-NOT: torch.operator
  %r = torch.operator "eyas.setrow"(%ys, %i, %y) : (!torch.vtensor<[9,?,4],f32>, !torch.vtensor<[],si64>, !torch.vtensor<[1,?,4],f32>) -> !torch.vtensor<[9,?,4],f32>
  return %r : !torch.vtensor<[9,?,4],f32>
}
