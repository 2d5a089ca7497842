// RUN: eyas opt %s --passes write-state-in-place | filecheck %s

#id = affine_map<(a, b) -> (a, b)>
#tr = affine_map<(a, b) -> (b, a)>

// Each element is read where it is written; a later reader of the old value is first served.
// CHECK-LABEL: func.func @elementwise
// CHECK: [[S:%.*]] = "stream.state"
// CHECK: "stream.dispatch"([[S]], {{.*}}@transpose
// CHECK: "stream.dispatch"([[S]], [[S]]) {{.*}}@same
// CHECK-NOT: stream.copy
func.func @elementwise() {
  %c64 = arith.constant 64 : index
  %s = "stream.state"(%c64) {key = "s"} : (index) -> !stream.resource
  %new = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  "stream.dispatch"(%s, %new) {access = array<i64: 1, 2>, callee = @same, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  %r = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  "stream.dispatch"(%s, %r) {access = array<i64: 1, 2>, callee = @transpose, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  "stream.copy"(%new, %s) : (!stream.resource, !stream.resource) -> ()
  return
}

// A transpose would overwrite what it still has to read.
// CHECK-LABEL: func.func @transposed
// CHECK: stream.copy
func.func @transposed() {
  %c64 = arith.constant 64 : index
  %s = "stream.state"(%c64) {key = "s"} : (index) -> !stream.resource
  %new = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  "stream.dispatch"(%s, %new) {access = array<i64: 1, 2>, callee = @transpose, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  "stream.copy"(%new, %s) : (!stream.resource, !stream.resource) -> ()
  return
}

// The new value is needed before the last reader of the old one: the dispatch cannot wait.
// CHECK-LABEL: func.func @needed
// CHECK: stream.copy
func.func @needed() {
  %c64 = arith.constant 64 : index
  %s = "stream.state"(%c64) {key = "s"} : (index) -> !stream.resource
  %new = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  "stream.dispatch"(%s, %new) {access = array<i64: 1, 2>, callee = @same, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  %r = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  "stream.dispatch"(%new, %r) {access = array<i64: 1, 2>, callee = @transpose, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  %q = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  "stream.dispatch"(%s, %q) {access = array<i64: 1, 2>, callee = @transpose, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  "stream.copy"(%new, %s) : (!stream.resource, !stream.resource) -> ()
  return
}

// Only a part changes: a variant of the executable leaves the rest alone.
// CHECK-LABEL: func.func @part
// CHECK: [[S:%.*]] = "stream.state"
// CHECK: "stream.dispatch"({{.*}}, [[S]], [[S]]) {access = array<i64: 1, 3, 2>, callee = @insert_in_place_1_0
// CHECK-NOT: stream.copy
func.func @part() {
  %c64 = arith.constant 64 : index
  %s = "stream.state"(%c64) {key = "s"} : (index) -> !stream.resource
  %row = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  %new = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  "stream.dispatch"(%row, %s, %new) {access = array<i64: 1, 1, 2>, callee = @insert, operandSegmentSizes = array<i32: 0, 3>} : (!stream.resource, !stream.resource, !stream.resource) -> ()
  "stream.copy"(%new, %s) : (!stream.resource, !stream.resource) -> ()
  return
}

// CHECK-NOT: func.func private @insert(
// CHECK: func.func private @insert_in_place_1_0
// CHECK-SAME: codegen.strategy = #codegen.strategy<"loops", {}>
// CHECK-SAME: flow.in_place = array<i64: 1, 0>
func.func private @insert(%row: tensor<1x4xf32>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {flow.executable} {
  %0 = tensor.insert_slice %row into %x[2, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @same(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {flow.executable} {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %twice = arith.addf %i, %i : f32
    linalg.yield %twice : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @transpose(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {flow.executable} {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
