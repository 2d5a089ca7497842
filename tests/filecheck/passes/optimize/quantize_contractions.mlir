// RUN: eyas opt %s --passes quantize-contractions,canonicalize | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// Sums of bytes in i32; then the first zero point times the sums of the weight, both scales, and what was there before.
// CHECK-LABEL: func.func @matmul
// CHECK-SAME: %[[X:.+]]: tensor<4x8xi8>, %[[W:.+]]: tensor<6x8xi8>, %[[S:.+]]: tensor<6xf32>, %[[C:.+]]: tensor<4x6xf32>
// CHECK: %[[T:.+]] = linalg.transpose ins(%[[W]] : tensor<6x8xi8>)
// CHECK: %[[SUM:.+]] = linalg.matmul ins(%[[X]], %[[T]] : tensor<4x8xi8>, tensor<8x6xi8>) outs(%{{.+}} : tensor<4x6xi32>)
// CHECK: %[[COLUMNS:.+]] = linalg.generic {{.*}}iterator_types = ["reduction", "parallel"]{{.*}} ins(%[[T]] : tensor<8x6xi8>)
// CHECK: linalg.generic {{.*}} ins(%[[SUM]], %[[C]], %[[COLUMNS]], %[[S]] :
// CHECK: arith.muli %{{.+}}, %c3_i32
// CHECK: arith.sitofp
// CHECK: arith.addf
func.func @matmul(%x: tensor<4x8xi8>, %w: tensor<6x8xi8>, %s: tensor<6xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 3 : i64
  %scale = arith.constant 5.000000e-02 : f32
  %ex = tensor.empty() : tensor<4x8xf32>
  %dx = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xi8>) outs(%ex : tensor<4x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.extsi %in : i8 to i64
    %1 = arith.subi %0, %zero : i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.mulf %2, %scale : f32
    linalg.yield %3 : f32
  } -> tensor<4x8xf32>
  %ew = tensor.empty() : tensor<6x8xf32>
  %dw = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %s : tensor<6x8xi8>, tensor<6xf32>) outs(%ew : tensor<6x8xf32>) {
  ^bb0(%in: i8, %a: f32, %out: f32):
    %0 = arith.extsi %in : i8 to i64
    %1 = arith.sitofp %0 : i64 to f32
    %2 = arith.mulf %1, %a : f32
    linalg.yield %2 : f32
  } -> tensor<6x8xf32>
  %et = tensor.empty() : tensor<8x6xf32>
  %t = linalg.transpose ins(%dw : tensor<6x8xf32>) outs(%et : tensor<8x6xf32>) permutation = [1, 0]
  %y = linalg.matmul ins(%dx, %t : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// A scale that varies along what is added up cannot leave the sum.
// CHECK-LABEL: func.func @scale_inside
// CHECK: linalg.matmul ins(%{{.+}}, %{{.+}} : tensor<4x8xf32>, tensor<8x6xf32>)
func.func @scale_inside(%x: tensor<4x8xi8>, %w: tensor<8x6xi8>, %s: tensor<8xf32>, %c: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %scale = arith.constant 5.000000e-02 : f32
  %ex = tensor.empty() : tensor<4x8xf32>
  %dx = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xi8>) outs(%ex : tensor<4x8xf32>) {
  ^bb0(%in: i8, %out: f32):
    %0 = arith.extsi %in : i8 to i64
    %1 = arith.sitofp %0 : i64 to f32
    %2 = arith.mulf %1, %scale : f32
    linalg.yield %2 : f32
  } -> tensor<4x8xf32>
  %ew = tensor.empty() : tensor<8x6xf32>
  %dw = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%w, %s : tensor<8x6xi8>, tensor<8xf32>) outs(%ew : tensor<8x6xf32>) {
  ^bb0(%in: i8, %a: f32, %out: f32):
    %0 = arith.extsi %in : i8 to i64
    %1 = arith.sitofp %0 : i64 to f32
    %2 = arith.mulf %1, %a : f32
    linalg.yield %2 : f32
  } -> tensor<8x6xf32>
  %y = linalg.matmul ins(%dx, %dw : tensor<4x8xf32>, tensor<8x6xf32>) outs(%c : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
