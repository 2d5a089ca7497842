// RUN: eyas opt %s --passes convert-stream-to-hal,cse | filecheck %s

// Everything is static: recorded once, kept in slot 0, replayed with other buffers.
// CHECK-LABEL: func.func @static
func.func @static() {
  %c64 = arith.constant 64 : index
  // CHECK-DAG: [[X:%.*]] = "hal.argument"() {{.*}}index = 0
  // CHECK-DAG: [[W:%.*]] = "hal.parameter"() {{.*}}key = "weight"
  // CHECK-DAG: [[R:%.*]] = "hal.allocate"({{.*}}) {{.*}}kind = "result"
  %x = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  %w = "stream.parameter"() {key = "weight"} : () -> !stream.resource
  %r = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  // CHECK: [[C:%.*]] = "hal.record"() ({
  // The parameter is bound at once, the others are slots 0 and 1 of the table.
  // CHECK: "hal.dispatch"([[W]],{{.*}}callee = @scale{{.*}}slots = array<i64: 0, -1, 1>
  // CHECK: "hal.barrier"
  // CHECK: "hal.copy"{{.*}}slots = array<i64: 1, 0>
  // CHECK: "hal.end"
  "stream.dispatch"(%x, %w, %r) {access = array<i64: 1, 1, 2>, callee = @scale, operandSegmentSizes = array<i32: 0, 3>} : (!stream.resource, !stream.resource, !stream.resource) -> ()
  "stream.barrier"() : () -> ()
  "stream.copy"(%r, %x) : (!stream.resource, !stream.resource) -> ()
  // CHECK: "hal.submit"([[C]], [[X]], [[R]])
  // CHECK: "hal.result"([[R]]
  "stream.result"(%r, %c64) {index = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (!stream.resource, index) -> ()
  // CHECK-NOT: stream.
  return
}

// A size of this call is recorded in it, so the recording cannot be kept; a host read ends it.
// CHECK-LABEL: func.func @dynamic
func.func @dynamic() {
  %x = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  // CHECK: [[N:%.*]] = "hal.argument_dim"
  %n = "stream.argument_dim"() {index = 0 : i64, dim = 0 : i64} : () -> index
  %a = "stream.alloc"(%n) {kind = "transient"} : (index) -> !stream.resource
  // CHECK: "hal.record"
  "stream.dispatch"(%n, %x, %a) {access = array<i64: 1, 2>, callee = @scale, operandSegmentSizes = array<i32: 1, 2>} : (index, !stream.resource, !stream.resource) -> ()
  // CHECK: "hal.submit"
  // CHECK: "hal.load"
  %k = "stream.load"(%a) {offset = 8 : i64, element = "i64"} : (!stream.resource) -> i64
  // CHECK: "hal.record"
  // CHECK: "hal.submit"
  "stream.dispatch"(%n, %x, %a) {access = array<i64: 1, 2>, callee = @scale, operandSegmentSizes = array<i32: 1, 2>} : (index, !stream.resource, !stream.resource) -> ()
  return
}

// A loop comes after the work before it was submitted, and is given the places of its buffers.
// CHECK-LABEL: func.func @loop
func.func @loop() {
  // CHECK: [[C64:%.*]] = arith.constant 64
  %c64 = arith.constant 64 : index
  %x = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  %a = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  %b = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  // CHECK: "hal.submit"
  "stream.copy"(%x, %a) : (!stream.resource, !stream.resource) -> ()
  // CHECK: "hal.loop"({{.*}}body = @step, counts = array<i64: 0, 1, 0, 0>
  "stream.loop"(%x, %a, %b) {body = @step, trips = 3 : i64, counts = array<i64: 0, 1, 0, 0>, reads = array<i64>, rows = array<i64>, states = array<i64: 0>, access = array<i64: 1, 3, 3>, operandSegmentSizes = array<i32: 3>} : (!stream.resource, !stream.resource, !stream.resource) -> ()
  return
}

// Offsets of views of views are added up here, so that the recording is kept; a result does not part the work.
// CHECK-LABEL: func.func @views
func.func @views() {
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %x = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  %s = "stream.state"(%c64) {key = "s"} : (index) -> !stream.resource
  %r = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  %a = "stream.alloc"(%c512) {kind = "transient"} : (index) -> !stream.resource
  %v = "stream.view"(%a, %c128, %c128) : (!stream.resource, index, index) -> !stream.resource
  %u = "stream.view"(%v, %c64, %c64) : (!stream.resource, index, index) -> !stream.resource
  // CHECK: arith.constant 192
  // CHECK-NOT: arith.addi
  // CHECK: "hal.record"() ({
  // CHECK: "hal.dispatch"
  // CHECK: "hal.copy"
  // CHECK: }) {memo = {{[0-9]+}} : i64
  // CHECK: "hal.submit"
  // CHECK: "hal.result"
  "stream.dispatch"(%x, %u, %r) {access = array<i64: 1, 2, 2>, callee = @scale, operandSegmentSizes = array<i32: 0, 3>} : (!stream.resource, !stream.resource, !stream.resource) -> ()
  "stream.result"(%r, %c64) {index = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (!stream.resource, index) -> ()
  "stream.copy"(%u, %s) : (!stream.resource, !stream.resource) -> ()
  return
}

// Branches and loops until data say so come after the work before them, as loops do.
// CHECK-LABEL: func.func @calls
func.func @calls() {
  // CHECK: [[C64:%.*]] = arith.constant 64
  %c64 = arith.constant 64 : index
  %true = arith.constant true
  %x = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  %a = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  %f = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  // CHECK: "hal.submit"
  "stream.copy"(%x, %a) : (!stream.resource, !stream.resource) -> ()
  // CHECK: "hal.branch"({{.*}}, [[C64]], {{.*}}) {made = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 2, 2, 2>, otherwise = @no, places = array<i64: 0, 1>, then = @yes}
  "stream.branch"(%true, %c64, %x, %a) {then = @yes, otherwise = @no, made = 1 : i64, places = array<i64: 0, 1>, access = array<i64: 1, 2>, operandSegmentSizes = array<i32: 1, 1, 2>} : (i1, index, !stream.resource, !stream.resource) -> ()
  // CHECK: "hal.while"({{.*}}body = @step, kept = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 5, 5, 5>, places = array<i64>, states = 1
  "stream.while"(%true, %x, %f, %f, %f, %a) {body = @step, states = 1 : i64, kept = array<i64: 0>, places = array<i64>, access = array<i64: 1, 3, 3, 3, 2>, operandSegmentSizes = array<i32: 1, 0, 5>} : (i1, !stream.resource, !stream.resource, !stream.resource, !stream.resource, !stream.resource) -> ()
  return
}
