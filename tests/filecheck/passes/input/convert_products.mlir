// RUN: eyas opt %s --passes convert-products | filecheck %s

// CHECK: #[[IN:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[OUT:.+]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @floats
func.func @floats(%arg0: !torch.vtensor<[4,?],f32>) -> !torch.vtensor<[?],f32> {
  // CHECK: %[[IN_TENSOR:.+]] = torch_c.to_builtin_tensor %arg0 : !torch.vtensor<[4,?],f32> -> tensor<4x?xf32>
  // CHECK: %[[ONE:.+]] = arith.constant 1.000000e+00 : f32
  // CHECK: %[[ONES:.+]] = linalg.fill ins(%[[ONE]] : f32)
  // CHECK: linalg.generic {indexing_maps = [#[[IN]], #[[OUT]]], iterator_types = ["reduction", "parallel"]} ins(%[[IN_TENSOR]] : tensor<4x?xf32>) outs(%[[ONES]] : tensor<?xf32>)
  // CHECK: arith.mulf %in, %out : f32
  // CHECK: torch_c.from_builtin_tensor %{{.+}} : tensor<?xf32> -> !torch.vtensor<[?],f32>
  // CHECK-NOT: torch.operator
  %0 = torch.operator "eyas.product"(%arg0) {torch.onnx.axes = [0 : si64]} : (!torch.vtensor<[4,?],f32>) -> !torch.vtensor<[?],f32>
  return %0 : !torch.vtensor<[?],f32>
}

// Of all elements; bits of unsigned numbers are multiplied like those of signed ones.
// CHECK-LABEL: func.func @integers
func.func @integers(%arg0: !torch.vtensor<[2,?],ui32>) -> !torch.vtensor<[],ui32> {
  // CHECK: iterator_types = ["reduction", "reduction"]
  // CHECK: arith.muli %in, %out : i32
  %0 = torch.operator "eyas.product"(%arg0) {torch.onnx.axes = [0 : si64, 1 : si64]} : (!torch.vtensor<[2,?],ui32>) -> !torch.vtensor<[],ui32>
  return %0 : !torch.vtensor<[],ui32>
}
