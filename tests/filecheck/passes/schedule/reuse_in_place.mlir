// RUN: eyas opt %s --passes reuse-in-place | filecheck %s

#id = affine_map<(a, b) -> (a, b)>
#tr = affine_map<(a, b) -> (b, a)>

// CHECK-LABEL: func.func @main
func.func @main() {
  %c64 = arith.constant 64 : index
  %x = "stream.argument"() {index = 0 : i64} : () -> !stream.resource
  %a = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  // An argument belongs to the caller.
  // CHECK: "stream.dispatch"([[X:%.*]], [[A:%.*]]) {{.*}}@same
  "stream.dispatch"(%x, %a) {access = array<i64: 1, 2>, callee = @same, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  %b = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  // Each element is read where it is written, and nobody reads %a later.
  // CHECK: "stream.dispatch"([[A]], [[A]]) {{.*}}@same
  "stream.dispatch"(%a, %b) {access = array<i64: 1, 2>, callee = @same, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  %c = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  // A transpose would overwrite what it still has to read.
  // CHECK: "stream.dispatch"([[A]], [[C:%.*]]) {{.*}}@other
  "stream.dispatch"(%b, %c) {access = array<i64: 1, 2>, callee = @other, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  %d = "stream.alloc"(%c64) {kind = "transient"} : (index) -> !stream.resource
  // %c is read once more.
  // CHECK: "stream.dispatch"([[C]], [[D:%.*]]) {{.*}}@same
  "stream.dispatch"(%c, %d) {access = array<i64: 1, 2>, callee = @same, operandSegmentSizes = array<i32: 0, 2>} : (!stream.resource, !stream.resource) -> ()
  %e = "stream.alloc"(%c64) {kind = "result"} : (index) -> !stream.resource
  "stream.copy"(%c, %e) : (!stream.resource, !stream.resource) -> ()
  return
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
func.func private @other(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {flow.executable} {
  %e = tensor.empty() : tensor<4x4xf32>
  %0 = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
