// RUN: eyas opt %s --passes 'tie-shapes,check-shapes,canonicalize,cse' | filecheck %s

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @two_sizes
// CHECK: [[SAME:%.*]] = arith.cmpi eq
// CHECK: cf.assert [[SAME]], "two sizes must be equal for linalg.generic
// CHECK: linalg.generic
func.func @two_sizes(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %s = arith.addf %i, %j : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// One size needs no check.
// CHECK-LABEL: func.func @one_size
// CHECK-NOT: cf.assert
func.func @one_size(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %i : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// What is added must not be less than nothing; a constant is known not to be.
// CHECK-LABEL: func.func @padding
// CHECK-SAME: [[X:%.*]]: tensor<4xf32>, [[N:%.*]]: index
// CHECK: [[ENOUGH:%.*]] = arith.cmpi sge, [[N]], %{{.*}} : index
// CHECK: cf.assert [[ENOUGH]], "a padding at
// CHECK-NOT: cf.assert
// CHECK: tensor.pad
func.func @padding(%x: tensor<4xf32>, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[2] high[%n] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<?xf32>
  return %p : tensor<?xf32>
}

// Across the axis of a concatenation sizes are equal.
// CHECK-LABEL: func.func @concatenation
// CHECK: [[SAME:%.*]] = arith.cmpi eq
// CHECK: cf.assert [[SAME]], "two sizes must be equal for tensor.concat
// CHECK-NOT: cf.assert
// CHECK: tensor.concat
func.func @concatenation(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %r = tensor.concat dim(1) %x, %y : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}
