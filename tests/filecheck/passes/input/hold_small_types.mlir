// RUN: eyas opt %s --passes hold-small-types,canonicalize | filecheck %s

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @round(%arg0: tensor<4xf32>) -> tensor<4xi8>
func.func @round(%x: tensor<4xf32>) -> tensor<4xf8E5M2> {
  // CHECK: tensor.empty() : tensor<4xi8>
  // CHECK: ^bb0(%in: f32, %out: i8):
  // CHECK: arith.bitcast %in : f32 to i32
  // CHECK: %[[BITS:.+]] = arith.trunci %{{.+}} : i32 to i8
  // CHECK: linalg.yield %[[BITS]] : i8
  %e = tensor.empty() : tensor<4xf8E5M2>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf8E5M2>) {
  ^bb0(%in: f32, %out: f8E5M2):
    %0 = arith.truncf %in : f32 to f8E5M2
    linalg.yield %0 : f8E5M2
  } -> tensor<4xf8E5M2>
  return %y : tensor<4xf8E5M2>
}

// Arithmetic is done in f32; 1.5 is 0x3C.
// CHECK-LABEL: func.func @add(%arg0: tensor<4xi8>) -> tensor<4xi8>
func.func @add(%x: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
  // CHECK: arith.constant dense<60> : tensor<4xi8>
  // CHECK: arith.addf %{{.+}}, %{{.+}} : f32
  // CHECK-NOT: f8E4M3FN
  %c = arith.constant dense<1.5> : tensor<4xf8E4M3FN>
  %e = tensor.empty() : tensor<4xf8E4M3FN>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %c : tensor<4xf8E4M3FN>, tensor<4xf8E4M3FN>) outs(%e : tensor<4xf8E4M3FN>) {
  ^bb0(%a: f8E4M3FN, %b: f8E4M3FN, %out: f8E4M3FN):
    %0 = arith.addf %a, %b : f8E4M3FN
    linalg.yield %0 : f8E4M3FN
  } -> tensor<4xf8E4M3FN>
  return %y : tensor<4xf8E4M3FN>
}

// The sign of a narrow integer is that of the operation.
// CHECK-LABEL: func.func @extend(%arg0: tensor<4xi8>) -> (tensor<4xi32>, tensor<4xi32>)
func.func @extend(%x: tensor<4xi4>) -> (tensor<4xi32>, tensor<4xi32>) {
  // CHECK: %[[HIGH:.+]] = arith.shli %in, %c4_i8
  // CHECK: %[[SIGNED:.+]] = arith.shrsi %[[HIGH]], %c4_i8
  // CHECK: arith.extsi %[[SIGNED]] : i8 to i32
  %e = tensor.empty() : tensor<4xi32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xi4>) outs(%e : tensor<4xi32>) {
  ^bb0(%in: i4, %out: i32):
    %0 = arith.extsi %in : i4 to i32
    linalg.yield %0 : i32
  } -> tensor<4xi32>
  // CHECK: %[[HIGH:.+]] = arith.shli %in, %c4_i8
  // CHECK: %[[UNSIGNED:.+]] = arith.shrui %[[HIGH]], %c4_i8
  // CHECK: arith.extui %[[UNSIGNED]] : i8 to i32
  %u = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xi4>) outs(%e : tensor<4xi32>) {
  ^bb0(%in: i4, %out: i32):
    %0 = arith.extui %in : i4 to i32
    linalg.yield %0 : i32
  } -> tensor<4xi32>
  return %s, %u : tensor<4xi32>, tensor<4xi32>
}

// Named ops have bodies of their own: they get decoded tensors.
// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<2x3xf8E5M2>, %b: tensor<3x2xf8E5M2>, %c: tensor<2x2xf32>) -> tensor<2x2xf32> {
  // CHECK-COUNT-2: linalg.generic
  // CHECK: linalg.matmul ins(%{{.+}}, %{{.+}} : tensor<2x3xf32>, tensor<3x2xf32>) outs(%arg2 : tensor<2x2xf32>)
  %0 = linalg.matmul ins(%a, %b : tensor<2x3xf8E5M2>, tensor<3x2xf8E5M2>) outs(%c : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
