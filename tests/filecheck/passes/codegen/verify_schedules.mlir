// RUN: eyas opt %s --passes verify-schedules{target=llvm-cpu:x86_64:znver3} | filecheck %s

// The weight lies in the panels that the schedule names, and @halve may write over its operand: nothing changes.
// CHECK-LABEL: func.func @main
// CHECK: "hal.dispatch"
// CHECK: "hal.dispatch"
func.func @main() {
  %c0 = arith.constant 0 : index
  %end = arith.constant -1 : index
  %w = "hal.parameter"() {codegen.panels = 32 : i64, key = "w#panels32"} : () -> !hal.buffer
  %r = "hal.record"() ({
    "hal.dispatch"(%w, %c0, %c0, %c0, %end, %end, %end) {access = array<i64: 1, 1, 2>, callee = @product, operandSegmentSizes = array<i32: 0, 1, 3, 3>, slots = array<i64: 0, -1, 1>} : (!hal.buffer, index, index, index, index, index, index) -> ()
    "hal.dispatch"(%c0, %c0, %end, %end) {access = array<i64: 1, 2>, callee = @halve, operandSegmentSizes = array<i32: 0, 0, 2, 2>, slots = array<i64: 1, 1>} : (index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = 0 : i64, slots = 2 : i64} : () -> !hal.command_buffer
  return
}

// CHECK: @product{{.*}}packed = [{binding = 1 : i64, lanes = 32 : i64}]
func.func private @product(%x: tensor<8x96xf32>, %w: tensor<96x128xf32>) -> tensor<8x128xf32> attributes {codegen.strategy = #codegen.strategy<"contraction", {packed = [{binding = 1, lanes = 32}], tiles = [{loop = 1, width = 8, vectors = 4}]}>, dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x128xf32>) -> tensor<8x128xf32>
  %y = linalg.matmul ins(%x, %w : tensor<8x96xf32>, tensor<96x128xf32>) outs(%f : tensor<8x128xf32>) -> tensor<8x128xf32>
  return %y : tensor<8x128xf32>
}
func.func private @halve(%x: tensor<8x128xf32>) -> tensor<8x128xf32> attributes {codegen.strategy = #codegen.strategy<"rows", {tiles = [{loop = 0, width = 8}]}>, dim_args = array<i64>, flow.executable} {
  %e = tensor.empty() : tensor<8x128xf32>
  %y = linalg.exp ins(%x : tensor<8x128xf32>) outs(%e : tensor<8x128xf32>) -> tensor<8x128xf32>
  return %y : tensor<8x128xf32>
}
