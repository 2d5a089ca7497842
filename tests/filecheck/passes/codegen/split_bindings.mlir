// RUN: eyas opt %s --passes 'split-bindings{target=vulkan:lavapipe:range=64K}' | filecheck %s

// The second tensor, of 150,000 bytes, takes three bindings; where the parts begin and end is known before the recording.
"hal.executable"() {exports = [{name = "rows", bindings = 5 : i64, segments = array<i64: 1, 3, 1>}, {name = "small", bindings = 2 : i64}], features = "", format = "spirv", sym_name = "kernels", target = "vulkan:lavapipe"} : () -> ()
func.func @main(%somewhere: index) {
  %c0 = arith.constant 0 : index
  %bytes = arith.constant 150000 : index
  %end = arith.constant -1 : index
  %w = "hal.parameter"() {key = "w"} : () -> !hal.buffer
  %r = "hal.record"() ({
    "hal.dispatch"(%w, %c0, %c0, %somewhere, %end, %bytes, %end) {access = array<i64: 1, 1, 2>, callee = @rows, operandSegmentSizes = array<i32: 0, 1, 3, 3>, slots = array<i64: 0, -1, 1>} : (!hal.buffer, index, index, index, index, index, index) -> ()
    "hal.dispatch"(%c0, %c0, %end, %end) {access = array<i64: 1, 2>, callee = @small, operandSegmentSizes = array<i32: 0, 0, 2, 2>, slots = array<i64: 0, 1>} : (index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = 0 : i64, slots = 2 : i64} : () -> !hal.command_buffer
  return
}

// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[END:.*]] = arith.constant -1 : index
// CHECK: %[[FIRST:.*]] = arith.constant 65520 : index
// CHECK: %[[SECOND:.*]] = arith.constant 131040 : index
// CHECK: %[[LENGTH:.*]] = arith.constant 65520 : index
// CHECK: %[[OTHER:.*]] = arith.constant 65520 : index
// CHECK: %[[REST:.*]] = arith.constant 18960 : index
// CHECK: hal.record
// CHECK: "hal.dispatch"(%[[W:.*]], %[[W]], %[[W]], %[[ZERO]], %[[ZERO]], %[[FIRST]], %[[SECOND]], %arg0, %[[END]], %[[LENGTH]], %[[OTHER]], %[[REST]], %[[END]]) {access = array<i64: 1, 1, 1, 1, 2>, callee = @rows
// CHECK-SAME: slots = array<i64: 0, -1, -1, -1, 1>
// CHECK: "hal.dispatch"(%[[ZERO]], %[[ZERO]], %[[END]], %[[END]])
