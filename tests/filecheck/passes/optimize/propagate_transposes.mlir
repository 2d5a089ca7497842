// RUN: eyas opt %s --passes propagate-transposes,canonicalize,cse | filecheck %s

#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>
#tr = affine_map<(a, b) -> (b, a)>

// Two transposes meet through an elementwise op and cancel; the bias is read by its other loop.
// CHECK-DAG: [[COLUMN:#.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @cancel
// CHECK-SAME: [[X:%.*]]: tensor<4x8xf32>, [[B:%.*]]: tensor<8xf32>
func.func @cancel(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %f = tensor.empty() : tensor<4x8xf32>
  // CHECK-NOT: linalg.transpose
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  // CHECK: [[Y:%.*]] = linalg.generic {{.*}}indexing_maps = [{{#.*}}, [[COLUMN]], {{#.*}}]{{.*}}ins([[X]], [[B]] :
  %1 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %b : tensor<8x4xf32>, tensor<8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  %2 = linalg.transpose ins(%1 : tensor<8x4xf32>) outs(%f : tensor<4x8xf32>) permutation = [1, 0]
  // CHECK-NOT: linalg.transpose
  // CHECK: return [[Y]]
  return %2 : tensor<4x8xf32>
}

// Only unit dimensions move: the elements stay where they are.
// CHECK-LABEL: func.func @unit
// CHECK: "flow.reshape"
// CHECK-NOT: linalg.transpose
func.func @unit(%x: tensor<1x8x4xf32>) -> tensor<8x1x4xf32> {
  %e = tensor.empty() : tensor<8x1x4xf32>
  %0 = linalg.transpose ins(%x : tensor<1x8x4xf32>) outs(%e : tensor<8x1x4xf32>) permutation = [1, 0, 2]
  return %0 : tensor<8x1x4xf32>
}

// A transpose that leaves the program has nowhere to go.
// CHECK-LABEL: func.func @stays
// CHECK: linalg.transpose
func.func @stays(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  return %0 : tensor<8x4xf32>
}

