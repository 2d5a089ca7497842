// RUN: eyas opt %s --passes convert-recurrences | filecheck %s

// One direction that goes from the last step to the first: a product, and one op.
// CHECK-LABEL: func.func @rnn
func.func @rnn(%x: !torch.vtensor<[?,2,8],f32>, %r: !torch.vtensor<[8,8],f32>, %h: !torch.vtensor<[2,8],f32>) -> (!torch.vtensor<[?,2,8],f32>, !torch.vtensor<[2,8],f32>) {
  // CHECK: %[[STEPS:.+]] = tensor.dim
  // CHECK: %[[LAST:.+]] = arith.subi %[[STEPS]]
  // CHECK: scf.for %[[T:.+]] = %{{.+}} to %[[STEPS]] step %{{.+}} iter_args(%[[H:.+]] = %{{.+}}, %[[YS:.+]] = %{{.+}}) -> (tensor<2x8xf32>, tensor<?x2x8xf32>)
  // CHECK: %[[AT:.+]] = arith.subi %[[LAST]], %[[T]]
  // CHECK: %[[X:.+]] = tensor.extract_slice %{{.+}}[%[[AT]], 0, 0, 0] [1, 2, 1, 8]
  // CHECK: %[[P:.+]] = linalg.generic {{.+}} ins(%[[H]], %{{.+}} : tensor<2x8xf32>, tensor<8x1x8xf32>)
  // CHECK: %[[NEW:.+]] = linalg.generic {{.+}} ins(%[[X]], %[[P]], %[[H]] : tensor<2x1x8xf32>, tensor<2x1x8xf32>, tensor<2x8xf32>)
  // CHECK: arith.maximumf
  // CHECK: arith.minimumf
  // CHECK: math.tanh
  // CHECK: %[[ALL:.+]] = tensor.insert_slice %[[NEW]] into %[[YS]][%[[AT]], 0, 0]
  // CHECK: scf.yield %[[NEW]], %[[ALL]]
  // CHECK: flow.keeps_shape
  %0:2 = torch.operator "eyas.recurrence"(%x, %r, %h) {torch.onnx.cell = "{\"kind\": \"rnn\", \"gates\": \"h\", \"activations\": [[\"tanh\", 0.0, 0.0]], \"operands\": [], \"reverse\": true, \"clip\": 3.0}"} : (!torch.vtensor<[?,2,8],f32>, !torch.vtensor<[8,8],f32>, !torch.vtensor<[2,8],f32>) -> (!torch.vtensor<[?,2,8],f32>, !torch.vtensor<[2,8],f32>)
  return %0#0, %0#1 : !torch.vtensor<[?,2,8],f32>, !torch.vtensor<[2,8],f32>
}

// Rows with lengths: the state of one that has ended stays, and it gives zeros. Halves are summed in f32.
// CHECK-LABEL: func.func @lstm
func.func @lstm(%x: !torch.vtensor<[5,2,32],f16>, %r: !torch.vtensor<[8,32],f16>, %h: !torch.vtensor<[2,8],f16>, %c: !torch.vtensor<[2,8],f16>, %n: !torch.vtensor<[2],si64>) -> !torch.vtensor<[5,2,8],f16> {
  // CHECK: scf.for
  // CHECK: linalg.generic {{.+}} outs(%{{.+}} : tensor<2x4x8xf32>)
  // CHECK: %[[MADE:.+]]:3 = linalg.generic
  // CHECK-COUNT-3: math.exp
  // CHECK: %[[ON:.+]] = arith.cmpi slt
  // CHECK-COUNT-3: arith.select %[[ON]]
  // CHECK-COUNT-3: arith.truncf
  // CHECK: scf.yield %[[MADE]]#1, %[[MADE]]#2
  %0:3 = torch.operator "eyas.recurrence"(%x, %r, %h, %c, %n) {torch.onnx.cell = "{\"kind\": \"lstm\", \"gates\": \"iofc\", \"activations\": [[\"sigmoid\", 0.0, 0.0], [\"tanh\", 0.0, 0.0], [\"tanh\", 0.0, 0.0]], \"operands\": [\"lengths\"]}"} : (!torch.vtensor<[5,2,32],f16>, !torch.vtensor<[8,32],f16>, !torch.vtensor<[2,8],f16>, !torch.vtensor<[2,8],f16>, !torch.vtensor<[2],si64>) -> (!torch.vtensor<[5,2,8],f16>, !torch.vtensor<[2,8],f16>, !torch.vtensor<[2,8],f16>)
  return %0#0 : !torch.vtensor<[5,2,8],f16>
}
