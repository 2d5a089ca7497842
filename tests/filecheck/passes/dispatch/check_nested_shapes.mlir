// RUN: eyas opt %s --passes 'tie-shapes,check-nested-shapes,canonicalize,cse' | filecheck %s

#id = affine_map<(d0) -> (d0)>

// What does not change from step to step is asked before the loop, if it takes a step.
// CHECK-LABEL: func.func @loop
// CHECK: [[NONE:%.*]] = arith.cmpi sle, %{{.*}}, %c0
// CHECK: [[SAME:%.*]] = arith.cmpi eq
// CHECK: [[HOLDS:%.*]] = arith.ori [[SAME]], [[NONE]]
// CHECK: cf.assert [[HOLDS]], "two sizes must be equal for linalg.generic
// CHECK: scf.for
// CHECK-NOT: cf.assert
// CHECK: return
func.func @loop(%steps: index, %x: tensor<9x?xf32>, %y: tensor<9x?xf32>, %s: tensor<f32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<9x?xf32>
  %m = tensor.dim %y, %c1 : tensor<9x?xf32>
  %r = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %s) -> (tensor<f32>) {
    %a = tensor.extract_slice %x[%i, 0] [1, %n] [1, 1] : tensor<9x?xf32> to tensor<?xf32>
    %b = tensor.extract_slice %y[%i, 0] [1, %m] [1, 1] : tensor<9x?xf32> to tensor<?xf32>
    %t = linalg.generic {indexing_maps = [#id, #id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%acc : tensor<f32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %p = arith.mulf %u, %v : f32
      %q = arith.addf %p, %o : f32
      linalg.yield %q : f32
    } -> tensor<f32>
    scf.yield %t : tensor<f32>
  }
  return %r : tensor<f32>
}

// What one branch needs is asked where it is taken.
// CHECK-LABEL: func.func @branch
// CHECK: scf.if
// CHECK: cf.assert %{{.*}}, "two sizes must be equal for linalg.generic
// CHECK: else
func.func @branch(%which: i1, %x: tensor<?xf32>, %y: tensor<?xf32>, %s: tensor<f32>) -> tensor<f32> {
  %r = scf.if %which -> (tensor<f32>) {
    %t = linalg.generic {indexing_maps = [#id, #id, affine_map<(d0) -> ()>], iterator_types = ["reduction"]} ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%s : tensor<f32>) {
    ^bb0(%u: f32, %v: f32, %o: f32):
      %p = arith.mulf %u, %v : f32
      %q = arith.addf %p, %o : f32
      linalg.yield %q : f32
    } -> tensor<f32>
    scf.yield %t : tensor<f32>
  } else {
    scf.yield %s : tensor<f32>
  }
  return %r : tensor<f32>
}

// Rows of one tensor are as long as each other.
// CHECK-LABEL: func.func @one_size
// CHECK-NOT: cf.assert
func.func @one_size(%x: tensor<9x?xf32>, %s: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %n = tensor.dim %x, %c1 : tensor<9x?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %e) -> (tensor<?xf32>) {
    %a = tensor.extract_slice %x[%i, 0] [1, %n] [1, 1] : tensor<9x?xf32> to tensor<?xf32>
    %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%a : tensor<?xf32>) outs(%acc : tensor<?xf32>) {
    ^bb0(%u: f32, %o: f32):
      %q = arith.addf %u, %o : f32
      linalg.yield %q : f32
    } -> tensor<?xf32>
    scf.yield %t : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
