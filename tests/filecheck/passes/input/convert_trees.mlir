// RUN: eyas opt %s --passes convert-trees | filecheck %s

// CHECK-DAG: #[[STEP:.+]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-DAG: #[[WALK:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-DAG: #[[TREE:.+]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-LABEL: func.func @sum
func.func @sum(%x: !torch.vtensor<[?,4],f32>, %table: !torch.vtensor<[7,2],si32>, %values: !torch.vtensor<[7,3],f32>, %roots: !torch.vtensor<[1,2],si32>) -> !torch.vtensor<[?,1,3],f32> {
  // CHECK: %[[TOTAL:.+]] = linalg.fill
  // CHECK: %[[STARTS:.+]] = linalg.generic {{.+}} outs({{.+}} : tensor<?x1x2xi32>)
  // CHECK: %[[STEPS:.+]] = tensor.empty() : tensor<5xi8>
  // CHECK: %[[AT:.+]] = linalg.generic {indexing_maps = [#[[STEP]], #[[WALK]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%[[STEPS]] : tensor<5xi8>) outs(%[[STARTS]] : tensor<?x1x2xi32>)
  // CHECK: %[[NODE:.+]] = arith.index_castui %out : i32 to index
  // CHECK: %[[BITS:.+]] = tensor.extract {{.+}}[%[[NODE]], %{{.+}}] {flow.within} : tensor<7x2xi32>
  // CHECK: %[[LIMIT:.+]] = arith.bitcast %[[BITS]] : i32 to f32
  // CHECK: %[[VALUE:.+]] = tensor.extract {{.+}} {flow.within} : tensor<?x4xf32>
  // CHECK: arith.cmpf ole, %[[VALUE]], %[[LIMIT]] : f32
  // CHECK-NOT: arith.cmpf uno
  // CHECK: linalg.generic {indexing_maps = [#[[TREE]], #[[WALK]]], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%[[AT]] : tensor<?x1x2xi32>) outs(%[[TOTAL]] : tensor<?x1x3xf32>)
  // CHECK: tensor.extract {{.+}} : tensor<7x3xf32>
  // CHECK: arith.addf
  // CHECK-NOT: torch.operator
  %0 = torch.operator "eyas.trees"(%x, %table, %values, %roots) {torch.onnx.depths = [5 : si64], torch.onnx.combine = "sum", torch.onnx.interval = 0 : si64, torch.onnx.missing = 0 : si64, torch.onnx.wide = 0 : si64, torch.onnx.columns = 4 : si64} : (!torch.vtensor<[?,4],f32>, !torch.vtensor<[7,2],si32>, !torch.vtensor<[7,3],f32>, !torch.vtensor<[1,2],si32>) -> !torch.vtensor<[?,1,3],f32>
  return %0 : !torch.vtensor<[?,1,3],f32>
}

// Intervals of doubles take four words, NaN has a way of its own, and distances that are long a word of their own; trees
// of two depths add to one total.
// CHECK-LABEL: func.func @largest
func.func @largest(%x: !torch.vtensor<[3,4],f64>, %table: !torch.vtensor<[7,6],si32>, %values: !torch.vtensor<[7,1],f64>, %roots: !torch.vtensor<[2,2],si32>, %others: !torch.vtensor<[2,1],si32>) -> !torch.vtensor<[3,2,1],f64> {
  // The fifth column is not there.
  // CHECK: tensor.empty() : tensor<2xi8>
  // CHECK: arith.shli
  // CHECK: arith.bitcast {{.+}} : i64 to f64
  // CHECK: tensor.extract {{.+}}] : tensor<3x4xf64>
  // CHECK: arith.cmpf ole
  // CHECK: arith.cmpf ole
  // CHECK: arith.cmpf uno
  // CHECK: arith.maximumf
  // CHECK: tensor.empty() : tensor<9xi8>
  // CHECK: arith.maximumf
  %0 = torch.operator "eyas.trees"(%x, %table, %values, %roots, %others) {torch.onnx.depths = [2 : si64, 9 : si64], torch.onnx.combine = "max", torch.onnx.interval = 1 : si64, torch.onnx.missing = 1 : si64, torch.onnx.wide = 1 : si64, torch.onnx.columns = 5 : si64} : (!torch.vtensor<[3,4],f64>, !torch.vtensor<[7,6],si32>, !torch.vtensor<[7,1],f64>, !torch.vtensor<[2,2],si32>, !torch.vtensor<[2,1],si32>) -> !torch.vtensor<[3,2,1],f64>
  return %0 : !torch.vtensor<[3,2,1],f64>
}
