// RUN: eyas opt %s --passes convert-stablehlo-windows | filecheck %s

// CHECK: [[READ:#\w+]] = affine_map<(d0, d1, d2, d3) -> (d0 + d2, d1 * 2 + d3)>
// CHECK-LABEL: func.func @pool
// CHECK-SAME: [[X:%\w+]]: tensor<?x8xf32>
func.func @pool(%x: tensor<?x8xf32>) -> tensor<?x4xf32> {
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // CHECK: [[P:%\w+]] = tensor.pad [[X]]
  // CHECK: linalg.generic {indexing_maps = [[[READ]], {{.*}}ins([[P]], {{.*}}
  // CHECK: arith.maximumf
  %r = "stablehlo.reduce_window"(%x, %i) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %m = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) {window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>}
    : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// A cumulative sum along a dynamic dimension: the window has its size.
// CHECK-LABEL: func.func @cumulative
// CHECK: tensor.pad
// CHECK: linalg.generic
// CHECK: arith.addi
// CHECK-NOT: stablehlo.custom_call
// CHECK-NOT: @reducer
func.func @cumulative(%x: tensor<?xi8>, %n: tensor<1xi32>, %p: tensor<1x2xi32>) -> tensor<?xi8> {
  %i = stablehlo.constant dense<0> : tensor<i8>
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %n, %one, %one, %one, %p)
    {called_computations = [@reducer]}
    : (tensor<?xi8>, tensor<i8>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xi8>
  return %r : tensor<?xi8>
}
func.func private @reducer(%a: tensor<i8>, %b: tensor<i8>) -> tensor<i8> {
  %s = stablehlo.add %a, %b : tensor<i8>
  return %s : tensor<i8>
}
