// RUN: eyas opt %s --passes unify-dimensions,canonicalize,cse | filecheck %s

// Both arguments are [batch, seq]; the third has a size of its own.
module {
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: [[X:%.*]]: tensor<?x?xf32>, [[MASK:%.*]]: tensor<?x?xi1>, [[Y:%.*]]: tensor<?xf32>
  func.func @main(%x: tensor<?x?xf32>, %mask: tensor<?x?xi1>, %y: tensor<?xf32>) -> (index, index, index)
      attributes {flow.signature = "{'arguments': [['x', 'f32', ['batch', 'seq']], ['mask', 'i1', ['batch', 'seq']], ['y', 'f32', ['rows']]], 'results': [], 'symbols': {'batch': [0, None], 'seq': [0, None], 'rows': [0, None]}}"} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // CHECK-DAG: [[C0:%.*]] = arith.constant 0 : index
    // CHECK-DAG: [[C1:%.*]] = arith.constant 1 : index
    // CHECK-DAG: [[B:%.*]] = tensor.dim [[X]], [[C0]]
    // CHECK-DAG: [[S:%.*]] = tensor.dim [[X]], [[C1]]
    // CHECK-DAG: [[R:%.*]] = tensor.dim [[Y]], [[C0]]
    // CHECK-NOT: tensor.dim [[MASK]]
    %b = tensor.dim %mask, %c0 : tensor<?x?xi1>
    %s = tensor.dim %mask, %c1 : tensor<?x?xi1>
    %r = tensor.dim %y, %c0 : tensor<?xf32>
    // CHECK: return [[B]], [[S]], [[R]]
    return %b, %s, %r : index, index, index
  }
}
