// RUN: eyas opt %s --passes count-loops,canonicalize,cse | filecheck %s

// Rows of %xs are read from the last to the first, rows of the result are written.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[XS:.*]]: tensor<5x1x8xf32>, %[[H:.*]]: tensor<1x8xf32>, %[[B:.*]]: tensor<1x8xf32>
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %c5 step %c1 iter_args(%[[S:.*]] = %[[H]], %[[YS:.*]] = %{{.*}}) -> (tensor<1x8xf32>, tensor<5x1x8xf32>)
// CHECK: %[[FROM:.*]] = arith.subi %c4, %[[T]] : index
// CHECK: tensor.extract_slice %[[XS]][%[[FROM]], 0, 0]
// CHECK: %[[NEW:.*]] = linalg.matmul ins(%[[S]],
// CHECK: %[[ALL:.*]] = tensor.insert_slice {{.*}} into %[[YS]][%[[T]], 0, 0]
// CHECK-NOT: arith.cmpi
// CHECK: scf.yield %[[NEW]], %[[ALL]]
func.func @main(%xs: tensor<5x1x8xf32>, %h: tensor<1x8xf32>, %b: tensor<1x8xf32>) -> (tensor<5x1x8xf32>, tensor<1x8xf32>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c4 = arith.constant 4 : i64
  %c5 = arith.constant 5 : i64
  %zero = arith.constant 0.0 : f32
  %w = "flow.parameter"() {key = "w"} : () -> tensor<8x8xf32>
  %e = tensor.empty() : tensor<5x1x8xf32>
  %ys = linalg.fill ins(%zero : f32) outs(%e : tensor<5x1x8xf32>) -> tensor<5x1x8xf32>
  %r:3 = scf.while (%i = %c0, %s = %h, %acc = %ys) : (i64, tensor<1x8xf32>, tensor<5x1x8xf32>) -> (i64, tensor<1x8xf32>, tensor<5x1x8xf32>) {
    %go = arith.cmpi slt, %i, %c5 : i64
    scf.condition(%go) %i, %s, %acc : i64, tensor<1x8xf32>, tensor<5x1x8xf32>
  } do {
  ^bb0(%i: i64, %s: tensor<1x8xf32>, %acc: tensor<5x1x8xf32>):
    %back = arith.subi %c4, %i : i64
    %from = arith.index_cast %back : i64 to index
    %at = arith.index_cast %i : i64 to index
    %x = tensor.extract_slice %xs[%from, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<5x1x8xf32> to tensor<1x8xf32>
    %sum = arith.addf %x, %b : tensor<1x8xf32>
    %new = linalg.matmul ins(%s, %w : tensor<1x8xf32>, tensor<8x8xf32>) outs(%sum : tensor<1x8xf32>) -> tensor<1x8xf32>
    %row = tensor.expand_shape %new [[0, 1], [2]] output_shape [1, 1, 8] : tensor<1x8xf32> into tensor<1x1x8xf32>
    %all = tensor.insert_slice %row into %acc[%at, 0, 0] [1, 1, 8] [1, 1, 1] : tensor<1x1x8xf32> into tensor<5x1x8xf32>
    %j = arith.addi %i, %c1 : i64
    scf.yield %j, %new, %all : i64, tensor<1x8xf32>, tensor<5x1x8xf32>
  }
  return %r#2, %r#1 : tensor<5x1x8xf32>, tensor<1x8xf32>
}

// How often it runs depends on data; and this one's count is a result.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: scf.for
// CHECK: return
func.func @stays(%n: tensor<i64>, %h: tensor<8x8xf32>) -> (tensor<8x8xf32>, i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c5 = arith.constant 5 : i64
  %most = tensor.extract %n[] : tensor<i64>
  %r:2 = scf.while (%i = %c0, %s = %h) : (i64, tensor<8x8xf32>) -> (i64, tensor<8x8xf32>) {
    %go = arith.cmpi slt, %i, %most : i64
    scf.condition(%go) %i, %s : i64, tensor<8x8xf32>
  } do {
  ^bb0(%i: i64, %s: tensor<8x8xf32>):
    %new = arith.negf %s : tensor<8x8xf32>
    %j = arith.addi %i, %c1 : i64
    scf.yield %j, %new : i64, tensor<8x8xf32>
  }
  %q:2 = scf.while (%i = %c0, %s = %r#1) : (i64, tensor<8x8xf32>) -> (i64, tensor<8x8xf32>) {
    %go = arith.cmpi slt, %i, %c5 : i64
    scf.condition(%go) %i, %s : i64, tensor<8x8xf32>
  } do {
  ^bb0(%i: i64, %s: tensor<8x8xf32>):
    %new = arith.negf %s : tensor<8x8xf32>
    %j = arith.addi %i, %c1 : i64
    scf.yield %j, %new : i64, tensor<8x8xf32>
  }
  return %q#1, %q#0 : tensor<8x8xf32>, i64
}

// JAX counts in tensors of one integer.
// CHECK-LABEL: func.func @wrapped
// CHECK: scf.for %[[T:.*]] = %c0{{.*}} to %c5{{.*}} step %c1{{.*}} iter_args(%[[S:.*]] = %arg0)
// CHECK: arith.negf %[[S]]
// CHECK-NOT: tensor.extract
// CHECK: return
func.func @wrapped(%h: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %first = arith.constant dense<0> : tensor<i32>
  %c1 = arith.constant 1 : i32
  %c5 = arith.constant 5 : i32
  %r:2 = scf.while (%i = %first, %s = %h) : (tensor<i32>, tensor<8x8xf32>) -> (tensor<i32>, tensor<8x8xf32>) {
    %e = tensor.empty() : tensor<i1>
    %less = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%i : tensor<i32>) outs(%e : tensor<i1>) {
    ^bb0(%in: i32, %out: i1):
      %l = arith.cmpi slt, %in, %c5 : i32
      linalg.yield %l : i1
    } -> tensor<i1>
    %go = tensor.extract %less[] : tensor<i1>
    scf.condition(%go) %i, %s : tensor<i32>, tensor<8x8xf32>
  } do {
  ^bb0(%i: tensor<i32>, %s: tensor<8x8xf32>):
    %new = arith.negf %s : tensor<8x8xf32>
    %e = tensor.empty() : tensor<i32>
    %j = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%i : tensor<i32>) outs(%e : tensor<i32>) {
    ^bb0(%in: i32, %out: i32):
      %n = arith.addi %in, %c1 : i32
      linalg.yield %n : i32
    } -> tensor<i32>
    scf.yield %j, %new : tensor<i32>, tensor<8x8xf32>
  }
  return %r#1 : tensor<8x8xf32>
}
