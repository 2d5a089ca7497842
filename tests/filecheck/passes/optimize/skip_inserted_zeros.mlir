// RUN: eyas opt %s --passes skip-inserted-zeros,canonicalize | filecheck %s

// Sixteen taps over pixels that are eight apart: two taps of eight sets of filters.
// CHECK-LABEL: func.func @upsampled
// CHECK-SAME: [[X:%.*]]: tensor<1x4x?xf32>
func.func @upsampled(%x: tensor<1x4x?xf32>, %w: tensor<6x4x16xf32>, %b: tensor<6xf32>) -> tensor<1x6x?xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c23 = arith.constant 23 : index
  %n = tensor.dim %x, %c2 : tensor<1x4x?xf32>
  %m = arith.subi %n, %c1 : index
  %s = arith.muli %m, %c8 : index
  %size = arith.addi %s, %c23 : index
  %outputs = arith.muli %n, %c8 : index
  // CHECK: tensor.pad [[X]] low[0, 0, 1] high[0, 0, 1]
  // CHECK: linalg.generic {{.*}} ins({{.*}} : tensor<1x?x4xf32>, tensor<2x4x8x6xf32>) outs({{.*}} : tensor<1x?x8x6xf32>)
  // CHECK: tensor.extract_slice {{.*}}[0, 4, 0] [1, {{.*}}, 6] [1, 1, 1]
  // CHECK-NOT: linalg.conv_1d_ncw_fcw
  %e = tensor.empty(%size) : tensor<1x4x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x?xf32>) -> tensor<1x4x?xf32>
  %z = tensor.insert_slice %x into %f[0, 0, 11] [1, 4, %n] [1, 1, 8] : tensor<1x4x?xf32> into tensor<1x4x?xf32>
  %i = tensor.empty(%outputs) : tensor<1x6x?xf32>
  %init = linalg.broadcast ins(%b : tensor<6xf32>) outs(%i : tensor<1x6x?xf32>) dimensions = [0, 2]
  %y = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%z, %w : tensor<1x4x?xf32>, tensor<6x4x16xf32>) outs(%init : tensor<1x6x?xf32>) -> tensor<1x6x?xf32>
  return %y : tensor<1x6x?xf32>
}

// What is between the pixels is not zero: nothing can be left out.
// CHECK-LABEL: func.func @ones
func.func @ones(%x: tensor<1x4x5xf32>, %w: tensor<6x4x2xf32>, %init: tensor<1x6x10xf32>) -> tensor<1x6x10xf32> {
  %one = arith.constant 1.0 : f32
  // CHECK: linalg.conv_1d_ncw_fcw
  %e = tensor.empty() : tensor<1x4x11xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<1x4x11xf32>) -> tensor<1x4x11xf32>
  %z = tensor.insert_slice %x into %f[0, 0, 1] [1, 4, 5] [1, 1, 2] : tensor<1x4x5xf32> into tensor<1x4x11xf32>
  %y = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%z, %w : tensor<1x4x11xf32>, tensor<6x4x2xf32>) outs(%init : tensor<1x6x10xf32>) -> tensor<1x6x10xf32>
  return %y : tensor<1x6x10xf32>
}
