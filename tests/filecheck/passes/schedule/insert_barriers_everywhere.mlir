// RUN: eyas opt %s --passes insert-barriers{overlap=false} | filecheck %s

// Both only read what they share, and still the second waits for the first.
// CHECK-LABEL: func.func @main
func.func @main() {
  %c64 = arith.constant 64 : index
  %x = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  %a = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  %b = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  // CHECK-NOT: stream.barrier
  // CHECK: @first
  // CHECK-NEXT: "stream.barrier"
  // CHECK-NEXT: @second
  "stream.dispatch"(%x, %a) {access = array<i64: 1, 2>, callee = @first, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  "stream.dispatch"(%x, %b) {access = array<i64: 1, 2>, callee = @second, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  return
}
