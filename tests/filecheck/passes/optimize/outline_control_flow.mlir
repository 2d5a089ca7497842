// RUN: eyas opt %s --passes 'count-loops,outline-control-flow{min-work=64 disable=recurrence},canonicalize,cse' | filecheck %s

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

// How often this loop runs depends on data: each step says whether there is another. The next one has too little work.
// CHECK-LABEL: func.func @data
// CHECK-SAME: %[[N:.*]]: tensor<i64>, %[[H:.*]]: tensor<8x8xf32>
// CHECK: %[[MOST:.*]] = tensor.extract %[[N]]
// CHECK: %[[GO:.*]] = arith.cmpi sgt, %[[MOST]]
// CHECK: %[[R:.*]]:2 = call @data_loop_0(%[[GO]], %{{.*}}, %[[H]], %[[N]]) {flow.keeps_shape, flow.while = @data_loop_0_step} : (i1, tensor<i64>, tensor<8x8xf32>, tensor<i64>)
// CHECK: scf.for
// CHECK: return %[[R]]#1
func.func @data(%n: tensor<i64>, %h: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
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

// One of two functions runs. What they take are tensors; sizes of what they give are known before.
// CHECK-LABEL: func.func @branches
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>, %[[C:.*]]: tensor<i1>
// CHECK: %[[GO:.*]] = tensor.extract %[[C]]
// CHECK: %[[DIM:.*]] = tensor.dim %[[X]]
// CHECK: %[[ROWS:.*]] = arith.select %[[GO]], %[[DIM]], %[[DIM]]
// CHECK: %[[Y:.*]] = call @branches_branch_0(%[[GO]], %[[X]]) {flow.branches = [@branches_branch_0_then, @branches_branch_0_else]}
// CHECK: "flow.tie_shape"(%[[Y]], %[[ROWS]])
func.func @branches(%x: tensor<?x8xf32>, %c: tensor<i1>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %w = "flow.parameter"() {key = "w"} : () -> tensor<8x8xf32>
  %rows = tensor.dim %x, %c0 : tensor<?x8xf32>
  %go = tensor.extract %c[] : tensor<i1>
  %r = scf.if %go -> (tensor<?x8xf32>) {
    %e = tensor.empty(%rows) : tensor<?x8xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
    %m = linalg.matmul ins(%x, %w : tensor<?x8xf32>, tensor<8x8xf32>) outs(%z : tensor<?x8xf32>) -> tensor<?x8xf32>
    scf.yield %m : tensor<?x8xf32>
  } else {
    scf.yield %x : tensor<?x8xf32>
  }
  return %r : tensor<?x8xf32>
}

// The body has the weights that it uses, and what it captures as arguments.
// CHECK-LABEL: func.func private @main_loop_0(%arg0: tensor<1x8xf32>, %arg1: tensor<1x8xf32>, %arg2: tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK: flow.parameter
// CHECK: linalg.matmul
// CHECK-NOT: tensor.insert_slice

// CHECK-LABEL: func.func private @data_loop_0_step(
// CHECK-SAME: %[[I:.*]]: tensor<i64>, %[[S:.*]]: tensor<8x8xf32>, %[[N:.*]]: tensor<i64>) -> (tensor<i1>, tensor<i64>, tensor<8x8xf32>)
// CHECK-DAG: %[[NEW:.*]] = linalg.matmul
// CHECK-DAG: %[[J:.*]] = arith.addi
// CHECK-DAG: %[[GO:.*]] = arith.cmpi slt, %[[J]]
// CHECK: return %{{.*}}, %{{.*}}, %[[NEW]]

// CHECK-LABEL: func.func private @branches_branch_0_then(
// CHECK-SAME: %[[X:.*]]: tensor<?x8xf32>) -> tensor<?x8xf32>
// CHECK: %[[W:.*]] = "flow.parameter"
// CHECK: %[[M:.*]] = linalg.matmul ins(%[[X]], %[[W]]
// CHECK: return %[[M]]
// CHECK-LABEL: func.func private @branches_branch_0_else(
// CHECK: return %arg0
