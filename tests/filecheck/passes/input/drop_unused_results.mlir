// RUN: eyas opt %s --passes drop-unused-results,canonicalize | filecheck %s

#in = affine_map<(d0, d1) -> (d0, d1)>
#out = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: tensor<4x8xf32>, [[M:%.*]]: tensor<4xf32>, [[I:%.*]]: tensor<4xi64>
func.func @main(%x: tensor<4x8xf32>, %m: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>) {
  // CHECK: [[R:%.*]] = linalg.generic {{.*}} ins([[X]] : tensor<4x8xf32>) outs([[M]] : tensor<4xf32>)
  // CHECK-NOT: linalg.index
  // CHECK: cf.assert
  // CHECK: arith.maximumf
  // CHECK-NOT: arith.select
  // CHECK: linalg.yield {{%.*}} : f32
  %0:2 = linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%m, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64):
    %ok = arith.cmpf ord, %a, %a : f32
    cf.assert %ok, "not a number"
    %p = linalg.index 1 : index
    %q = arith.index_cast %p : index to i64
    %r = arith.maximumf %a, %b : f32
    %s = arith.cmpf ogt, %a, %b : f32
    %t = arith.select %s, %q, %c : i64
    linalg.yield %r, %t : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  // The maximum is unused here, but the index depends on it: both stay.
  // CHECK: [[S:%.*]]:2 = linalg.generic {{.*}} outs([[M]], [[I]] : tensor<4xf32>, tensor<4xi64>)
  // CHECK: linalg.yield {{%.*}}, {{%.*}} : f32, i64
  %1:2 = linalg.generic {indexing_maps = [#in, #out, #out], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf32>) outs(%m, %i : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%a: f32, %b: f32, %c: i64):
    %p = linalg.index 1 : index
    %q = arith.index_cast %p : index to i64
    %r = arith.maximumf %a, %b : f32
    %s = arith.cmpf ogt, %a, %b : f32
    %t = arith.select %s, %q, %c : i64
    linalg.yield %r, %t : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  // CHECK: return [[R]], [[S]]#1
  return %0#0, %1#1 : tensor<4xf32>, tensor<4xi64>
}
