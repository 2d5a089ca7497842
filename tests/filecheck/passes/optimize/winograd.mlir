// RUN: eyas opt %s --passes 'winograd{target=llvm-cpu:x86_64:znver4},canonicalize,cse' | filecheck %s

// The padding joins that of the last tiles; the filter's matrix is in f64, the tiles' are in f32.
// CHECK-LABEL: func.func @layer
// CHECK-SAME: [[X:%.*]]: tensor<1x14x14x64xf32>
// CHECK-DAG: arith.constant dense<{{.*}}> : tensor<6x3xf64>
// CHECK-DAG: [[B:%.*]] = arith.constant dense<{{.*}}> : tensor<6x6xf32>
// CHECK-DAG: [[A:%.*]] = arith.constant dense<{{.*}}> : tensor<4x6xf32>
// CHECK: [[P:%.*]] = tensor.pad [[X]] low[0, 1, 1, 0] high[0, 3, 3, 0]
// CHECK: [[V:%.*]] = linalg.generic {{.*}} ins([[P]], [[B]], [[B]] : tensor<1x18x18x64xf32>, {{.*}} outs({{.*}} : tensor<6x6x1x4x4x64xf32>)
// CHECK: [[VF:%.*]] = tensor.collapse_shape [[V]] {{.*}} into tensor<36x16x64xf32>
// CHECK: linalg.generic {{.*}} outs({{.*}} : tensor<6x6x64x48xf64>)
// CHECK: [[U:%.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<6x6x64x48xf32>)
// CHECK: [[UF:%.*]] = tensor.collapse_shape [[U]] {{.*}} into tensor<36x64x48xf32>
// CHECK: [[M:%.*]] = linalg.batch_matmul ins([[VF]], [[UF]]
// CHECK: [[MT:%.*]] = tensor.expand_shape [[M]] {{.*}} into tensor<6x6x1x4x4x48xf32>
// CHECK: [[Y:%.*]] = linalg.generic {{.*}} ins([[MT]], [[A]], [[A]] {{.*}} outs({{.*}} : tensor<1x16x16x48xf32>)
// CHECK: [[C:%.*]] = tensor.extract_slice [[Y]][0, 0, 0, 0] [1, 14, 14, 48] [1, 1, 1, 1]
// CHECK-NOT: linalg.conv
// CHECK: return [[C]]
func.func @layer(%x: tensor<1x14x14x64xf32>) -> tensor<1x14x14x48xf32> {
  %zero = arith.constant 0.0 : f32
  %w = "flow.parameter"() {key = "w"} : () -> tensor<3x3x64x48xf32>
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x14x14x64xf32> to tensor<1x16x16x64xf32>
  %e = tensor.empty() : tensor<1x14x14x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<1x16x16x64xf32>, tensor<3x3x64x48xf32>) outs(%init : tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32>
  return %y : tensor<1x14x14x48xf32>
}

// Without padding, and whole tiles: nothing is padded or cut. What the sum began with is added at the end.
// CHECK-LABEL: func.func @whole_tiles
// CHECK-SAME: [[X:%.*]]: tensor<2x14x14x64xf32>, [[INIT:%.*]]: tensor<2x12x12x64xf32>
// CHECK-NOT: tensor.pad
// CHECK: linalg.generic {{.*}} ins([[X]],
// CHECK: linalg.batch_matmul
// CHECK: [[Y:%.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<2x12x12x64xf32>)
// CHECK-NOT: tensor.extract_slice
// CHECK: linalg.generic {{.*}} ins([[Y]], [[INIT]] :
// CHECK: arith.addf
func.func @whole_tiles(%x: tensor<2x14x14x64xf32>, %init: tensor<2x12x12x64xf32>) -> tensor<2x12x12x64xf32> {
  %w = "flow.parameter"() {key = "w"} : () -> tensor<3x3x64x64xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<2x14x14x64xf32>, tensor<3x3x64x64xf32>) outs(%init : tensor<2x12x12x64xf32>) -> tensor<2x12x12x64xf32>
  return %y : tensor<2x12x12x64xf32>
}

// Few positions and many weights: reading four times as many would cost more than is saved, but not twice as many.
// CHECK-LABEL: func.func @small_image
// CHECK: linalg.batch_matmul {{.*}} -> tensor<16x16x512xf32>
func.func @small_image(%x: tensor<1x9x9x512xf32>, %init: tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32> {
  %w = "flow.parameter"() {key = "w"} : () -> tensor<3x3x512x512xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x9x9x512xf32>, tensor<3x3x512x512xf32>) outs(%init : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  return %y : tensor<1x7x7x512xf32>
}

// A filter that is not constant, a stride, one output, few channels: as they were.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: linalg.conv_2d_nhwc_hwcf
func.func @others(%x: tensor<1x16x16x64xf32>, %w: tensor<3x3x64x64xf32>, %i0: tensor<1x14x14x64xf32>, %i1: tensor<1x7x7x64xf32>, %small: tensor<1x3x3x64xf32>, %i2: tensor<1x1x1x64xf32>, %few: tensor<1x16x16x2xf32>) -> (tensor<1x14x14x64xf32>, tensor<1x7x7x64xf32>, tensor<1x1x1x64xf32>, tensor<1x14x14x64xf32>) {
  %c = "flow.parameter"() {key = "w"} : () -> tensor<3x3x64x64xf32>
  %c2 = "flow.parameter"() {key = "w2"} : () -> tensor<3x3x2x64xf32>
  %0 = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x16x16x64xf32>, tensor<3x3x64x64xf32>) outs(%i0 : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  %1 = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : vector<2xi64>} ins(%x, %c : tensor<1x16x16x64xf32>, tensor<3x3x64x64xf32>) outs(%i1 : tensor<1x7x7x64xf32>) -> tensor<1x7x7x64xf32>
  %2 = linalg.conv_2d_nhwc_hwcf ins(%small, %c : tensor<1x3x3x64xf32>, tensor<3x3x64x64xf32>) outs(%i2 : tensor<1x1x1x64xf32>) -> tensor<1x1x1x64xf32>
  %3 = linalg.conv_2d_nhwc_hwcf ins(%few, %c2 : tensor<1x16x16x2xf32>, tensor<3x3x2x64xf32>) outs(%i0 : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  return %0, %1, %2, %3 : tensor<1x14x14x64xf32>, tensor<1x7x7x64xf32>, tensor<1x1x1x64xf32>, tensor<1x14x14x64xf32>
}
