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
