// RUN: eyas opt %s --passes batch-loops,canonicalize,cse | filecheck %s

#id = affine_map<(d0) -> (d0)>
#rows = affine_map<(d0, d1) -> (d0)>
#all = affine_map<(d0, d1) -> (d0, d1)>

// Rows in, rows out: one op for all steps. What is the same in all steps has no dimension for them.
// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[BACK:.*]] = affine_map<(d0, d1) -> (-d0 + 8, d1)>
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: tensor<9x4xf32>, %[[W:.*]]: tensor<4xf32>)
// CHECK-NOT: scf.for
// CHECK: %[[R:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[LAST]], #[[ALL]]]
// CHECK-SAME: ins(%[[X]], %[[W]] : tensor<9x4xf32>, tensor<4xf32>)
// CHECK: return %[[R]]
func.func @rows(%x: tensor<9x4xf32>, %w: tensor<4xf32>) -> tensor<9x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %z = tensor.empty() : tensor<9x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%y = %z) -> (tensor<9x4xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<9x4xf32> to tensor<4xf32>
    %v = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%row, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %p = arith.mulf %a, %b : f32
      linalg.yield %p : f32
    } -> tensor<4xf32>
    %new = tensor.insert_slice %v into %y[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<9x4xf32>
    scf.yield %new : tensor<9x4xf32>
  }
  return %r : tensor<9x4xf32>
}

// From the last row to the first, and a sum whose number of the step counts too.
// CHECK-LABEL: func.func @backwards
// CHECK-NOT: scf.for
// CHECK: linalg.generic {indexing_maps = [#[[BACK]], #[[ALL]]]
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: linalg.index 0
func.func @backwards(%x: tensor<9x4xf32>) -> tensor<9xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  %zero = arith.constant 0.0 : f32
  %z = tensor.empty() : tensor<9xf32>
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%y = %z) -> (tensor<9xf32>) {
    %at = arith.subi %c8, %i : index
    %n = arith.index_cast %i : index to i64
    %f = arith.sitofp %n : i64 to f32
    %row = tensor.extract_slice %x[%at, 0] [1, 4] [1, 1] : tensor<9x4xf32> to tensor<1x4xf32>
    %e = tensor.empty() : tensor<1xf32>
    %fill = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
    %v = linalg.generic {indexing_maps = [#all, #rows], iterator_types = ["parallel", "reduction"]} ins(%row : tensor<1x4xf32>) outs(%fill : tensor<1xf32>) {
    ^bb0(%a: f32, %out: f32):
      %p = arith.mulf %a, %f : f32
      %s = arith.addf %p, %out : f32
      linalg.yield %s : f32
    } -> tensor<1xf32>
    %new = tensor.insert_slice %v into %y[%i] [1] [1] : tensor<1xf32> into tensor<9xf32>
    scf.yield %new : tensor<9xf32>
  }
  return %r : tensor<9xf32>
}

// As many steps as an argument has rows.
// CHECK-LABEL: func.func @open
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>)
// CHECK-NOT: scf.while
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<?x4xf32>)
// CHECK: return %[[R]]
func.func @open(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %count = arith.index_cast %n : index to i64
  %z = tensor.empty(%n) : tensor<?x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %go = arith.cmpi sgt, %count, %zero : i64
  %r:2 = scf.while (%goes = %go, %i = %zero, %y = %z) : (i1, i64, tensor<?x4xf32>) -> (i64, tensor<?x4xf32>) {
    scf.condition(%goes) %i, %y : i64, tensor<?x4xf32>
  } do {
  ^bb0(%i: i64, %y: tensor<?x4xf32>):
    %at = arith.index_cast %i : i64 to index
    %row = tensor.extract_slice %x[%at, 0] [1, 4] [1, 1] : tensor<?x4xf32> to tensor<4xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%row : tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %out: f32):
      %p = arith.negf %a : f32
      linalg.yield %p : f32
    } -> tensor<4xf32>
    %new = tensor.insert_slice %v into %y[%at, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
    %next = arith.addi %i, %one : i64
    %more = arith.cmpi slt, %next, %count : i64
    scf.yield %more, %next, %new : i1, i64, tensor<?x4xf32>
  }
  return %r#1 : tensor<?x4xf32>
}

// A sum over steps, and a step that may fail, stay loops.
// CHECK-LABEL: func.func @states
// CHECK: scf.for
// CHECK-NOT: linalg.generic {{.*}} tensor<9x4xf32>
// CHECK: scf.for
// CHECK: cf.assert
func.func @states(%x: tensor<9x4xf32>, %w: tensor<4xf32>, %ok: i1) -> (tensor<4xf32>, tensor<9x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %z = tensor.empty() : tensor<9x4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %w, %y = %z) -> (tensor<4xf32>, tensor<9x4xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<9x4xf32> to tensor<4xf32>
    %v = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%row, %h : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %p = arith.addf %a, %b : f32
      linalg.yield %p : f32
    } -> tensor<4xf32>
    %new = tensor.insert_slice %v into %y[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<9x4xf32>
    scf.yield %v, %new : tensor<4xf32>, tensor<9x4xf32>
  }
  %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%y = %z) -> (tensor<9x4xf32>) {
    cf.assert %ok, "no"
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<9x4xf32> to tensor<4xf32>
    %new = tensor.insert_slice %row into %y[%i, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<9x4xf32>
    scf.yield %new : tensor<9x4xf32>
  }
  return %r#0, %s : tensor<4xf32>, tensor<9x4xf32>
}
