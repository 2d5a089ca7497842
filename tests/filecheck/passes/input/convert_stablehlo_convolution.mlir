// RUN: eyas opt %s --passes convert-stablehlo-convolution | filecheck %s

// CHECK-DAG: [[X:#\w+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d3 * 3 + d5 * 2)>
// CHECK-DAG: [[W:#\w+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, d2, d4, d5)>
// CHECK-DAG: [[R:#\w+]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>

// CHECK-LABEL: func.func @groups
func.func @groups(%x: tensor<4x8x?xf32>, %w: tensor<32x1x2xf32>) -> tensor<4x32x?xf32> {
  // CHECK: [[P:%\w+]] = tensor.pad %arg0
  // CHECK: [[K:%\w+]] = tensor.expand_shape %arg1 {{.*}} : tensor<32x1x2xf32> into tensor<8x4x1x2xf32>
  // CHECK: [[N:%\w+]] = linalg.generic {indexing_maps = [[[X]], [[W]], [[R]]]
  // CHECK-SAME: ins([[P]], [[K]]
  // CHECK: arith.mulf
  // CHECK: arith.addf
  // CHECK: tensor.collapse_shape [[N]] {{\[\[}}0], [1, 2], [3]]
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {stride = [3], pad = [[1, 1]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64}
    : (tensor<4x8x?xf32>, tensor<32x1x2xf32>) -> tensor<4x32x?xf32>
  return %r : tensor<4x32x?xf32>
}

// Static images have a lowering upstream.
// CHECK-LABEL: func.func @static
// CHECK: stablehlo.convolution
func.func @static(%x: tensor<4x8x9xf32>, %w: tensor<32x8x2xf32>) -> tensor<4x32x8xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<4x8x9xf32>, tensor<32x8x2xf32>) -> tensor<4x32x8xf32>
  return %r : tensor<4x32x8xf32>
}

// CHECK-LABEL: func.func @complex
func.func @complex(%x: tensor<1x2x9xcomplex<f32>>, %w: tensor<3x2x2xcomplex<f32>>) -> tensor<1x3x7xcomplex<f32>> {
  // CHECK: complex.constant [0.000000e+00 : f32, 0.000000e+00 : f32]
  // CHECK: complex.mul
  // CHECK: complex.add
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {rhs_dilate = [2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x2x9xcomplex<f32>>, tensor<3x2x2xcomplex<f32>>) -> tensor<1x3x7xcomplex<f32>>
  return %r : tensor<1x3x7xcomplex<f32>>
}
