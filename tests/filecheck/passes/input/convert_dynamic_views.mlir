// RUN: eyas opt %s --passes convert-dynamic-views | filecheck %s

// Two dynamic dimensions become one: the asked sizes are used as they are.
// CHECK-LABEL: func.func @two
func.func @two(%x: !torch.vtensor<[?,?,48],f32>, %n: !torch.int) -> !torch.vtensor<[?,48],f32> {
  %int48 = torch.constant.int 48
  %sizes = torch.prim.ListConstruct %n, %int48 : (!torch.int, !torch.int) -> !torch.list<int>
  // CHECK: [[B:%.*]] = torch_c.to_builtin_tensor
  // CHECK: tensor.reshape [[B]]({{.*}}) : (tensor<?x?x48xf32>, tensor<2xi64>) -> tensor<?x48xf32>
  // CHECK: torch_c.from_builtin_tensor
  // CHECK-NOT: torch.aten.view
  %0 = torch.aten.view %x, %sizes : !torch.vtensor<[?,?,48],f32>, !torch.list<int> -> !torch.vtensor<[?,48],f32>
  return %0 : !torch.vtensor<[?,48],f32>
}

// The importer's own lowering is right for static shapes.
// CHECK-LABEL: func.func @static
// CHECK: torch.aten.view
// CHECK-NOT: tensor.reshape
func.func @static(%x: !torch.vtensor<[2,3,48],f32>) -> !torch.vtensor<[6,48],f32> {
  %int6 = torch.constant.int 6
  %int48 = torch.constant.int 48
  %sizes = torch.prim.ListConstruct %int6, %int48 : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = torch.aten.view %x, %sizes : !torch.vtensor<[2,3,48],f32>, !torch.list<int> -> !torch.vtensor<[6,48],f32>
  return %0 : !torch.vtensor<[6,48],f32>
}

// The importer divides by the sizes of what has no elements.
// CHECK-LABEL: func.func @nothing
// CHECK: [[B:%\w+]] = torch_c.to_builtin_tensor %arg0
// CHECK: tensor.reshape [[B]]({{.*}}) : (tensor<6x0x1xf32>, tensor<2xi64>) -> tensor<0x1xf32>
// CHECK-NOT: torch.aten.view
func.func @nothing(%x: !torch.vtensor<[6,0,1],f32>) -> !torch.vtensor<[0,1],f32> {
  %zero = torch.constant.int 0
  %one = torch.constant.int 1
  %sizes = torch.prim.ListConstruct %zero, %one : (!torch.int, !torch.int) -> !torch.list<int>
  %r = torch.aten.view %x, %sizes : !torch.vtensor<[6,0,1],f32>, !torch.list<int> -> !torch.vtensor<[0,1],f32>
  return %r : !torch.vtensor<[0,1],f32>
}
