// RUN: eyas opt %s --passes wrap-scalars | filecheck %s

// CHECK-LABEL: func.func @main(
// CHECK-SAME: [[N:%.*]]: tensor<i64>, [[I:%.*]]: tensor<i64>, [[X:%.*]]: tensor<4xf32>) -> (tensor<i64>, tensor<i64>, tensor<4xf32>)
func.func @main(%n: i64, %i: index, %x: tensor<4xf32>) -> (i64, index, tensor<4xf32>) {
  // CHECK-DAG: [[NV:%.*]] = tensor.extract [[N]][] : tensor<i64>
  // CHECK-DAG: [[IV:%.*]] = tensor.extract [[I]][] : tensor<i64>
  // CHECK-DAG: [[IX:%.*]] = arith.index_cast [[IV]] : i64 to index
  // CHECK: [[M:%.*]] = arith.addi [[NV]], [[NV]] : i64
  %m = arith.addi %n, %n : i64
  // CHECK: [[R:%.*]] = tensor.from_elements [[M]] : tensor<i64>
  // CHECK: [[C:%.*]] = arith.index_cast [[IX]] : index to i64
  // CHECK: [[S:%.*]] = tensor.from_elements [[C]] : tensor<i64>
  // CHECK: return [[R]], [[S]], [[X]] : tensor<i64>, tensor<i64>, tensor<4xf32>
  return %m, %i, %x : i64, index, tensor<4xf32>
}
