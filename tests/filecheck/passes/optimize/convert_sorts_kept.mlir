// RUN: eyas opt %s --passes convert-sorts{keep=true} | filecheck %s

// The target has a strategy for sorts: one that will be a dispatch of its own stays.
// CHECK-LABEL: func.func @alone
// CHECK: tm_tensor.sort
// CHECK: return
func.func @alone(%x: tensor<4x100xf32>) -> tensor<4x100xf32> {
  %s = tm_tensor.sort dimension(1) outs(%x : tensor<4x100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %stays = arith.cmpf ole, %a, %b : f32
    tm_tensor.yield %stays : i1
  } -> tensor<4x100xf32>
  return %s : tensor<4x100xf32>
}

// One in a loop is a part of a larger dispatch.
// CHECK-LABEL: func.func @in_a_loop
// CHECK-NOT: tm_tensor.sort
func.func @in_a_loop(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> tensor<4xf32> {
    %s = tm_tensor.sort dimension(0) outs(%t : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32):
      %stays = arith.cmpf ole, %a, %b : f32
      tm_tensor.yield %stays : i1
    } -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
