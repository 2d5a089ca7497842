// RUN: eyas opt %s --passes plan-memory{max-arena-bytes=1024},canonicalize | filecheck %s

// %a and %c are never alive together: they share the first 256 bytes.
// CHECK-LABEL: func.func @static
// CHECK-SAME: stream.arena_bytes = 512 : i64, stream.arena_lower_bound_bytes = 512 : i64
func.func @static() {
  %c256 = arith.constant 256 : index
  // CHECK-DAG: [[ZERO:%.*]] = arith.constant 0 : index
  // CHECK-DAG: [[HALF:%.*]] = arith.constant 256 : index
  // CHECK-DAG: [[ALL:%.*]] = arith.constant 512 : index
  // CHECK: [[R:%.*]] = "stream.alloc"([[HALF]]) {{.*}}kind = "result"
  %r = "stream.alloc"(%c256) {kind = "result"} : (index) -> !stream.resource
  // CHECK: [[ARENA:%.*]] = "stream.alloc"([[ALL]]) {{.*}}kind = "transient"
  %a = "stream.alloc"(%c256) {kind = "transient"} : (index) -> !stream.resource
  // CHECK: [[A:%.*]] = "stream.view"([[ARENA]], [[A0:%.*]], [[HALF]])
  "stream.dispatch"(%a) {access = array<i64: 2>, callee = @k, operandSegmentSizes = array<i32: 0, 1>} : (!stream.resource) -> ()
  %b = "stream.alloc"(%c256) {kind = "transient"} : (index) -> !stream.resource
  // CHECK: [[B:%.*]] = "stream.view"([[ARENA]], [[B0:%.*]], [[HALF]])
  "stream.dispatch"(%a, %b) {access = array<i64: 1, 2>, callee = @k, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  %c = "stream.alloc"(%c256) {kind = "transient"} : (index) -> !stream.resource
  // CHECK: [[C:%.*]] = "stream.view"([[ARENA]], [[A0]], [[HALF]])
  "stream.dispatch"(%b, %c, %r) {access = array<i64: 1, 2, 2>, callee = @k, operandSegmentSizes = array<i32: 0, 3>} : (!stream.resource, !stream.resource, !stream.resource) -> ()
  return
}

// One size is known only at run time, so the offsets are too.
// CHECK-LABEL: func.func @dynamic
// CHECK-NOT: stream.arena_bytes
// CHECK: [[P:%.*]]:3 = "stream.pack"([[N:%.*]], [[M:%.*]]) {{.*}}lifetimes = array<i64: 4, 5, 5, 5>
// CHECK: [[ARENA:%.*]] = "stream.alloc"([[P]]#0)
// CHECK: "stream.view"([[ARENA]], [[P]]#1, [[N]])
// CHECK: "stream.view"([[ARENA]], [[P]]#2, [[M]])
func.func @dynamic() {
  %c256 = arith.constant 256 : index
  %n = "stream.argument_dim"() {index = 0 : i64, dim = 0 : i64} : () -> index
  %a = "stream.alloc"(%n) {kind = "transient"} : (index) -> !stream.resource
  %b = "stream.alloc"(%c256) {kind = "transient"} : (index) -> !stream.resource
  "stream.dispatch"(%a) {access = array<i64: 2>, callee = @k, operandSegmentSizes = array<i32: 0, 1>} : (!stream.resource) -> ()
  "stream.dispatch"(%a, %b) {access = array<i64: 1, 2>, callee = @k, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  return
}
func.func private @k() attributes {flow.executable}
