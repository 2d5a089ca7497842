// RUN: eyas opt %s --passes 'split-reductions{target=vulkan:hopper}' | filecheck %s

#all = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>
#columns = affine_map<(d0, d1) -> (d1)>

// Rows are parts enough.
// CHECK-LABEL: func.func @everything
// CHECK: %[[PARTS:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]}{{.*}} outs({{.*}} : tensor<1021xf32>)
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%[[PARTS]] : tensor<1021xf32>) outs({{.*}} : tensor<f32>)
func.func @everything(%x: tensor<1021x4096xf32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %r = linalg.generic {indexing_maps = [#all, #none], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<1021x4096xf32>) outs(%f : tensor<f32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  return %r : tensor<f32>
}

// Many rows are put together; parts of a maximum begin with what changes nothing.
// CHECK-LABEL: func.func @down_columns
// CHECK: %[[ROWS:.*]] = tensor.expand_shape {{.*}} : tensor<65536x64xf32> into tensor<512x128x64xf32>
// CHECK: linalg.fill ins({{.*}}) outs({{.*}} : tensor<512x64xf32>)
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[ROWS]]
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]} ins({{.*}} : tensor<512x64xf32>)
func.func @down_columns(%x: tensor<65536x64xf32>, %init: tensor<64xf32>) -> tensor<64xf32> {
  %r = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<65536x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.maximumf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// Results enough for all of the device.
// CHECK-LABEL: func.func @many_columns
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @many_columns(%x: tensor<64x65536xf32>, %init: tensor<65536xf32>) -> tensor<65536xf32> {
  %r = linalg.generic {indexing_maps = [#all, #columns], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<64x65536xf32>) outs(%init : tensor<65536xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<65536xf32>
  return %r : tensor<65536xf32>
}
