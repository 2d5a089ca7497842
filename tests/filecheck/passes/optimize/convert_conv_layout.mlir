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

// Of one dimension too.
// CHECK-LABEL: func.func @conv_of_a_line
// CHECK-SAME: [[X:%.*]]: tensor<1x3x9xf32>, [[W:%.*]]: tensor<16x3x3xf32>
func.func @conv_of_a_line(%x: tensor<1x3x9xf32>, %w: tensor<16x3x3xf32>, %init: tensor<1x16x4xf32>) -> tensor<1x16x4xf32> {
  // CHECK-DAG: linalg.transpose ins([[X]] : {{.*}}) {{.*}} permutation = [0, 2, 1]
  // CHECK-DAG: linalg.transpose ins([[W]] : {{.*}}) {{.*}} permutation = [2, 1, 0]
  // CHECK: [[Y:%.*]] = linalg.conv_1d_nwc_wcf {{.*}}strides = dense<2> {{.*}} outs({{.*}} : tensor<1x4x16xf32>)
  // CHECK: linalg.transpose ins([[Y]] : {{.*}}) {{.*}} permutation = [0, 2, 1]
  %y = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<2> : vector<1xi64>} ins(%x, %w : tensor<1x3x9xf32>, tensor<16x3x3xf32>) outs(%init : tensor<1x16x4xf32>) -> tensor<1x16x4xf32>
  return %y : tensor<1x16x4xf32>
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

// The gradient of a filter: samples are summed over, the image's channels are the lanes, and nothing of it is turned.
// CHECK-LABEL: func.func @filter_gradient
// CHECK-SAME: [[X:%.*]]: tensor<4x24x9x9xf32>, [[G:%.*]]: tensor<4x10x4x4xf32>
func.func @filter_gradient(%x: tensor<4x24x9x9xf32>, %g: tensor<4x10x4x4xf32>) -> tensor<24x10x3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %ex = tensor.empty() : tensor<24x4x9x9xf32>
  %eg = tensor.empty() : tensor<10x4x4x4xf32>
  %e = tensor.empty() : tensor<24x10x3x3xf32>
  %images = linalg.transpose ins(%x : tensor<4x24x9x9xf32>) outs(%ex : tensor<24x4x9x9xf32>) permutation = [1, 0, 2, 3]
  %filters = linalg.transpose ins(%g : tensor<4x10x4x4xf32>) outs(%eg : tensor<10x4x4x4xf32>) permutation = [1, 0, 2, 3]
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<24x10x3x3xf32>) -> tensor<24x10x3x3xf32>
  // CHECK-DAG: [[XT:%.*]] = linalg.transpose ins([[X]] : {{.*}}) {{.*}} permutation = [0, 2, 3, 1]
  // CHECK-DAG: [[GT:%.*]] = linalg.transpose ins([[G]] : {{.*}}) {{.*}} permutation = [0, 2, 3, 1]
  // CHECK: [[Y:%.*]] = linalg.generic {{.*}}ins([[XT]], [[GT]] : {{.*}} outs({{.*}} : tensor<10x3x3x24xf32>)
  // CHECK: linalg.transpose ins([[Y]] : {{.*}}) {{.*}} permutation = [3, 0, 1, 2]
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<2> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%images, %filters : tensor<24x4x9x9xf32>, tensor<10x4x4x4xf32>) outs(%init : tensor<24x10x3x3xf32>) -> tensor<24x10x3x3xf32>
  return %y : tensor<24x10x3x3xf32>
}

// One channel fills no vector: the lanes are the filters.
// CHECK-LABEL: func.func @filter_gradient_of_few_channels
func.func @filter_gradient_of_few_channels(%x: tensor<4x1x9x9xf32>, %g: tensor<4x32x7x7xf32>) -> tensor<1x32x3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %ex = tensor.empty() : tensor<1x4x9x9xf32>
  %eg = tensor.empty() : tensor<32x4x7x7xf32>
  %e = tensor.empty() : tensor<1x32x3x3xf32>
  %images = linalg.transpose ins(%x : tensor<4x1x9x9xf32>) outs(%ex : tensor<1x4x9x9xf32>) permutation = [1, 0, 2, 3]
  %filters = linalg.transpose ins(%g : tensor<4x32x7x7xf32>) outs(%eg : tensor<32x4x7x7xf32>) permutation = [1, 0, 2, 3]
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x32x3x3xf32>) -> tensor<1x32x3x3xf32>
  // CHECK: [[Y:%.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<1x3x3x32xf32>)
  // CHECK: linalg.transpose ins([[Y]] : {{.*}}) {{.*}} permutation = [0, 3, 1, 2]
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%images, %filters : tensor<1x4x9x9xf32>, tensor<32x4x7x7xf32>) outs(%init : tensor<1x32x3x3xf32>) -> tensor<1x32x3x3xf32>
  return %y : tensor<1x32x3x3xf32>
}
