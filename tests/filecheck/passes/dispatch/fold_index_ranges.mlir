// RUN: eyas opt %s --passes fold-index-ranges,canonicalize | filecheck %s

// 'seq' is between 1 and 512, 'rows' has no bounds.
module {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<?x?xf32>) -> (index, index, index, index)
      attributes {flow.signature = "{'arguments': [['x', 'f32', ['seq', 'rows']]], 'results': [], 'symbols': {'seq': [1, 512], 'rows': [0, None]}}"} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c512 = arith.constant 512 : index
    // CHECK-DAG: [[C512:%.*]] = arith.constant 512 : index
    // CHECK-DAG: [[SEQ:%.*]] = tensor.dim %{{.*}}, %c0
    // CHECK-DAG: [[ROWS:%.*]] = tensor.dim %{{.*}}, %c1
    %seq = tensor.dim %x, %c0 : tensor<?x?xf32>
    %rows = tensor.dim %x, %c1 : tensor<?x?xf32>
    // A size is never negative, and this one is never above 512.
    %negative = arith.cmpi slt, %seq, %c0 : index
    %wrapped = arith.addi %seq, %c512 : index
    %start = arith.select %negative, %wrapped, %seq : index
    %clamped = arith.minsi %start, %c512 : index
    %largest = arith.maxsi %seq, %c512 : index
    // CHECK-NOT: arith.select
    // Rows may be more than 512, and may be zero.
    // CHECK-DAG: [[MIN:%.*]] = arith.minsi [[ROWS]], [[C512]]
    %open = arith.minsi %rows, %c512 : index
    // CHECK-DAG: [[MAX:%.*]] = arith.maxsi [[ROWS]], %c1
    %some = arith.maxsi %rows, %c1 : index
    // CHECK: return [[SEQ]], [[C512]], [[MIN]], [[MAX]]
    return %clamped, %largest, %open, %some : index, index, index, index
  }
}
