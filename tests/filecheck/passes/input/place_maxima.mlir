// RUN: eyas opt %s --passes place-maxima | filecheck %s

#window = affine_map<(n, c, i, k) -> (n, c, i)>
#taps = affine_map<(n, c, i, k) -> (k)>

// Padding is no place, and the last NaN is one.
// CHECK-LABEL: func.func @main
func.func @main(%image: tensor<1x1x8xf32>, %largest: tensor<1x1x5xf32>, %taps: tensor<2xi64>,
    %first: tensor<1x1x5xi64>) -> tensor<1x1x5xi64> {
  %low = arith.constant 0xFF800000 : f32
  %none = arith.constant -1 : i64
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %padded = tensor.pad %image low[0, 0, 1] high[0, 0, 1] {
  ^bb0(%n: index, %c: index, %i: index):
    tensor.yield %low : f32
  } : tensor<1x1x8xf32> to tensor<1x1x10xf32>
  // CHECK: %[[VALUE:.+]] = tensor.extract
  // CHECK: %[[SAME:.+]] = arith.cmpf oeq, %[[VALUE]]
  // CHECK: %[[HERE:.+]] = arith.index_cast
  // CHECK: %[[FREE:.+]] = arith.cmpi eq, %[[OUT:.+]], %{{.+}} : i64
  // CHECK: %[[FIRST:.+]] = arith.andi %[[FREE]], %[[SAME]]
  // CHECK: %[[NAN:.+]] = arith.cmpf uno, %[[VALUE]], %[[VALUE]]
  // CHECK: %[[WINS:.+]] = arith.ori %[[FIRST]], %[[NAN]]
  // CHECK: %[[BEHIND:.+]] = arith.cmpi sge
  // CHECK: %[[BEFORE:.+]] = arith.cmpi slt
  // CHECK: %[[PART:.+]] = arith.andi %[[WINS]], %[[BEHIND]]
  // CHECK: %[[TAKE:.+]] = arith.andi %[[PART]], %[[BEFORE]]
  // CHECK: %[[KEPT:.+]] = arith.select %[[TAKE]], %[[HERE]], %[[OUT]]
  // CHECK: linalg.yield %[[KEPT]]
  %places = linalg.generic {indexing_maps = [#window, #taps, #window],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%largest, %taps : tensor<1x1x5xf32>, tensor<2xi64>) outs(%first : tensor<1x1x5xi64>) {
  ^bb0(%in: f32, %tap: i64, %out: i64):
    %n = linalg.index 0 : index
    %c = linalg.index 1 : index
    %i = linalg.index 2 : index
    %k = linalg.index 3 : index
    %begin = arith.muli %i, %c2 : index
    %at = arith.addi %begin, %k : index
    %value = tensor.extract %padded[%n, %c, %at] : tensor<1x1x10xf32>
    %same = arith.cmpf oeq, %value, %in : f32
    %inside = arith.subi %at, %c1 : index
    %here = arith.index_cast %inside : index to i64
    %found = arith.select %same, %here, %out : i64
    %free = arith.cmpi eq, %out, %none : i64
    %kept = arith.select %free, %found, %out : i64
    linalg.yield %kept : i64
  } -> tensor<1x1x5xi64>
  return %places : tensor<1x1x5xi64>
}
