// RUN: eyas opt %s --passes fuse-gathers | filecheck %s

#one = affine_map<(d0, d1, d2) -> (d0)>
#all = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// 64 matrices out of 8: none is copied.
// CHECK-LABEL: func.func @larger
func.func @larger(%x: tensor<64x1x16xf32>, %w: tensor<8x16x32xf32>, %which: tensor<64xindex>, %init: tensor<64x1x32xf32>) -> tensor<64x1x32xf32> {
  %e = tensor.empty() : tensor<64x16x32xf32>
  // CHECK-NOT: -> tensor<64x16x32xf32>
  %g = linalg.generic {indexing_maps = [#one, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%which : tensor<64xindex>) outs(%e : tensor<64x16x32xf32>) {
  ^bb0(%in: index, %out: f32):
    %k = linalg.index 1 : index
    %n = linalg.index 2 : index
    %v = tensor.extract %w[%in, %k, %n] : tensor<8x16x32xf32>
    linalg.yield %v : f32
  } -> tensor<64x16x32xf32>
  // CHECK: linalg.generic
  // CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  // CHECK-SAME: ins(%{{.*}}, %{{.*}} : tensor<64x1x16xf32>, tensor<64xindex>)
  // CHECK: ^bb0([[X:%.*]]: f32, [[E:%.*]]: index, [[S:%.*]]: f32):
  // CHECK: [[K:%.*]] = linalg.index 3
  // CHECK: [[N:%.*]] = linalg.index 2
  // CHECK: [[V:%.*]] = tensor.extract %{{.*}}{{\[}}[[E]], [[K]], [[N]]]
  // CHECK: [[P:%.*]] = arith.mulf [[X]], [[V]]
  // CHECK: arith.addf [[S]], [[P]]
  %r = linalg.batch_matmul ins(%x, %g : tensor<64x1x16xf32>, tensor<64x16x32xf32>) outs(%init : tensor<64x1x32xf32>) -> tensor<64x1x32xf32>
  return %r : tensor<64x1x32xf32>
}

// Two out of eight: the copy is smaller than the source and stays.
// CHECK-LABEL: func.func @smaller
func.func @smaller(%x: tensor<2x1x16xf32>, %w: tensor<8x16x32xf32>, %which: tensor<2xindex>, %init: tensor<2x1x32xf32>) -> tensor<2x1x32xf32> {
  %e = tensor.empty() : tensor<2x16x32xf32>
  %g = linalg.generic {indexing_maps = [#one, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%which : tensor<2xindex>) outs(%e : tensor<2x16x32xf32>) {
  ^bb0(%in: index, %out: f32):
    %k = linalg.index 1 : index
    %n = linalg.index 2 : index
    %v = tensor.extract %w[%in, %k, %n] : tensor<8x16x32xf32>
    linalg.yield %v : f32
  } -> tensor<2x16x32xf32>
  // CHECK: linalg.batch_matmul
  %r = linalg.batch_matmul ins(%x, %g : tensor<2x1x16xf32>, tensor<2x16x32xf32>) outs(%init : tensor<2x1x32xf32>) -> tensor<2x1x32xf32>
  return %r : tensor<2x1x32xf32>
}

// Only the gathered tensor gives the reduction its extent: it stays.
// CHECK-LABEL: func.func @extent
// CHECK: tensor.extract
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
func.func @extent(%x: tensor<1xf32>, %which: tensor<6xindex>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x1xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]} ins(%which : tensor<6xindex>) outs(%e : tensor<6x1xf32>) {
  ^bb0(%in: index, %out: f32):
    %v = tensor.extract %x[%in] : tensor<1xf32>
    linalg.yield %v : f32
  } -> tensor<6x1xf32>
  %o = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<6xf32>) -> tensor<6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a)>],
      iterator_types = ["parallel", "reduction"]} ins(%g : tensor<6x1xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %s = arith.addf %in, %out : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}

// A window reads each element of the gather several times: it stays.
// CHECK-LABEL: func.func @window
// CHECK: tensor.extract
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]
func.func @window(%x: tensor<4xf32>, %w: tensor<3xf32>, %which: tensor<8xindex>, %init: tensor<6xf32>) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%which : tensor<8xindex>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: index, %out: f32):
    %v = tensor.extract %x[%in] : tensor<4xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i + k)>, affine_map<(i, k) -> (k)>, affine_map<(i, k) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%g, %w : tensor<8xf32>, tensor<3xf32>) outs(%init : tensor<6xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %out, %p : f32
    linalg.yield %s : f32
  } -> tensor<6xf32>
  return %r : tensor<6xf32>
}
