// RUN: eyas opt %s --passes convert-hal-to-vm | filecheck %s

// @scale runs 4 workgroups of 16 along x; @rows as many as the push constant asks for, 8 to a workgroup.
"hal.executable"() {sym_name = "kernels", target = "llvm-cpu", format = "elf-x86_64", features = "", exports = [
  {name = "scale", bindings = 2 : i64, constants = 0 : i64, grid = [array<i64: 16, 64>], strategy = "rows", knobs = "", rejected = []},
  {name = "rows", bindings = 1 : i64, constants = 1 : i64, grid = [array<i64: 8, 2, 0>], strategy = "rows", knobs = "", rejected = []}]} : () -> ()

// CHECK-LABEL: func.func @main()
func.func @main() {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // CHECK: [[X:%.*]] = "vm.arg"() {{.*}}index = 0
  %x = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  // CHECK: [[N:%.*]] = "vm.arg_dim"
  %n = "hal.argument_dim"() {index = 0 : i64, dim = 0 : i64} : () -> index
  // CHECK: [[R:%.*]] = "vm.buffer_alloc"({{.*}}) {{.*}}kind = 1
  %r = "hal.allocate"(%c64) {kind = "result"} : (index) -> !hal.buffer
  // A memo is recorded only while its global is null.
  // CHECK: [[OLD:%.*]] = "vm.global_load"() {{.*}}slot = 0
  // CHECK: [[NULL:%.*]] = "vm.is_null"([[OLD]])
  // CHECK: cf.cond_br [[NULL]], ^bb1, ^bb2
  // CHECK: ^bb1:
  // CHECK: [[NEW:%.*]] = "vm.cmd_create"() {{.*}}slots = 2
  // CHECK: [[FOUR:%.*]] = "vm.const_i64"() {{.*}}value = 4
  // CHECK: "vm.cmd_dispatch"([[NEW]], [[FOUR]],{{.*}}bindings_slots = array<i64: 0, 1>{{.*}}export = 0
  // CHECK: "vm.cmd_end"([[NEW]])
  // CHECK: "vm.global_store"([[NEW]]) {{.*}}slot = 0
  // CHECK: ^bb2:
  // CHECK: [[KEPT:%.*]] = "vm.global_load"
  %once = "hal.record"() ({
    "hal.dispatch"(%c0, %c0, %c64, %c64) {callee = @scale, slots = array<i64: 0, 1>, access = array<i64: 1, 2>, operandSegmentSizes = array<i32: 0, 0, 2, 2>} : (index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = 0 : i64, slots = 2 : i64} : () -> !hal.command_buffer
  // CHECK: "vm.submit"([[KEPT]], [[X]], [[R]])
  "hal.submit"(%once, %x, %r) {operandSegmentSizes = array<i32: 1, 2>} : (!hal.command_buffer, !hal.buffer, !hal.buffer) -> ()
  // Without one it is recorded in each call; ceil(2 * n / 8) workgroups.
  // CHECK-NOT: vm.global
  // CHECK: [[TWICE:%.*]] = "vm.mul"({{.*}}, [[N]])
  // CHECK: [[GROUPS:%.*]] = "vm.ceildivs"([[TWICE]],
  // CHECK: "vm.cmd_dispatch"({{%.*}}, [[GROUPS]],{{.*}}export = 1
  %each = "hal.record"() ({
    "hal.dispatch"(%n, %c0, %c64) {callee = @rows, slots = array<i64: 0>, access = array<i64: 3>, operandSegmentSizes = array<i32: 1, 0, 1, 1>} : (index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = -1 : i64, slots = 1 : i64} : () -> !hal.command_buffer
  "hal.submit"(%each, %r) {operandSegmentSizes = array<i32: 1, 1>} : (!hal.command_buffer, !hal.buffer) -> ()
  // CHECK: "vm.set_result"([[R]]
  "hal.result"(%r, %n) {index = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (!hal.buffer, index) -> ()
  // CHECK: "vm.return"
  return
}

// A truth value that is loaded is 0 or 1, as those are that comparisons give.
// CHECK-LABEL: func.func @negated
func.func @negated() attributes {flow.signature = "{'arguments': [['c', 'bool', []]], 'results': [], 'symbols': {}}"} {
  %c0 = arith.constant 0 : index
  %true = arith.constant true
  %c = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  // CHECK: [[LOADED:%.*]] = "vm.buffer_load"
  %0 = "hal.load"(%c, %c0) {element = "i1"} : (!hal.buffer, index) -> i64
  // CHECK: [[TRUTH:%.*]] = "vm.zext"([[LOADED]]) {width = 1 : i64}
  %1 = arith.trunci %0 : i64 to i1
  // CHECK: [[NOT:%.*]] = "vm.xor"([[TRUTH]]
  %2 = arith.xori %1, %true : i1
  // CHECK: "vm.check"([[NOT]])
  cf.assert %2, "must be false"
  return
}

// A loop: the body's recording is made before it, each step submits it with rows by number and states by turns.
// CHECK-LABEL: func.func @loop
func.func @loop() attributes {flow.signature = "{'arguments': [], 'results': [], 'symbols': {}}"} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c24 = arith.constant 24 : index
  %xs = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  %h = "hal.argument"() {index = 1 : i64} : () -> !hal.buffer
  %a = "hal.allocate"(%c8) {kind = "result"} : (index) -> !hal.buffer
  %b = "hal.allocate"(%c8) {kind = "transient"} : (index) -> !hal.buffer
  // CHECK: "vm.cmd_end"
  // CHECK: [[H:%.*]] = "vm.buffer_view"
  // CHECK: [[A:%.*]] = "vm.buffer_view"
  // CHECK: [[B:%.*]] = "vm.buffer_view"
  // CHECK: cf.br ^[[HEAD:.*]]({{%.*}}, [[H]], [[A]], [[B]]
  // CHECK: ^[[HEAD]]([[STEP:%.*]]: i64, [[NOW:%.*]]: !vm.ref, [[NEXT:%.*]]: !vm.ref, [[SPARE:%.*]]: !vm.ref):
  // CHECK: "vm.mul"([[STEP]]
  // CHECK: [[ROW:%.*]] = "vm.buffer_view"
  // CHECK: [[MORE:%.*]] = "vm.add"([[STEP]]
  // CHECK: "vm.submit"({{%.*}}, [[ROW]], [[NOW]], [[NEXT]])
  // CHECK: "vm.lts"([[MORE]]
  // CHECK: cf.cond_br {{%.*}}, ^[[HEAD]]([[MORE]], [[NEXT]], [[SPARE]], [[NEXT]]
  "hal.loop"(%xs, %h, %a, %b, %c0, %c0, %c0, %c0, %c24, %c8, %c8, %c8) {body = @step, trips = 3 : i64, counts = array<i64: 1, 1, 0, 0>, reads = array<i64: 0, 1, 8>, rows = array<i64>, states = array<i64: 0>, operandSegmentSizes = array<i32: 4, 4, 4>} : (!hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer, index, index, index, index, index, index, index, index) -> ()
  return
}
// CHECK-NOT: @step
func.func private @step() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %x = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  %h = "hal.argument"() {index = 1 : i64} : () -> !hal.buffer
  %r = "hal.allocate"(%c8) {kind = "result"} : (index) -> !hal.buffer
  %0 = "hal.record"() ({
    "hal.copy"(%c0, %c0, %c8, %c8) {slots = array<i64: 0, 2>, operandSegmentSizes = array<i32: 0, 2, 2>} : (index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = -1 : i64, slots = 3 : i64} : () -> !hal.command_buffer
  "hal.submit"(%0, %x, %h, %r) {operandSegmentSizes = array<i32: 1, 3>} : (!hal.command_buffer, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
  "hal.result"(%r, %c8) {index = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (!hal.buffer, index) -> ()
  return
}

// One of two functions runs, on the same buffers.
// CHECK-LABEL: func.func @branch
func.func @branch() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  %x = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  %r = "hal.allocate"(%c8) {kind = "result"} : (index) -> !hal.buffer
  // CHECK: [[X:%.*]] = "vm.buffer_view"
  // CHECK: [[R:%.*]] = "vm.buffer_view"
  // CHECK: cf.cond_br {{%.*}}, ^[[YES:.*]], ^[[NO:.*]]
  // CHECK: ^[[YES]]:
  // CHECK: "vm.submit"({{%.*}}, [[X]], [[R]])
  // CHECK: cf.br ^[[DONE:.*]]
  // CHECK: ^[[NO]]:
  // CHECK: "vm.submit"({{%.*}}, [[X]], [[R]])
  // CHECK: cf.br ^[[DONE]]
  // CHECK: ^[[DONE]]:
  "hal.branch"(%true, %x, %r, %c0, %c0, %c8, %c8) {then = @yes, otherwise = @no, made = 1 : i64, places = array<i64>, operandSegmentSizes = array<i32: 1, 0, 2, 2, 2>} : (i1, !hal.buffer, !hal.buffer, index, index, index, index) -> ()
  return
}
// CHECK-NOT: @yes
func.func private @yes() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %x = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  %r = "hal.allocate"(%c8) {kind = "result"} : (index) -> !hal.buffer
  %0 = "hal.record"() ({
    "hal.copy"(%c0, %c0, %c8, %c8) {slots = array<i64: 0, 1>, operandSegmentSizes = array<i32: 0, 2, 2>} : (index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = -1 : i64, slots = 2 : i64} : () -> !hal.command_buffer
  "hal.submit"(%0, %x, %r) {operandSegmentSizes = array<i32: 1, 2>} : (!hal.command_buffer, !hal.buffer, !hal.buffer) -> ()
  "hal.result"(%r, %c8) {index = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (!hal.buffer, index) -> ()
  return
}
// CHECK-NOT: @no
func.func private @no() {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %x = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  %r = "hal.allocate"(%c8) {kind = "result"} : (index) -> !hal.buffer
  %0 = "hal.record"() ({
    "hal.copy"(%c0, %c0, %c8, %c8) {slots = array<i64: 0, 1>, operandSegmentSizes = array<i32: 0, 2, 2>} : (index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = -1 : i64, slots = 2 : i64} : () -> !hal.command_buffer
  "hal.submit"(%0, %x, %r) {operandSegmentSizes = array<i32: 1, 2>} : (!hal.command_buffer, !hal.buffer, !hal.buffer) -> ()
  "hal.result"(%r, %c8) {index = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (!hal.buffer, index) -> ()
  return
}

// A step is recorded once; it runs as long as the byte says so, on buffers that take turns. The last value is copied.
// CHECK-LABEL: func.func @until
func.func @until() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %true = arith.constant true
  %x = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  %f = "hal.allocate"(%c1) {kind = "transient"} : (index) -> !hal.buffer
  %a = "hal.allocate"(%c8) {kind = "transient"} : (index) -> !hal.buffer
  %b = "hal.allocate"(%c8) {kind = "transient"} : (index) -> !hal.buffer
  %r = "hal.allocate"(%c8) {kind = "result"} : (index) -> !hal.buffer
  // CHECK: [[X:%.*]] = "vm.buffer_view"
  // CHECK: [[F:%.*]] = "vm.buffer_view"
  // CHECK: [[A:%.*]] = "vm.buffer_view"
  // CHECK: [[B:%.*]] = "vm.buffer_view"
  // CHECK: [[R:%.*]] = "vm.buffer_view"
  // CHECK: "vm.cmd_end"
  // CHECK: cf.br ^[[HEAD:.*]]({{%.*}}, [[X]], [[A]], [[B]]
  // CHECK: ^[[HEAD]]([[GO:%.*]]: i64, [[NOW:%.*]]: !vm.ref, [[NEXT:%.*]]: !vm.ref, [[SPARE:%.*]]: !vm.ref):
  // CHECK: "vm.is_nonzero"([[GO]])
  // CHECK: cf.cond_br {{%.*}}, ^[[BODY:.*]], ^[[DONE:.*]]
  // CHECK: ^[[BODY]]:
  // CHECK: "vm.submit"({{%.*}}, [[NOW]], [[NEXT]], [[F]])
  // CHECK: [[MORE:%.*]] = "vm.buffer_load"([[F]]
  // CHECK: cf.br ^[[HEAD]]([[MORE]], [[NEXT]], [[SPARE]], [[NEXT]]
  // CHECK: ^[[DONE]]:
  // CHECK: "vm.cmd_copy"
  // CHECK: "vm.submit"({{%.*}}, [[NOW]], [[R]])
  "hal.while"(%true, %x, %f, %a, %b, %r, %c0, %c0, %c0, %c0, %c0, %c8, %c1, %c8, %c8, %c8) {body = @again, states = 1 : i64, kept = array<i64: 0>, places = array<i64>, operandSegmentSizes = array<i32: 1, 0, 5, 5, 5>} : (i1, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer, !hal.buffer, index, index, index, index, index, index, index, index, index, index) -> ()
  return
}
// CHECK-NOT: @again
func.func private @again() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %x = "hal.argument"() {index = 0 : i64} : () -> !hal.buffer
  %go = "hal.allocate"(%c1) {kind = "result"} : (index) -> !hal.buffer
  %r = "hal.allocate"(%c8) {kind = "result"} : (index) -> !hal.buffer
  %0 = "hal.record"() ({
    "hal.copy"(%c0, %c0, %c8, %c8) {slots = array<i64: 0, 1>, operandSegmentSizes = array<i32: 0, 2, 2>} : (index, index, index, index) -> ()
    "hal.copy"(%c0, %c0, %c1, %c1) {slots = array<i64: 0, 2>, operandSegmentSizes = array<i32: 0, 2, 2>} : (index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = -1 : i64, slots = 3 : i64} : () -> !hal.command_buffer
  "hal.submit"(%0, %x, %r, %go) {operandSegmentSizes = array<i32: 1, 3>} : (!hal.command_buffer, !hal.buffer, !hal.buffer, !hal.buffer) -> ()
  "hal.result"(%go) {index = 0 : i64, operandSegmentSizes = array<i32: 1, 0>} : (!hal.buffer) -> ()
  "hal.result"(%r, %c8) {index = 1 : i64, operandSegmentSizes = array<i32: 1, 1>} : (!hal.buffer, index) -> ()
  return
}
