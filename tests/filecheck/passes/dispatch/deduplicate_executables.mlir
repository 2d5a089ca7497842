// RUN: eyas opt %s --passes deduplicate-executables | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: call @first(
  // CHECK: call @first(
  // CHECK: call @third(
  %0 = call @first(%x) {flow.dispatch} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @second(%0) {flow.dispatch} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @third(%1) {flow.dispatch} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// CHECK: func.func private @first
func.func private @first(%x: tensor<4xf32>) -> tensor<4xf32> attributes {flow.executable} {
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// The same but for its name and a remark.
// CHECK-NOT: @second
func.func private @second(%x: tensor<4xf32>) -> tensor<4xf32> attributes {flow.executable} {
  %0 = math.exp %x {flow.not_fused = "its producer runs alone"} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// Another function.
// CHECK: func.func private @third
func.func private @third(%x: tensor<4xf32>) -> tensor<4xf32> attributes {flow.executable} {
  %0 = math.exp2 %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
