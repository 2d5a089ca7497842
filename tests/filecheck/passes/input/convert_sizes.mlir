// RUN: eyas opt %s --passes convert-sizes | filecheck %s

// A size is arithmetic on dimensions; floats are rounded to the type that they have in the model.
// CHECK-LABEL: func.func @scalars
// CHECK:         %[[X:.*]] = torch_c.to_builtin_tensor
// CHECK:         %[[D:.*]] = tensor.dim %[[X]]
// CHECK:         %[[N:.*]] = arith.index_cast %[[D]] : index to i64
// CHECK:         %[[Q:.*]] = arith.floordivsi %[[N]], %{{.*}} : i64
// CHECK:         %[[FIRST:.*]] = torch_c.from_i64 %[[Q]]
// CHECK:         arith.sitofp %{{.*}} : i64 to f32
// CHECK:         arith.divf %{{.*}} : f32
// CHECK:         arith.mulf %{{.*}} : f32
// CHECK:         math.floor %{{.*}} : f32
// CHECK:         arith.fptosi %{{.*}} : f32 to i64
// CHECK:         torch_c.from_i64
// CHECK-NOT:     torch.operator
func.func @scalars(%x: !torch.vtensor<[?,?],f32>) -> (!torch.int, !torch.int) {
  %0 = torch.operator "eyas.size"(%x) {torch.onnx.program = "[\22floordiv\22, \22i64\22, [\22dim\22, \22i64\22, 0, 1], 2]"} : (!torch.vtensor<[?,?],f32>) -> !torch.int
  %1 = torch.operator "eyas.size"(%x) {torch.onnx.program = "[\22int\22, \22i64\22, [\22floor\22, \22f32\22, [\22mul\22, \22f32\22, [\22float\22, \22f32\22, [\22dim\22, \22i64\22, 0, 0]], [\22div\22, \22f32\22, [\22float\22, \22f32\22, [\22dim\22, \22i64\22, 0, 1]], [\22float\22, \22f32\22, [\22dim\22, \22i64\22, 0, 0]]]]]]"} : (!torch.vtensor<[?,?],f32>) -> !torch.int
  return %0, %1 : !torch.int, !torch.int
}

// A tensor of sizes that is used as one.
// CHECK-LABEL: func.func @tensors
// CHECK:         tensor.from_elements %{{.*}}, %{{.*}} : tensor<2xi64>
func.func @tensors(%n: !torch.int) -> !torch.vtensor<[2],si64> {
  %int4 = torch.constant.int 4
  %none = torch.constant.none
  %false = torch.constant.bool false
  %0 = torch.prim.ListConstruct %n, %int4 : (!torch.int, !torch.int) -> !torch.list<int>
  %1 = torch.aten.tensor %0, %int4, %none, %false : !torch.list<int>, !torch.int, !torch.none, !torch.bool -> !torch.vtensor<[2],si64>
  return %1 : !torch.vtensor<[2],si64>
}
