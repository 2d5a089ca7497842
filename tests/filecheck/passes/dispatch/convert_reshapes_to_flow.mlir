// RUN: eyas opt %s --passes convert-reshapes-to-flow,cse | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: tensor<1x8x4xf32>, [[Y:%.*]]: tensor<?x6xf32>
func.func @main(%x: tensor<1x8x4xf32>, %y: tensor<?x6xf32>) -> (tensor<2x4x4xf32>, tensor<?x2x3xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %y, %c0 : tensor<?x6xf32>
  // A reshape of a reshape is one reshape.
  // CHECK: [[A:%.*]] = "flow.reshape"([[X]]) {{.*}}: (tensor<1x8x4xf32>) -> tensor<2x4x4xf32>
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<1x8x4xf32> into tensor<8x4xf32>
  %1 = tensor.expand_shape %0 [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  // CHECK: [[B:%.*]] = "flow.reshape"([[Y]], [[N:%.*]]) {{.*}}: (tensor<?x6xf32>, index) -> tensor<?x2x3xf32>
  %2 = tensor.expand_shape %y [[0], [1, 2]] output_shape [%n, 2, 3] : tensor<?x6xf32> into tensor<?x2x3xf32>
  "flow.tie_shape"(%2, %n) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<?x2x3xf32>, index) -> ()
  // CHECK-NOT: _shape %
  // CHECK: return [[A]], [[B]]
  return %1, %2 : tensor<2x4x4xf32>, tensor<?x2x3xf32>
}

// Ops that move data are left alone.
// CHECK-LABEL: func.func @transposed
func.func @transposed(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  // CHECK: linalg.transpose
  // CHECK-NOT: flow.reshape
  %t = linalg.transpose ins(%x : tensor<8x4xf32>) outs(%e : tensor<4x8xf32>) permutation = [1, 0]
  return %t : tensor<4x8xf32>
}