// One operand for each order: a tie moves nothing, since moving it would only be undone.
// CHECK-LABEL: func.func @tie
// CHECK: [[T:%.*]] = linalg.transpose
// CHECK: linalg.generic {{.*}}ins([[T]], %arg1 :
// CHECK-NOT: linalg.transpose
func.func @tie(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %y : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// Most parts agree; the third is transposed by itself, and the whole afterwards.
// CHECK-LABEL: func.func @concat
// CHECK-SAME: [[A:%.*]]: tensor<1x4x4x8xf32>, [[B:%.*]]: tensor<1x4x4x16xf32>, [[C:%.*]]: tensor<1x2x4x4xf32>
func.func @concat(%a: tensor<1x4x4x8xf32>, %b: tensor<1x4x4x16xf32>, %c: tensor<1x2x4x4xf32>) -> tensor<1x26x4x4xf32> {
  %0 = tensor.empty() : tensor<1x8x4x4xf32>
  %1 = tensor.empty() : tensor<1x16x4x4xf32>
  %ta = linalg.transpose ins(%a : tensor<1x4x4x8xf32>) outs(%0 : tensor<1x8x4x4xf32>) permutation = [0, 3, 1, 2]
  %tb = linalg.transpose ins(%b : tensor<1x4x4x16xf32>) outs(%1 : tensor<1x16x4x4xf32>) permutation = [0, 3, 1, 2]
  // CHECK: [[T:%.*]] = linalg.transpose ins([[C]] : tensor<1x2x4x4xf32>) {{.*}} permutation = [0, 2, 3, 1]
  // CHECK: [[Y:%.*]] = tensor.concat dim(3) [[A]], [[B]], [[T]] : {{.*}} -> tensor<1x4x4x26xf32>
  // CHECK: linalg.transpose ins([[Y]] : {{.*}}) {{.*}} permutation = [0, 3, 1, 2]
  %y = tensor.concat dim(1) %ta, %tb, %c : (tensor<1x8x4x4xf32>, tensor<1x16x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x26x4x4xf32>
  return %y : tensor<1x26x4x4xf32>
}

// With a tie it stays.
// CHECK-LABEL: func.func @concat_tie
// CHECK: tensor.concat dim(1)
func.func @concat_tie(%a: tensor<1x4x4x8xf32>, %c: tensor<1x2x4x4xf32>) -> tensor<1x10x4x4xf32> {
  %0 = tensor.empty() : tensor<1x8x4x4xf32>
  %ta = linalg.transpose ins(%a : tensor<1x4x4x8xf32>) outs(%0 : tensor<1x8x4x4xf32>) permutation = [0, 3, 1, 2]
  %y = tensor.concat dim(1) %ta, %c : (tensor<1x8x4x4xf32>, tensor<1x2x4x4xf32>) -> tensor<1x10x4x4xf32>
  return %y : tensor<1x10x4x4xf32>
}

// Pixels of three channels are read where they lie.
// CHECK-LABEL: func.func @few_channels
// CHECK-SAME: [[X:%.*]]: tensor<1x3x9x9xf32>, [[W:%.*]]: tensor<3x3x3x16xf32>
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {{.*}} ins([[X]], [[W]] :
func.func @few_channels(%x: tensor<1x3x9x9xf32>, %w: tensor<3x3x3x16xf32>, %init: tensor<1x4x4x16xf32>) -> tensor<1x4x4x16xf32> {
  %0 = tensor.empty() : tensor<1x9x9x3xf32>
  %t = linalg.transpose ins(%x : tensor<1x3x9x9xf32>) outs(%0 : tensor<1x9x9x3xf32>) permutation = [0, 2, 3, 1]
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%t, %w : tensor<1x9x9x3xf32>, tensor<3x3x3x16xf32>) outs(%init : tensor<1x4x4x16xf32>) -> tensor<1x4x4x16xf32>
  return %y : tensor<1x4x4x16xf32>
}

// A transpose of unit dimensions goes on through elementwise ops, and is a reshape where it ends.
// CHECK-LABEL: func.func @unit_dims
// CHECK-SAME: [[X:%.*]]: tensor<1x1x1x8xf32>
// CHECK: [[E:%.*]] = linalg.generic {{.*}} ins([[X]] : tensor<1x1x1x8xf32>)
// CHECK: flow.reshape{{.*}}[[E]]
func.func @unit_dims(%x: tensor<1x1x1x8xf32>) -> tensor<1x8x1x1xf32> {
  %0 = tensor.empty() : tensor<1x8x1x1xf32>
  %t = linalg.transpose ins(%x : tensor<1x1x1x8xf32>) outs(%0 : tensor<1x8x1x1xf32>) permutation = [0, 3, 1, 2]
  %y = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%t : tensor<1x8x1x1xf32>) outs(%0 : tensor<1x8x1x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<1x8x1x1xf32>
  return %y : tensor<1x8x1x1xf32>
}

// The sum needs %x in the other order, so its square is computed in that order too: one tensor is turned, not two.
// CHECK-LABEL: func.func @pulled_back
// CHECK-SAME: [[X:%.*]]: tensor<4x8xf32>, [[M:%.*]]: tensor<8x4xf32>, [[V:%.*]]: tensor<8x4xf32>
func.func @pulled_back(%x: tensor<4x8xf32>, %m: tensor<8x4xf32>, %v: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %e = tensor.empty() : tensor<8x4xf32>
  // CHECK: [[T:%.*]] = linalg.transpose ins([[X]] :
  // CHECK-NOT: linalg.transpose
  %t = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
  // CHECK: linalg.generic {{.*}}ins([[T]], [[M]] :
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%t, %m : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  // CHECK: [[S:%.*]] = linalg.generic {{.*}}ins([[T]] :
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.mulf %i, %i : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  // CHECK: linalg.generic {{.*}}ins([[S]], [[V]] :
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%1, %v : tensor<8x4xf32>, tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.addf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<8x4xf32>
  return %0, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}
