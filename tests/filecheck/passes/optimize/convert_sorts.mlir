// RUN: eyas opt %s --passes convert-sorts | filecheck %s

// Of each row only the five smallest are used: they are found while it is read once.
// CHECK-LABEL: func.func @first
// CHECK-NOT: tm_tensor.sort
// CHECK: %[[MADE:.*]]:2 = scf.for %{{.*}} iter_args({{.*}}) -> (tensor<?x5xf32>, tensor<?x5xi64>)
// CHECK: scf.for {{.*}} -> (tensor<5xf32>, tensor<5xi64>)
// CHECK: scf.if
// CHECK: scf.while
// CHECK: return %[[MADE]]#1
func.func @first(%x: tensor<?x100xf32>, %i: tensor<?x100xi64>) -> tensor<?x5xi64> {
  %c0 = arith.constant 0 : index
  %s:2 = tm_tensor.sort dimension(1) outs(%x, %i : tensor<?x100xf32>, tensor<?x100xi64>) {
  ^bb0(%a: f32, %b: f32, %j: i64, %k: i64):
    %stays = arith.cmpf ole, %a, %b : f32
    tm_tensor.yield %stays : i1
  } -> tensor<?x100xf32>, tensor<?x100xi64>
  %rows = tensor.dim %s#1, %c0 : tensor<?x100xi64>
  %r = tensor.extract_slice %s#1[0, 0] [%rows, 5] [1, 1] : tensor<?x100xi64> to tensor<?x5xi64>
  return %r : tensor<?x5xi64>
}

// All of it is used: runs of doubled length are merged, in seven passes.
// CHECK-LABEL: func.func @all
// CHECK-NOT: tm_tensor.sort
// CHECK: %[[PASSES:.*]] = arith.constant 7 : index
// CHECK: scf.for {{.*}} -> (tensor<4x100xf32>)
// CHECK: scf.for %{{.*}} to %[[PASSES]] {{.*}} -> (tensor<100xf32>)
func.func @all(%x: tensor<4x100xf32>) -> tensor<4x100xf32> {
  %s = tm_tensor.sort dimension(1) outs(%x : tensor<4x100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %stays = arith.cmpf ole, %a, %b : f32
    tm_tensor.yield %stays : i1
  } -> tensor<4x100xf32>
  return %s : tensor<4x100xf32>
}

// Ninety of a hundred are most of them, and the last ones are not the first: both are sorted.
// CHECK-LABEL: func.func @most
// CHECK: scf.for {{.*}} -> (tensor<100xf32>)
// CHECK: tensor.extract_slice %{{.*}}[0] [90] [1]
// CHECK: scf.for {{.*}} -> (tensor<100xf32>)
// CHECK: tensor.extract_slice %{{.*}}[95] [5] [1]
func.func @most(%x: tensor<100xf32>) -> (tensor<90xf32>, tensor<5xf32>) {
  %s = tm_tensor.sort dimension(0) outs(%x : tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %stays = arith.cmpf ole, %a, %b : f32
    tm_tensor.yield %stays : i1
  } -> tensor<100xf32>
  %most = tensor.extract_slice %s[0] [90] [1] : tensor<100xf32> to tensor<90xf32>
  %t = tm_tensor.sort dimension(0) outs(%x : tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32):
    %stays = arith.cmpf oge, %a, %b : f32
    tm_tensor.yield %stays : i1
  } -> tensor<100xf32>
  %last = tensor.extract_slice %t[95] [5] [1] : tensor<100xf32> to tensor<5xf32>
  return %most, %last : tensor<90xf32>, tensor<5xf32>
}
