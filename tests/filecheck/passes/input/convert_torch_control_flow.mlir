// RUN: eyas opt %s --passes convert-torch-control-flow | filecheck %s

// The loop ends by its condition or by its count, whichever comes first.
// CHECK-LABEL: func.func @loop
func.func @loop(%n: !torch.int, %c: !torch.bool, %x: !torch.vtensor<[?,3],f32>) -> !torch.vtensor<[?,3],f32> {
  // CHECK: %[[N:.+]] = torch_c.to_i64 %arg0
  // CHECK: %[[C:.+]] = torch_c.to_i1 %arg1
  // CHECK: %[[X:.+]] = torch_c.to_builtin_tensor %arg2 : !torch.vtensor<[?,3],f32> -> tensor<?x3xf32>
  // CHECK: %[[SOME:.+]] = arith.cmpi slt, %c0_i64, %[[N]]
  // CHECK: %[[GO:.+]] = arith.andi %[[C]], %[[SOME]]
  // CHECK: scf.while (%[[A:.+]] = %[[GO]], %{{.+}} = %c0_i64, %{{.+}} = %[[X]])
  // CHECK: scf.condition(%[[A]])
  // CHECK: ^bb0(%[[K:.+]]: i64, %[[CARRIED:.+]]: tensor<?x3xf32>):
  // CHECK: torch_c.from_builtin_tensor %[[CARRIED]] : tensor<?x3xf32> -> !torch.vtensor<[?,3],f32>
  // CHECK: %[[NEXT:.+]] = arith.addi %[[K]], %c1_i64
  // CHECK: %[[MORE:.+]] = arith.cmpi slt, %[[NEXT]], %[[N]]
  // CHECK: %[[ON:.+]] = arith.andi %{{.+}}, %[[MORE]]
  // CHECK: scf.yield %[[ON]], %[[NEXT]], %{{.+}} : i1, i64, tensor<?x3xf32>
  // CHECK: attributes {flow.keeps_shape}
  %0 = torch.prim.Loop %n, %c, init(%x) {
  ^bb0(%i: !torch.int, %s: !torch.vtensor<[?,3],f32>):
    %t = torch.aten.tanh %s : !torch.vtensor<[?,3],f32> -> !torch.vtensor<[?,3],f32>
    %on = torch.aten.gt.int %i, %n : !torch.int, !torch.int -> !torch.bool
    torch.prim.Loop.condition %on, iter(%t : !torch.vtensor<[?,3],f32>)
  } : (!torch.int, !torch.bool, !torch.vtensor<[?,3],f32>) -> !torch.vtensor<[?,3],f32>
  return %0 : !torch.vtensor<[?,3],f32>
}

// CHECK-LABEL: func.func @branch
func.func @branch(%c: !torch.bool, %x: !torch.vtensor<[3],f32>) -> !torch.vtensor<[3],f32> {
  // CHECK: %[[C:.+]] = torch_c.to_i1 %arg0
  // CHECK: scf.if %[[C]] -> (tensor<3xf32>)
  // CHECK: torch.aten.tanh
  // CHECK: scf.yield %{{.+}} : tensor<3xf32>
  // CHECK: else
  // CHECK: scf.yield %{{.+}} : tensor<3xf32>
  %0 = torch.prim.If %c -> (!torch.vtensor<[3],f32>) {
    %t = torch.aten.tanh %x : !torch.vtensor<[3],f32> -> !torch.vtensor<[3],f32>
    torch.prim.If.yield %t : !torch.vtensor<[3],f32>
  } else {
    torch.prim.If.yield %x : !torch.vtensor<[3],f32>
  }
  return %0 : !torch.vtensor<[3],f32>
}
