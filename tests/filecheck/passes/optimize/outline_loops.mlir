// RUN: eyas opt %s --passes 'count-loops,outline-loops{min-work=64 disable=recurrence},canonicalize,cse' | filecheck %s

// Rows of %xs are read from the last to the first, rows of the result are written; the state is a row as well.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[XS:.*]]: tensor<5x1x8xf32>, %[[H:.*]]: tensor<1x8xf32>, %[[B:.*]]: tensor<1x8xf32>
func.func @main(%xs: tensor<5x1x8xf32>, %h: tensor<1x8xf32>, %b: tensor<1x8xf32>) -> (tensor<5x1x8xf32>, tensor<1x8xf32>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c4 = arith.constant 4 : i64
  %c5 = arith.constant 5 : i64
  %zero = arith.constant 0.0 : f32
  %w = "flow.parameter"() {key = "w"} : () -> tensor<8x8xf32>
  %e = tensor.empty() : tensor<5x1x8xf32>
  %ys = linalg.fill ins(%zero : f32) outs(%e : tensor<5x1x8xf32>) -> tensor<5x1x8xf32>
  // CHECK: %[[R:.*]]:2 = call @main_loop_0_steps(%[[XS]], %[[H]], %[[B]]) {flow.loop = @main_loop_0, flow.reads = array<i64: 4, -1>, flow.rows = array<i64: 0, 0, 1>, flow.states = array<i64: 0>, flow.trips = 5 : i64}
  // CHECK: return %[[R]]#0, %[[R]]#1
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

// How often this loop runs depends on data, and the next one has too little work.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: call
// CHECK: scf.while
// CHECK: scf.for
// CHECK: return
func.func @stays(%n: tensor<i64>, %h: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c5 = arith.constant 5 : i64
  %most = tensor.extract %n[] : tensor<i64>
  %r:2 = scf.while (%i = %c0, %s = %h) : (i64, tensor<8x8xf32>) -> (i64, tensor<8x8xf32>) {
    %go = arith.cmpi slt, %i, %most : i64
    scf.condition(%go) %i, %s : i64, tensor<8x8xf32>
  } do {
  ^bb0(%i: i64, %s: tensor<8x8xf32>):
    %new = linalg.matmul ins(%s, %s : tensor<8x8xf32>, tensor<8x8xf32>) outs(%s : tensor<8x8xf32>) -> tensor<8x8xf32>
    %j = arith.addi %i, %c1 : i64
    scf.yield %j, %new : i64, tensor<8x8xf32>
  }
  %q:2 = scf.while (%i = %c0, %s = %h) : (i64, tensor<8x8xf32>) -> (i64, tensor<8x8xf32>) {
    %go = arith.cmpi slt, %i, %c5 : i64
    scf.condition(%go) %i, %s : i64, tensor<8x8xf32>
  } do {
  ^bb0(%i: i64, %s: tensor<8x8xf32>):
    %new = arith.negf %s : tensor<8x8xf32>
    %j = arith.addi %i, %c1 : i64
    scf.yield %j, %new : i64, tensor<8x8xf32>
  }
  return %r#1, %q#1 : tensor<8x8xf32>, tensor<8x8xf32>
}

// The body has the weights that it uses, and what it captures as arguments.
// CHECK-LABEL: func.func private @main_loop_0(%arg0: tensor<1x8xf32>, %arg1: tensor<1x8xf32>, %arg2: tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK: flow.parameter
// CHECK: linalg.matmul
// CHECK-NOT: tensor.insert_slice
