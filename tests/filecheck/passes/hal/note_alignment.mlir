// RUN: eyas opt %s --passes 'note-alignment{target=vulkan:lavapipe}' | filecheck %s

// Offset 64 is a multiple of what the device wants, 12 is not; what a step of a loop is given may begin anywhere.
func.func @main() {
  %c0 = arith.constant 0 : index
  %c12 = arith.constant 12 : index
  %c64 = arith.constant 64 : index
  %end = arith.constant -1 : index
  %r = "hal.record"() ({
    "hal.dispatch"(%c0, %c64, %end, %end) {access = array<i64: 1, 2>, callee = @whole, operandSegmentSizes = array<i32: 0, 0, 2, 2>, slots = array<i64: 0, 1>} : (index, index, index, index) -> ()
    "hal.dispatch"(%c12, %c64, %end, %end) {access = array<i64: 1, 2>, callee = @part, operandSegmentSizes = array<i32: 0, 0, 2, 2>, slots = array<i64: 0, 1>} : (index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = 0 : i64, slots = 2 : i64} : () -> !hal.command_buffer
  return
}

func.func private @step() {
  %c0 = arith.constant 0 : index
  %end = arith.constant -1 : index
  %w = "hal.parameter"() {key = "w"} : () -> !hal.buffer
  %r = "hal.record"() ({
    "hal.dispatch"(%w, %c0, %c0, %end, %end) {access = array<i64: 1, 2>, callee = @row, operandSegmentSizes = array<i32: 0, 1, 2, 2>, slots = array<i64: -1, 0>} : (!hal.buffer, index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = 1 : i64, slots = 1 : i64} : () -> !hal.command_buffer
  return
}

// CHECK: func.func private @whole
// CHECK-NOT: codegen.unaligned
// CHECK: func.func private @part
// CHECK-SAME: codegen.unaligned = array<i64: 0>
// CHECK: func.func private @row
// CHECK-SAME: codegen.unaligned = array<i64: 1>
func.func private @whole(%x: tensor<8xf32>) -> tensor<8xf32> attributes {flow.executable}
func.func private @part(%x: tensor<8xf32>) -> tensor<8xf32> attributes {flow.executable}
func.func private @row(%x: tensor<8xf32>) -> tensor<8xf32> attributes {flow.executable}
