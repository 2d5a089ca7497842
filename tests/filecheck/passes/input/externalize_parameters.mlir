// RUN: eyas opt %s --passes externalize-parameters{max-inline-bytes=8} | filecheck %s

// CHECK: module attributes {flow.parameter_values = {
// CHECK-SAME: blob = dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> : tensor<3xf32>
// CHECK-SAME: constant_0_i64_3 = dense<[1, 2, 3]> : tensor<3xi64>
// CHECK-LABEL: func.func @main
func.func @main() -> (tensor<10x64xf32>, tensor<3xi64>, tensor<3xi64>, tensor<99xf32>, tensor<2xf32>, tensor<3xf32>) {
  // CHECK: [[W:%.*]] = "flow.parameter"() {key = "fc.weight"} : () -> tensor<10x64xf32>
  %w = arith.constant dense_resource<"fc.weight"> : tensor<10x64xf32>
  // Equal constants are one parameter.
  // CHECK: [[A:%.*]] = "flow.parameter"() {key = "constant_0_i64_3"} : () -> tensor<3xi64>
  %a = arith.constant dense<[1, 2, 3]> : tensor<3xi64>
  // CHECK: [[B:%.*]] = "flow.parameter"() {key = "constant_0_i64_3"} : () -> tensor<3xi64>
  %b = arith.constant dense<[1, 2, 3]> : tensor<3xi64>
  // A splat of any size and a small constant stay, because folding uses them.
  // CHECK: arith.constant dense<1.000000e+00> : tensor<99xf32>
  %splat = arith.constant dense<1.0> : tensor<99xf32>
  // CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %small = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // CHECK: [[D:%.*]] = "flow.parameter"() {key = "blob"} : () -> tensor<3xf32>
  %blob = arith.constant dense_resource<blob> : tensor<3xf32>
  // CHECK: return [[W]], [[A]], [[B]], {{%.*}}, {{%.*}}, [[D]]
  return %w, %a, %b, %splat, %small, %blob
    : tensor<10x64xf32>, tensor<3xi64>, tensor<3xi64>, tensor<99xf32>, tensor<2xf32>, tensor<3xf32>
}

{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F0000004000004040"
    }
  }
#-}
