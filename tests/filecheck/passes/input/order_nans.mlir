// RUN: eyas opt %s --passes order-nans | filecheck %s

#matrix = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// CHECK: func.func @main
func.func @main(%x: tensor<3x8xf32>, %places: tensor<3x8xi64>, %low: tensor<3xf32>, %first: tensor<3xi64>)
    -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3xi64>) {
  // Ascending: what comes first stays there when the other one is NaN.
  // CHECK: tm_tensor.sort
  // CHECK: ^bb0(%[[A:.+]]: f32, %[[B:.+]]: f32, %{{.+}}: i64, %{{.+}}: i64):
  // CHECK-NEXT: %[[LE:.+]] = arith.cmpf ole, %[[A]], %[[B]]
  // CHECK-NEXT: %[[NAN:.+]] = arith.cmpf uno, %[[B]], %[[B]]
  // CHECK-NEXT: %[[KEEP:.+]] = arith.ori %[[LE]], %[[NAN]]
  // CHECK-NEXT: tm_tensor.yield %[[KEEP]]
  %up:2 = tm_tensor.sort dimension(1) outs(%x, %places : tensor<3x8xf32>, tensor<3x8xi64>) {
  ^bb0(%a: f32, %b: f32, %i: i64, %j: i64):
    %keep = arith.cmpf ole, %a, %b : f32
    tm_tensor.yield %keep : i1
  } -> tensor<3x8xf32>, tensor<3x8xi64>
  // Descending: when it is NaN itself.
  // CHECK: ^bb0(%[[A:.+]]: f32, %[[B:.+]]: f32, %{{.+}}: i64, %{{.+}}: i64):
  // CHECK-NEXT: arith.cmpf oge
  // CHECK-NEXT: arith.cmpf uno, %[[A]], %[[A]]
  %down:2 = tm_tensor.sort dimension(1) outs(%x, %places : tensor<3x8xf32>, tensor<3x8xi64>) {
  ^bb0(%a: f32, %b: f32, %i: i64, %j: i64):
    %keep = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %keep : i1
  } -> tensor<3x8xf32>, tensor<3x8xi64>
  // CHECK: linalg.generic
  // CHECK: ^bb0(%[[IN:.+]]: f32, %[[OUT:.+]]: f32, %{{.+}}: i64):
  // CHECK: %[[GT:.+]] = arith.cmpf ogt, %[[IN]], %[[OUT]]
  // CHECK-DAG: %[[ORD:.+]] = arith.cmpf oeq, %[[OUT]], %[[OUT]]
  // CHECK-DAG: %[[NAN:.+]] = arith.cmpf uno, %[[IN]], %[[IN]]
  // CHECK: %[[FIRST:.+]] = arith.andi %[[NAN]], %[[ORD]]
  // CHECK: %[[NEW:.+]] = arith.ori %[[GT]], %[[FIRST]]
  // CHECK: arith.select %[[NEW]]
  %max:2 = linalg.generic {indexing_maps = [#matrix, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<3x8xf32>) outs(%low, %first : tensor<3xf32>, tensor<3xi64>) {
  ^bb0(%in: f32, %out: f32, %old: i64):
    %i = linalg.index 1 : index
    %place = arith.index_cast %i : index to i64
    %m = arith.maximumf %in, %out : f32
    %new = arith.cmpf ogt, %in, %out : f32
    %at = arith.select %new, %place, %old : i64
    linalg.yield %m, %at : f32, i64
  } -> (tensor<3xf32>, tensor<3xi64>)
  return %up#0, %down#0, %max#1 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3xi64>
}

// A NaN is not clamped.
// CHECK-LABEL: func.func @clamp
func.func @clamp(%x: tensor<4xf32>, %low: f32) -> tensor<4xf32> {
  // CHECK: %[[LESS:.+]] = arith.cmpf ult, %in, %arg1
  // CHECK: %[[NUMBER:.+]] = arith.cmpf ord, %in, %in
  // CHECK: %[[CLAMP:.+]] = arith.andi %[[LESS]], %[[NUMBER]]
  // CHECK: arith.select %[[CLAMP]], %arg1, %in
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.cmpf ult, %in, %low : f32
    %3 = arith.select %2, %low, %in : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// With bounds that are numbers one comparison each does the same.
// CHECK-LABEL: func.func @clamp_between_numbers
func.func @clamp_between_numbers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %low = arith.constant dense<0.0> : tensor<f32>
  %high = arith.constant 6.0 : f32
  %0 = tensor.empty() : tensor<4xf32>
  // CHECK: %[[LESS:.+]] = arith.cmpf olt, %in, %in
  // CHECK-NOT: arith.andi
  // CHECK: %[[MORE:.+]] = arith.cmpf ogt, %{{.*}}, %cst
  // CHECK-NOT: arith.andi
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x, %low : tensor<4xf32>, tensor<f32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%in: f32, %least: f32, %out: f32):
    %2 = arith.cmpf ult, %in, %least : f32
    %3 = arith.select %2, %least, %in : f32
    %4 = arith.cmpf ugt, %3, %high : f32
    %5 = arith.select %4, %high, %3 : f32
    linalg.yield %5 : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// A bound that is NaN wins over a number.
// CHECK-LABEL: func.func @clamp_by_nan
// CHECK: arith.cmpf ult
// CHECK: arith.cmpf ord
func.func @clamp_by_nan(%x: tensor<4xf32>) -> tensor<4xf32> {
  %nan = arith.constant 0x7FC00000 : f32
  %0 = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%0 : tensor<4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %2 = arith.cmpf ult, %in, %nan : f32
    %3 = arith.select %2, %nan, %in : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
