// RUN: eyas opt %s --passes note-work | filecheck %s

// Flops and bytes of one dispatch and how often it is dispatched; where they depend on the call, -1 and products of a
// factor and push constants. Then ops in words and the remarks of the strategy.
// CHECK: module attributes {hal.work = {
// CHECK-SAME: any = [array<i64: -1, -1, 0>, ["matmul ?x2xf32"], [], [array<i64: 16, 0>]]
// CHECK-SAME: product = [array<i64: 128, 224, 2>, ["matmul 8x2xf32"], ["few lanes"], []]
// CHECK: func.func @main
func.func @main() {
  %c0 = arith.constant 0 : index
  %end = arith.constant -1 : index
  %r = "hal.record"() ({
    "hal.dispatch"(%c0, %c0, %c0, %end, %end, %end) {access = array<i64: 1, 1, 2>, callee = @product, operandSegmentSizes = array<i32: 0, 0, 3, 3>, slots = array<i64: 0, 1, 2>} : (index, index, index, index, index, index) -> ()
    "hal.dispatch"(%c0, %c0, %c0, %end, %end, %end) {access = array<i64: 1, 1, 2>, callee = @product, operandSegmentSizes = array<i32: 0, 0, 3, 3>, slots = array<i64: 0, 1, 3>} : (index, index, index, index, index, index) -> ()
    "hal.end"() : () -> ()
  }) {memo = 0 : i64, slots = 4 : i64} : () -> !hal.command_buffer
  return
}

// CHECK: func.func private @product
func.func private @product(%x: tensor<8x4xf32>, %w: tensor<4x2xf32>) -> tensor<8x2xf32> attributes {codegen.remarks = ["few lanes"], flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<8x4xf32>, tensor<4x2xf32>) outs(%init : tensor<8x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}

func.func private @any(%x: tensor<?x4xf32>, %w: tensor<4x2xf32>, %n: index) -> tensor<?x2xf32> attributes {flow.executable, dim_args = array<i64: 0, 0>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x2xf32>) -> tensor<?x2xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<?x4xf32>, tensor<4x2xf32>) outs(%init : tensor<?x2xf32>) -> tensor<?x2xf32>
  return %0 : tensor<?x2xf32>
}
