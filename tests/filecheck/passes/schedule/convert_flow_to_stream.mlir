// RUN: eyas opt %s --passes convert-flow-to-stream,canonicalize,cse | filecheck %s

// CHECK-LABEL: func.func @main()
func.func @main(%x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  // CHECK-DAG: [[X:%.*]] = "stream.argument"() {{.*}}index = 0
  // CHECK-DAG: [[N:%.*]] = "stream.argument_dim"() {{.*}}dim = 0
  // CHECK-DAG: [[W:%.*]] = "stream.parameter"() {{.*}}key = "weight"
  %w = "flow.parameter"() {key = "weight"} : () -> tensor<4xf32>
  // 16 bytes a row, and memory of its own only while the call lasts.
  // CHECK: [[BYTES:%.*]] = arith.muli
  // CHECK: [[A:%.*]] = "stream.alloc"([[BYTES]]) {{.*}}kind = "transient"
  // CHECK: "stream.dispatch"([[N]], [[X]], [[W]], [[A]]) {{.*}}access = array<i64: 1, 1, 2>{{.*}}callee = @scale
  %a = call @scale(%x, %w, %n) {flow.dispatch} : (tensor<?x4xf32>, tensor<4xf32>, index) -> tensor<?x4xf32>
  "flow.tie_shape"(%a, %n) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x4xf32>, index) -> ()
  // What leaves the program is written where the caller finds it.
  // CHECK: [[B:%.*]] = "stream.alloc"([[BYTES]]) {{.*}}kind = "result"
  // CHECK: "stream.dispatch"([[N]], [[A]], [[W]], [[B]])
  %b = call @scale(%a, %w, %n) {flow.dispatch} : (tensor<?x4xf32>, tensor<4xf32>, index) -> tensor<?x4xf32>
  "flow.tie_shape"(%b, %n) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x4xf32>, index) -> ()
  // CHECK: "stream.result"([[B]], [[N]]
  // An argument that is returned unchanged is copied.
  // CHECK: [[C:%.*]] = "stream.alloc"({{.*}}) {{.*}}kind = "result"
  // CHECK: "stream.copy"([[X]], [[C]])
  // CHECK: "stream.result"([[C]]
  return %b, %x : tensor<?x4xf32>, tensor<?x4xf32>
}
func.func private @scale(tensor<?x4xf32>, tensor<4xf32>, index) -> tensor<?x4xf32> attributes {flow.executable}

// New values of state are copied into it after everything else; a value that comes from another variable is saved first.
// CHECK-LABEL: func.func @swap
// CHECK-DAG: [[A:%.*]] = "stream.state"({{.*}}) {key = "a"}
// CHECK-DAG: [[B:%.*]] = "stream.state"({{.*}}) {key = "b"}
// CHECK: "stream.copy"([[A]], {{%.*}})
// CHECK: stream.result
// CHECK: "stream.copy"([[B]], [[OLD_B:%[0-9]+]])
// CHECK: "stream.copy"([[A]], [[OLD_A:%[0-9]+]])
// CHECK: "stream.copy"([[OLD_B]], [[A]])
// CHECK: "stream.copy"([[OLD_A]], [[B]])
func.func @swap() -> tensor<4xf32> {
  %a = "flow.state"() {key = "a"} : () -> tensor<4xf32>
  %b = "flow.state"() {key = "b"} : () -> tensor<4xf32>
  "flow.set_state"(%b) {key = "a"} : (tensor<4xf32>) -> ()
  "flow.set_state"(%a) {key = "b"} : (tensor<4xf32>) -> ()
  return %a : tensor<4xf32>
}

