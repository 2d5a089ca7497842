// RUN: eyas opt %s --passes insert-barriers | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main() {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %x = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  %r = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  %arena = "stream.alloc"(%c128) {kind = "transient"} : (index) -> !stream.resource
  %a = "stream.view"(%arena, %c0, %c64) : (!stream.resource, index, index) -> !stream.resource
  %b = "stream.view"(%arena, %c64, %c64) : (!stream.resource, index, index) -> !stream.resource
  %c = "stream.view"(%arena, %c0, %c64) : (!stream.resource, index, index) -> !stream.resource
  // Both read the argument and write apart: one wave.
  // CHECK-NOT: stream.barrier
  // CHECK: @first
  // CHECK-NOT: stream.barrier
  // CHECK: @second
  "stream.dispatch"(%x, %a) {access = array<i64: 1, 2>, callee = @first, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  "stream.dispatch"(%x, %b) {access = array<i64: 1, 2>, callee = @second, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  // Reads what @first wrote.
  // CHECK: "stream.barrier"
  // CHECK-NEXT: @third
  "stream.dispatch"(%a, %r) {access = array<i64: 1, 2>, callee = @third, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  // Only reads the other half.
  // CHECK-NOT: stream.barrier
  // CHECK: @fourth
  "stream.dispatch"(%b) {access = array<i64: 1>, callee = @fourth, operandSegmentSizes = array<i32: 0, 1>} : (!stream.resource) -> ()
  // Overwrites the bytes that @third still reads.
  // CHECK-NEXT: "stream.barrier"
  // CHECK-NEXT: @fifth
  "stream.dispatch"(%c) {access = array<i64: 2>, callee = @fifth, operandSegmentSizes = array<i32: 0, 1>} : (!stream.resource) -> ()
  // CHECK-NEXT: "stream.barrier"
  // CHECK-NEXT: "stream.copy"
  "stream.copy"(%c, %r) : (!stream.resource, !stream.resource) -> ()
  return
}
