// RUN: eyas opt %s --passes compose-copies,canonicalize,cse | filecheck %s

#id = affine_map<(a, b, c, d) -> (a, b, c, d)>
// CHECK-DAG: [[FLIPPED:#.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2, -d0 + 2, -d1 + 2)>
// CHECK-DAG: [[MIDDLE:#.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d2, d0 + 1, d1 + 1)>
// CHECK-DAG: [[BY_CHANNEL:#.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d1, d2)>
// CHECK-DAG: [[FILTER:#.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d6, d4, d5, d3)>

// A transpose, a flip and another transpose are one copy.
// CHECK-LABEL: func.func @flip
// CHECK-SAME: [[W:%.*]]: tensor<8x4x3x3xf32>
func.func @flip(%w: tensor<8x4x3x3xf32>) -> tensor<3x3x4x8xf32> {
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<4x8x3x3xf32>
  %f = tensor.empty() : tensor<3x3x4x8xf32>
  %0 = linalg.transpose ins(%w : tensor<8x4x3x3xf32>) outs(%e : tensor<4x8x3x3xf32>) permutation = [1, 0, 2, 3]
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%0 : tensor<4x8x3x3xf32>) outs(%e : tensor<4x8x3x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %l = linalg.index 3 : index
    %m = arith.subi %c2, %k : index
    %n = arith.subi %c2, %l : index
    %x = tensor.extract %0[%i, %j, %m, %n] : tensor<4x8x3x3xf32>
    linalg.yield %x : f32
  } -> tensor<4x8x3x3xf32>
  // CHECK-NOT: linalg.transpose
  // CHECK-NOT: tensor.extract
  // CHECK: [[Y:%.*]] = linalg.generic {indexing_maps = [[[FLIPPED]], {{#.*}}]{{.*}}ins([[W]] :
  // CHECK: return [[Y]]
  %2 = linalg.transpose ins(%1 : tensor<4x8x3x3xf32>) outs(%f : tensor<3x3x4x8xf32>) permutation = [2, 3, 0, 1]
  return %2 : tensor<3x3x4x8xf32>
}

// A part of a copy: nothing else is copied.
// CHECK-LABEL: func.func @slice
// CHECK: linalg.generic {indexing_maps = [[[MIDDLE]], {{#.*}}]
// CHECK-NOT: tensor.extract_slice
func.func @slice(%w: tensor<8x4x3x3xf32>) -> tensor<1x1x4x8xf32> {
  %e = tensor.empty() : tensor<3x3x4x8xf32>
  %0 = linalg.transpose ins(%w : tensor<8x4x3x3xf32>) outs(%e : tensor<3x3x4x8xf32>) permutation = [2, 3, 1, 0]
  %1 = tensor.extract_slice %0[1, 1, 0, 0] [1, 1, 4, 8] [1, 1, 1, 1] : tensor<3x3x4x8xf32> to tensor<1x1x4x8xf32>
  return %1 : tensor<1x1x4x8xf32>
}

// An index that comes from data stays an extraction, and so does one that may leave the tensor.
// CHECK-LABEL: func.func @computed
// CHECK-COUNT-2: tensor.extract
func.func @computed(%x: tensor<8xf32>, %at: tensor<8xindex>) -> (tensor<8xf32>, tensor<8xf32>) {
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]} ins(%at : tensor<8xindex>) outs(%e : tensor<8xf32>) {
  ^bb0(%i: index, %out: f32):
    %y = tensor.extract %x[%i] : tensor<8xf32>
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>], iterator_types = ["parallel"]} outs(%e : tensor<8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = arith.addi %i, %c2 : index
    %y = tensor.extract %x[%j] : tensor<8xf32>
    linalg.yield %y : f32
  } -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// The copy of a filter keeps its channels together.
// CHECK-LABEL: func.func @filter
// CHECK-SAME: [[X:%.*]]: tensor<1x8x8x4xf32>, [[W:%.*]]: tensor<16x4x3x3xf32>
func.func @filter(%x: tensor<1x8x8x4xf32>, %w: tensor<16x4x3x3xf32>, %init: tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32> {
  %e = tensor.empty() : tensor<3x3x4x16xf32>
  %t = linalg.transpose ins(%w : tensor<16x4x3x3xf32>) outs(%e : tensor<3x3x4x16xf32>) permutation = [2, 3, 1, 0]
  // CHECK: [[T:%.*]] = linalg.generic {indexing_maps = [[[BY_CHANNEL]], {{#.*}}]{{.*}}ins([[W]] : {{.*}} outs({{.*}} : tensor<4x3x3x16xf32>)
  // CHECK: linalg.generic {indexing_maps = [{{#.*}}, [[FILTER]], {{#.*}}]{{.*}}ins([[X]], [[T]] :
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %t : tensor<1x8x8x4xf32>, tensor<3x3x4x16xf32>) outs(%init : tensor<1x6x6x16xf32>) -> tensor<1x6x6x16xf32>
  return %y : tensor<1x6x6x16xf32>
}

// A part of a filter that lies in the right order is read where it is.
// CHECK-LABEL: func.func @part
// CHECK: [[PART:%.*]] = tensor.extract_slice
// CHECK: linalg.conv_2d_nhwc_hwcf {{.*}}ins({{%.*}}, [[PART]] :
func.func @part(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x16xf32>, %init: tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32> {
  %0 = tensor.extract_slice %w[1, 1, 0, 0] [1, 1, 4, 16] [1, 1, 1, 1] : tensor<3x3x4x16xf32> to tensor<1x1x4x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%x, %0 : tensor<1x8x8x4xf32>, tensor<1x1x4x16xf32>) outs(%init : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}

// The first elements of a dimension are no loop over it: the slice stays.
// CHECK-LABEL: func.func @first
// CHECK: linalg.transpose
// CHECK: tensor.extract_slice
func.func @first(%x: tensor<8x7xf32>) -> tensor<6x8xf32> {
  %e = tensor.empty() : tensor<7x8xf32>
  %0 = linalg.transpose ins(%x : tensor<8x7xf32>) outs(%e : tensor<7x8xf32>) permutation = [1, 0]
  %1 = tensor.extract_slice %0[0, 0] [6, 8] [1, 1] : tensor<7x8xf32> to tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}

// Nor when a body extracts them.
// CHECK-LABEL: func.func @first_extracted
// CHECK: tensor.extract
func.func @first_extracted(%x: tensor<8xf32>) -> tensor<6xf32> {
  %e = tensor.empty() : tensor<6xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%e : tensor<6xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %x[%i] : tensor<8xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
