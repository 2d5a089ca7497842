// RUN: eyas opt %s --passes trim-windows,canonicalize | filecheck %s

// Only the middle tap sees the image: a product with one matrix, and no padding.
// CHECK-LABEL: func.func @middle
// CHECK-SAME: [[X:%.*]]: tensor<1x8x8x4xf32>, [[W:%.*]]: tensor<3x3x4x16xf32>
func.func @middle(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x16xf32>, %init: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  // CHECK-NOT: tensor.pad
  // CHECK: [[T:%.*]] = tensor.extract_slice [[W]][1, 1, 0, 0] [1, 1, 4, 16] [1, 1, 1, 1]
  // CHECK: linalg.conv_2d_nhwc_hwcf {dilations = dense<9> {{.*}} ins([[X]], [[T]] :
  %p = tensor.pad %x low[0, 9, 9, 0] high[0, 9, 9, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x4xf32> to tensor<1x26x26x4xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<9> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x26x26x4xf32>, tensor<3x3x4x16xf32>) outs(%init : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}

// Five taps, of which the outer ones see nothing in one direction only; less padding remains.
// CHECK-LABEL: func.func @depthwise
// CHECK-SAME: [[X:%.*]]: tensor<1x4x9x8xf32>, [[W:%.*]]: tensor<5x5x8xf32>
func.func @depthwise(%x: tensor<1x4x9x8xf32>, %w: tensor<5x5x8xf32>, %init: tensor<1x4x9x8xf32>) -> tensor<1x4x9x8xf32> {
  %zero = arith.constant 0.0 : f32
  // CHECK-DAG: [[T:%.*]] = tensor.extract_slice [[W]][1, 0, 0] [3, 5, 8] [1, 1, 1]
  // CHECK-DAG: [[P:%.*]] = tensor.pad [[X]] low[0, 3, 6, 0] high[0, 3, 6, 0]
  // CHECK: linalg.depthwise_conv_2d_nhwc_hwc {{.*}} ins([[P]], [[T]] : tensor<1x10x21x8xf32>, tensor<3x5x8xf32>)
  %p = tensor.pad %x low[0, 6, 6, 0] high[0, 6, 6, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x4x9x8xf32> to tensor<1x16x21x8xf32>
  %y = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<3> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x16x21x8xf32>, tensor<5x5x8xf32>) outs(%init : tensor<1x4x9x8xf32>) -> tensor<1x4x9x8xf32>
  return %y : tensor<1x4x9x8xf32>
}

// Ones around the image are not nothing.
// CHECK-LABEL: func.func @ones
// CHECK-NOT: tensor.extract_slice
func.func @ones(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x16xf32>, %init: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> {
  %one = arith.constant 1.0 : f32
  %p = tensor.pad %x low[0, 9, 9, 0] high[0, 9, 9, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %one : f32
  } : tensor<1x8x8x4xf32> to tensor<1x26x26x4xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<9> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x26x26x4xf32>, tensor<3x3x4x16xf32>) outs(%init : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}

// Every tap sees something.
// CHECK-LABEL: func.func @all
// CHECK-NOT: tensor.extract_slice
func.func @all(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x16xf32>, %init: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 7, 7, 0] high[0, 7, 7, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x4xf32> to tensor<1x22x22x4xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<7> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x22x22x4xf32>, tensor<3x3x4x16xf32>) outs(%init : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}
