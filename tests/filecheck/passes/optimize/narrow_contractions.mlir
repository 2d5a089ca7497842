// RUN: eyas opt %s --passes narrow-contractions,canonicalize | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: func.func @matmul
// CHECK-NOT: i64
// CHECK: %[[INIT:.+]] = linalg.fill ins(%c0_i32 : i32)
// CHECK: linalg.matmul ins(%arg0, %{{.+}} : tensor<4x8xi8>, tensor<8x6xi8>) outs(%[[INIT]] : tensor<4x6xi32>)
func.func @matmul(%a: tensor<4x8xi8>, %b: tensor<6x8xi8>) -> tensor<4x6xi32> {
  %c0 = arith.constant 0 : i64
  %ea = tensor.empty() : tensor<4x8xi32>
  %wa = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x8xi8>) outs(%ea : tensor<4x8xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extsi %in : i8 to i32
    linalg.yield %0 : i32
  } -> tensor<4x8xi32>
  %eb = tensor.empty() : tensor<6x8xi32>
  %wb = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<6x8xi8>) outs(%eb : tensor<6x8xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extsi %in : i8 to i32
    linalg.yield %0 : i32
  } -> tensor<6x8xi32>
  %et = tensor.empty() : tensor<8x6xi32>
  %t = linalg.transpose ins(%wb : tensor<6x8xi32>) outs(%et : tensor<8x6xi32>) permutation = [1, 0]
  %e = tensor.empty() : tensor<4x6xi64>
  %f = linalg.fill ins(%c0 : i64) outs(%e : tensor<4x6xi64>) -> tensor<4x6xi64>
  %m = linalg.matmul ins(%wa, %t : tensor<4x8xi32>, tensor<8x6xi32>) outs(%f : tensor<4x6xi64>) -> tensor<4x6xi64>
  %er = tensor.empty() : tensor<4x6xi32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<4x6xi64>) outs(%er : tensor<4x6xi32>) {
  ^bb0(%in: i64, %out: i32):
    %0 = arith.trunci %in : i64 to i32
    linalg.yield %0 : i32
  } -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

// Padding is made in i8, if its number fits; the filter, which is wider, stays.
// CHECK-LABEL: func.func @conv
// CHECK: %[[PAD:.+]] = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: tensor.yield %c-7_i8 : i8
// CHECK: linalg.conv_2d_nchw_fchw {{.*}} ins(%[[PAD]], %arg1 : tensor<1x2x8x8xi8>, tensor<3x2x3x3xi32>)
#id4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func @conv(%x: tensor<1x2x6x6xi8>, %w: tensor<3x2x3x3xi32>, %init: tensor<1x3x6x6xi32>) -> tensor<1x3x6x6xi32> {
  %zero = arith.constant -7 : i32
  %e = tensor.empty() : tensor<1x2x6x6xi32>
  %wide = linalg.generic {indexing_maps = [#id4, #id4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x : tensor<1x2x6x6xi8>) outs(%e : tensor<1x2x6x6xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extsi %in : i8 to i32
    linalg.yield %0 : i32
  } -> tensor<1x2x6x6xi32>
  %p = tensor.pad %wide low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : i32
  } : tensor<1x2x6x6xi32> to tensor<1x2x8x8xi32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x2x8x8xi32>, tensor<3x2x3x3xi32>) outs(%init : tensor<1x3x6x6xi32>) -> tensor<1x3x6x6xi32>
  return %y : tensor<1x3x6x6xi32>
}

// Unsigned numbers would be extended wrongly, and a sum that is used whole needs its 64 bits.
// CHECK-LABEL: func.func @kept
// CHECK: linalg.matmul ins(%{{.+}}, %{{.+}} : tensor<4x8xi32>, tensor<8x4xi32>) outs(%{{.+}} : tensor<4x4xi64>)
func.func @kept(%a: tensor<4x8xi8>, %b: tensor<8x4xi32>) -> tensor<4x4xi64> {
  %c0 = arith.constant 0 : i64
  %ea = tensor.empty() : tensor<4x8xi32>
  %wa = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<4x8xi8>) outs(%ea : tensor<4x8xi32>) {
  ^bb0(%in: i8, %out: i32):
    %0 = arith.extui %in : i8 to i32
    linalg.yield %0 : i32
  } -> tensor<4x8xi32>
  %e = tensor.empty() : tensor<4x4xi64>
  %f = linalg.fill ins(%c0 : i64) outs(%e : tensor<4x4xi64>) -> tensor<4x4xi64>
  %m = linalg.matmul ins(%wa, %b : tensor<4x8xi32>, tensor<8x4xi32>) outs(%f : tensor<4x4xi64>) -> tensor<4x4xi64>
  return %m : tensor<4x4xi64>
}
