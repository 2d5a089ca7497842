// RUN: eyas opt %s --passes convert-type-operators | filecheck %s

// CHECK-LABEL: func.func @decode
func.func @decode(%arg0: !torch.vtensor<[3,?],si8>) -> !torch.vtensor<[3,?],si8> {
  // CHECK: %[[IN:.+]] = torch_c.to_builtin_tensor %arg0 : !torch.vtensor<[3,?],si8> -> tensor<3x?xi8>
  // CHECK: tensor.empty(%{{.+}}) : tensor<3x?xi8>
  // CHECK: linalg.generic {{.*}} ins(%[[IN]] : tensor<3x?xi8>)
  // CHECK: %[[HIGH:.+]] = arith.shli %in, %c4_i8
  // CHECK: %[[VALUE:.+]] = arith.shrsi %[[HIGH]], %c4_i8
  // CHECK: linalg.yield %[[VALUE]] : i8
  // CHECK: torch_c.from_builtin_tensor %{{.+}} : tensor<3x?xi8> -> !torch.vtensor<[3,?],si8>
  %0 = torch.operator "eyas.decode"(%arg0) {torch.onnx.dtype = "i4"} : (!torch.vtensor<[3,?],si8>) -> !torch.vtensor<[3,?],si8>
  return %0 : !torch.vtensor<[3,?],si8>
}

// An f64 becomes an f32 first; infinities become the largest number, 0x7E.
// CHECK-LABEL: func.func @encode
func.func @encode(%arg0: !torch.vtensor<[4],f64>) -> !torch.vtensor<[4],si8> {
  // CHECK: arith.truncf %in : f64 to f32
  // CHECK: arith.bitcast %{{.+}} : f32 to i32
  // CHECK: %[[CODE:.+]] = arith.select %{{.+}}, %c126_i32
  // CHECK: arith.trunci %{{.+}} : i32 to i8
  %0 = torch.operator "eyas.encode"(%arg0) {torch.onnx.dtype = "f8e4m3fn", torch.onnx.saturate = 1 : si64, torch.onnx.round_mode = "up"} : (!torch.vtensor<[4],f64>) -> !torch.vtensor<[4],si8>
  return %0 : !torch.vtensor<[4],si8>
}

// CHECK-LABEL: func.func @bitcast
func.func @bitcast(%arg0: !torch.vtensor<[4],f32>, %arg1: !torch.vtensor<[4],i1>) -> (!torch.vtensor<[4],ui32>, !torch.vtensor<[4],ui8>) {
  // CHECK: arith.bitcast %in : f32 to i32
  %0 = torch.operator "eyas.bitcast"(%arg0) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],ui32>
  // CHECK: arith.extui %in : i1 to i8
  %1 = torch.operator "eyas.bitcast"(%arg1) : (!torch.vtensor<[4],i1>) -> !torch.vtensor<[4],ui8>
  // CHECK-NOT: torch.operator
  return %0, %1 : !torch.vtensor<[4],ui32>, !torch.vtensor<[4],ui8>
}

// CHECK-LABEL: func.func @widen_and_narrow
func.func @widen_and_narrow(%arg0: !torch.vtensor<[4],ui16>) -> (!torch.vtensor<[4],si32>, !torch.vtensor<[4],ui16>) {
  // CHECK: arith.extui %in : i16 to i32
  %0 = torch.operator "eyas.widen"(%arg0) {torch.onnx.unsigned = 1 : si64} : (!torch.vtensor<[4],ui16>) -> !torch.vtensor<[4],si32>
  // CHECK: arith.trunci %in : i32 to i16
  %1 = torch.operator "eyas.narrow"(%0) : (!torch.vtensor<[4],si32>) -> !torch.vtensor<[4],ui16>
  // CHECK-NOT: torch.operator
  return %0, %1 : !torch.vtensor<[4],si32>, !torch.vtensor<[4],ui16>
}
