// RUN: eyas opt %s --passes fold-scales,canonicalize | filecheck %s

#all = affine_map<(a, b, c, d) -> (a, b, c, d)>
#channels = affine_map<(a, b, c, d) -> (a, d, 0, 0)>
#pixels = affine_map<(a, b, c, d) -> (0, b, 0, 0)>

// A factor and a shift of each channel: the filter is multiplied, and sums start from the shift.
// CHECK-LABEL: func.func @normalized
func.func @normalized(%x: tensor<1x8x8x4xf32>) -> tensor<1x6x6x16xf32> {
  // CHECK-DAG: [[W:%.*]] = "flow.parameter"() {key = "w"}
  // CHECK-DAG: [[S:%.*]] = tensor.collapse_shape {{.*}} : tensor<1x16x1x1xf32> into tensor<16xf32>
  // CHECK: [[F:%.*]] = linalg.generic {{.*}} ins([[W]], [[S]] : tensor<3x3x4x16xf32>, tensor<16xf32>)
  // CHECK: arith.mulf
  // CHECK: [[B:%.*]] = linalg.broadcast {{.*}} dimensions = [0, 1, 2]
  // CHECK: [[Y:%.*]] = linalg.conv_2d_nhwc_hwcf {{.*}} ins(%{{.*}}, [[F]] : {{.*}}) outs([[B]] :
  // CHECK: return [[Y]]
  %w = "flow.parameter"() {key = "w"} : () -> tensor<3x3x4x16xf32>
  %scale = "flow.parameter"() {key = "scale"} : () -> tensor<1x16x1x1xf32>
  %shift = "flow.parameter"() {key = "shift"} : () -> tensor<1x16x1x1xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x6x6x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x8x4xf32>, tensor<3x3x4x16xf32>) outs(%init : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
  %m = linalg.generic {indexing_maps = [#all, #channels, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y, %scale : tensor<1x6x6x16xf32>, tensor<1x16x1x1xf32>) outs(%e : tensor<1x6x6x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<1x6x6x16xf32>
  %r = linalg.generic {indexing_maps = [#channels, #all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shift, %m : tensor<1x16x1x1xf32>, tensor<1x6x6x16xf32>) outs(%e : tensor<1x6x6x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.addf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<1x6x6x16xf32>
  return %r : tensor<1x6x6x16xf32>
}

// Factors of pixels are not factors of channels.
// CHECK-LABEL: func.func @pixels
// CHECK-NOT: linalg.broadcast
// CHECK: linalg.depthwise_conv_2d_nhwc_hwc
// CHECK: linalg.generic
func.func @pixels(%x: tensor<1x8x8x6xf32>) -> tensor<1x6x6x6xf32> {
  %w = "flow.parameter"() {key = "w"} : () -> tensor<3x3x6xf32>
  %scale = "flow.parameter"() {key = "scale"} : () -> tensor<1x6x1x1xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x6x6x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>
  %y = linalg.depthwise_conv_2d_nhwc_hwc {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x8x6xf32>, tensor<3x3x6xf32>) outs(%init : tensor<1x6x6x6xf32>) -> tensor<1x6x6x6xf32>
  %m = linalg.generic {indexing_maps = [#all, #pixels, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y, %scale : tensor<1x6x6x6xf32>, tensor<1x6x1x1xf32>) outs(%e : tensor<1x6x6x6xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<1x6x6x6xf32>
  return %m : tensor<1x6x6x6xf32>
}

// Factors that are an argument are not known at compile time.
// CHECK-LABEL: func.func @argument
// CHECK: linalg.conv_2d_nhwc_hwcf
// CHECK: linalg.generic
func.func @argument(%x: tensor<1x8x8x4xf32>, %scale: tensor<1x16x1x1xf32>) -> tensor<1x8x8x16xf32> {
  %w = "flow.parameter"() {key = "w"} : () -> tensor<1x1x4x16xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x8x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %w : tensor<1x8x8x4xf32>, tensor<1x1x4x16xf32>) outs(%init : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %m = linalg.generic {indexing_maps = [#all, #channels, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%y, %scale : tensor<1x8x8x16xf32>, tensor<1x16x1x1xf32>) outs(%e : tensor<1x8x8x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<1x8x8x16xf32>
  return %m : tensor<1x8x8x16xf32>
}