// A loop: the first state is a row as well, so that its last value is a part of the rows; the second has two buffers,
// of which an even number of steps ends in the second.
// CHECK-LABEL: func.func @loop
func.func @loop(%xs: tensor<4x2xf32>, %h: tensor<2xf32>, %c: tensor<3xf32>) -> (tensor<4x2xf32>, tensor<3xf32>) {
  // CHECK: [[YS:%.*]] = "stream.alloc"({{.*}}) {kind = "result"}
  // CHECK: [[LAST:%.*]] = "stream.alloc"({{.*}}) {kind = "result"}
  // CHECK: [[OTHER:%.*]] = "stream.alloc"({{.*}}) {kind = "transient"}
  // CHECK: "stream.loop"({{%.*}}, {{%.*}}, {{%.*}}, [[YS]], [[OTHER]], [[LAST]])
  // CHECK-SAME: access = array<i64: 1, 1, 1, 2, 3, 3>, body = @step, counts = array<i64: 1, 2, 0, 1>, {{.*}}reads = array<i64: 0, 1, 8>, rows = array<i64: 0, 0, 1, 8>, states = array<i64: 0, 1>, trips = 4
  %r:3 = call @loop_steps(%xs, %h, %c) {flow.loop = @step, flow.trips = 4 : i64, flow.reads = array<i64: 0, 1>, flow.rows = array<i64: 0, 0, 1>, flow.states = array<i64: 0, 1>} : (tensor<4x2xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<3xf32>)
  return %r#0, %r#2 : tensor<4x2xf32>, tensor<3xf32>
}
func.func private @loop_steps(tensor<4x2xf32>, tensor<2xf32>, tensor<3xf32>) -> (tensor<4x2xf32>, tensor<2xf32>, tensor<3xf32>)
func.func private @step(%x: tensor<2xf32>, %h: tensor<2xf32>, %c: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
  return %h, %c : tensor<2xf32>, tensor<3xf32>
}

// A branch is given the sizes that vary, and writes what leaves the program where it is to be.
// CHECK-LABEL: func.func @branch()
func.func @branch(%c: tensor<i1>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // CHECK-DAG: [[X:%.*]] = "stream.argument"() {index = 1
  // CHECK-DAG: [[ROWS:%.*]] = "stream.argument_dim"() {dim = 0 : i64, index = 1
  // CHECK: [[GO:%.*]] = arith.trunci
  // CHECK: [[R:%.*]] = "stream.alloc"({{.*}}) {kind = "result"}
  // CHECK: "stream.branch"([[GO]], [[ROWS]], [[X]], [[R]])
  // CHECK-SAME: access = array<i64: 1, 2>, made = 1 : i64, {{.*}}otherwise = @other, places = array<i64: 0, 0>, then = @one
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x2xf32>
  %go = tensor.extract %c[] : tensor<i1>
  %r = call @either(%go, %x) {flow.branches = [@one, @other]} : (i1, tensor<?x2xf32>) -> tensor<?x2xf32>
  "flow.tie_shape"(%r, %rows) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x2xf32>, index) -> ()
  return %r : tensor<?x2xf32>
}
func.func private @either(i1, tensor<?x2xf32>) -> tensor<?x2xf32>
func.func private @one(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  return %x : tensor<?x2xf32>
}
func.func private @other(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
  return %x : tensor<?x2xf32>
}

// A loop until its step says that it is over: a byte for that, two buffers for each state, and what is needed of them.
// CHECK-LABEL: func.func @until()
func.func @until(%c: tensor<i1>, %i: tensor<i64>, %x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK: [[GO:%.*]] = arith.trunci
  // CHECK: [[FLAG:%.*]] = "stream.alloc"({{.*}}) {kind = "transient"}
  // CHECK: [[I0:%.*]] = "stream.alloc"({{.*}}) {kind = "transient"}
  // CHECK: [[I1:%.*]] = "stream.alloc"({{.*}}) {kind = "transient"}
  // CHECK: [[X0:%.*]] = "stream.alloc"({{.*}}) {kind = "transient"}
  // CHECK: [[X1:%.*]] = "stream.alloc"({{.*}}) {kind = "transient"}
  // CHECK: [[R:%.*]] = "stream.alloc"({{.*}}) {kind = "result"}
  // CHECK: "stream.while"([[GO]], {{%.*}}, {{%.*}}, [[FLAG]], [[I0]], [[I1]], [[X0]], [[X1]], [[R]])
  // CHECK-SAME: access = array<i64: 1, 1, 3, 3, 3, 3, 3, 2>, body = @next, kept = array<i64: 1>, {{.*}}states = 2
  %go = tensor.extract %c[] : tensor<i1>
  %r:2 = call @steps(%go, %i, %x) {flow.while = @next} : (i1, tensor<i64>, tensor<3xf32>) -> (tensor<i64>, tensor<3xf32>)
  return %r#1 : tensor<3xf32>
}
func.func private @steps(i1, tensor<i64>, tensor<3xf32>) -> (tensor<i64>, tensor<3xf32>)
func.func private @next(%i: tensor<i64>, %x: tensor<3xf32>) -> (tensor<i1>, tensor<i64>, tensor<3xf32>) {
  %no = "flow.parameter"() {key = "no"} : () -> tensor<i1>
  return %no, %i, %x : tensor<i1>, tensor<i64>, tensor<3xf32>
}
