// RUN: eyas opt %s --passes convert-conv-layout,canonicalize | filecheck %s

// CHECK-LABEL: func.func @conv
// CHECK-SAME: [[X:%.*]]: tensor<1x3x8x8xf32>, [[W:%.*]]: tensor<16x3x3x3xf32>
func.func @conv(%x: tensor<1x3x8x8xf32>, %w: tensor<16x3x3x3xf32>) -> tensor<1x16x6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x6x6xf32>
  // The fill is made with channels innermost; nothing transposes it.
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x16x6x6xf32>) -> tensor<1x16x6x6xf32>
  // CHECK-DAG: linalg.transpose ins([[X]] : {{.*}}) {{.*}} permutation = [0, 2, 3, 1]
  // CHECK-DAG: linalg.transpose ins([[W]] : {{.*}}) {{.*}} permutation = [2, 3, 1, 0]
  // CHECK: [[INIT:%.*]] = linalg.fill {{.*}} -> tensor<1x6x6x16xf32>
  // CHECK: [[Y:%.*]] = linalg.conv_2d_nhwc_hwcf {{.*}} outs([[INIT]] : tensor<1x6x6x16xf32>)
  // CHECK: linalg.transpose ins([[Y]] : {{.*}}) {{.*}} permutation = [0, 3, 1, 2]
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>) outs(%init : tensor<1x16x6x6xf32>) -> tensor<1x16x6x6xf32>
  return %y : tensor<1x16x6x6xf32>
}

// The strides stay; a window has no channels to move.
// CHECK-LABEL: func.func @pool
func.func @pool(%x: tensor<1x8x8x8xf32>, %init: tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32> {
  %window = tensor.empty() : tensor<2x2xf32>
  // CHECK: linalg.pooling_nhwc_max {{.*}}strides = dense<2> {{.*}}tensor<1x8x8x8xf32>, tensor<2x2xf32>
  %y = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%x, %window : tensor<1x8x8x8xf32>, tensor<2x2xf32>) outs(%init : tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
  return %y : tensor<1x8x4x4xf32>
}

// Channels are innermost already.
// CHECK-LABEL: func.func @done
// CHECK-NOT: linalg.transpose
// CHECK: linalg.conv_2d_nhwc_hwcf
// CHECK-NOT: linalg.transpose
func.func @done(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x16xf32>, %init: tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32> {
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) outs(%init : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
  return %y : tensor<1x6x6x16xf32>
}
