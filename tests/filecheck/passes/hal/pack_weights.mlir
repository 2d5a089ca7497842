// RUN: eyas opt %s --passes pack-weights | filecheck %s

// Both dispatches of @product read a weight, and nothing else reads it: panels of 16 * 4 columns.
// "shared" is also read by @other, which wants none; "part" is read from its middle; so @mixed and @partial stay.
// CHECK-LABEL: func.func @main
func.func @main() {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %end = arith.constant -1 : index
  // CHECK-DAG: codegen.panels = 64 : i64, key = "a#panels64"
  // CHECK-DAG: key = "b#panels64"
  // CHECK-DAG: key = "shared"
  // CHECK-DAG: key = "part"
  %a = "hal.parameter"() {key = "a"} : () -> !hal.buffer
  %b = "hal.parameter"() {key = "b"} : () -> !hal.buffer
  %s = "hal.parameter"() {key = "shared"} : () -> !hal.buffer
  %p = "hal.parameter"() {key = "part"} : () -> !hal.buffer
  %r = "hal.record"() ({
    "hal.dispatch"(%a, %c0, %c0, %c0, %end, %end, %end) {access = array<i64: 1, 1, 2>, callee = @product, operandSegmentSizes = array<i32: 0, 1, 3, 3>, slots = array<i64: 0, -1, 1>} : (!hal.buffer, index, index, index, index, index, index) -> ()
    "hal.dispatch"(%b, %c0, %c0, %c0, %end, %end, %end) {access = array<i64: 1, 1, 2>, callee = @product, operandSegmentSizes = array<i32: 0, 1, 3, 3>, slots = array<i64: 0, -1, 1>} : (!hal.buffer, index, index, index, index, index, index) -> ()
    "hal.dispatch"(%s, %c0, %c0, %c0, %end, %end, %end) {access = array<i64: 1, 1, 2>, callee = @mixed, operandSegmentSizes = array<i32: 0, 1, 3, 3>, slots = array<i64: 0, -1, 1>} : (!hal.buffer, index, index, index, index, index, index) -> ()
    "hal.dispatch"(%s, %c0, %c0, %c0, %end, %end, %end) {access = array<i64: 1, 1, 2>, callee = @other, operandSegmentSizes = array<i32: 0, 1, 3, 3>, slots = array<i64: 0, -1, 1>} : (!hal.buffer, index, index, index, index, index, index) -> ()
    "hal.dispatch"(%p, %c0, %c64, %c0, %end, %end, %end) {access = array<i64: 1, 1, 2>, callee = @partial, operandSegmentSizes = array<i32: 0, 1, 3, 3>, slots = array<i64: 0, -1, 1>} : (!hal.buffer, index, index, index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = 0 : i64, slots = 2 : i64} : () -> !hal.command_buffer
  return
}

// CHECK: @product{{.*}}packed = [{binding = 1 : i64, lanes = 64 : i64}]
func.func private @product(%x: tensor<8x96xf32>, %w: tensor<96x128xf32>) -> tensor<8x128xf32> attributes {codegen.packable = [{binding = 1, lanes = 64}], codegen.strategy = #codegen.strategy<"contraction", {grid = [], tiles = [{loop = 1, width = 16, vectors = 4, unroll_loop = 0, unroll = 4}]}>, flow.executable}
// CHECK-NOT: packed
// CHECK-NOT: codegen.packable
func.func private @mixed(%x: tensor<8x96xf32>, %w: tensor<96x128xf32>) -> tensor<8x128xf32> attributes {codegen.packable = [{binding = 1, lanes = 64}], codegen.strategy = #codegen.strategy<"contraction", {grid = [], tiles = [{loop = 1, width = 16, vectors = 4, unroll_loop = 0, unroll = 4}]}>, flow.executable}
func.func private @other(%x: tensor<8x96xf32>, %w: tensor<96x128xf32>) -> tensor<8x128xf32> attributes {codegen.strategy = #codegen.strategy<"loops", {}>, flow.executable}
func.func private @partial(%x: tensor<8x96xf32>, %w: tensor<96x128xf32>) -> tensor<8x128xf32> attributes {codegen.packable = [{binding = 1, lanes = 64}], codegen.strategy = #codegen.strategy<"contraction", {grid = [], tiles = [{loop = 1, width = 16, vectors = 4, unroll_loop = 0, unroll = 4}]}>, flow.executable}
