// RUN: eyas opt %s --passes tie-shapes | filecheck %s

// The size of every dynamic result is stated in terms of the arguments.
// CHECK-LABEL: func.func @dynamic
// CHECK-SAME: [[X:%.*]]: tensor<?x4xf32>
func.func @dynamic(%x: tensor<?x4xf32>) -> tensor<4x?xf32> {
  // CHECK-DAG: [[ZERO:%.*]] = arith.constant 0 : index
  // CHECK-DAG: [[N:%.*]] = tensor.dim [[X]], [[ZERO]]
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<4x?xf32>
  // CHECK: [[T:%.*]] = linalg.transpose
  %t = linalg.transpose ins(%x : tensor<?x4xf32>) outs(%e : tensor<4x?xf32>) permutation = [1, 0]
  // CHECK: "flow.tie_shape"([[T]], [[N]]) {{.*}}: (tensor<4x?xf32>, index) -> ()
  // CHECK: return [[T]]
  return %t : tensor<4x?xf32>
}

// Nothing is said about static tensors.
// CHECK-LABEL: func.func @static
// CHECK-NOT: flow.tie_shape
// CHECK: return
func.func @static(%x: tensor<2x4xf32>) -> tensor<4x2xf32> {
  %e = tensor.empty() : tensor<4x2xf32>
  %t = linalg.transpose ins(%x : tensor<2x4xf32>) outs(%e : tensor<4x2xf32>) permutation = [1, 0]
  return %t : tensor<4x2xf32>
}

// What a loop carries has the shape from before the loop, when the loop says so.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: [[ARG:%.*]]: tensor<?xf32>
func.func @loop(%arg0: tensor<?xf32>, %go: i1) -> tensor<?xf32> {
  // CHECK: [[LOOP:%.*]] = scf.while
  // CHECK: [[N:%.*]] = tensor.dim [[ARG]], %c0
  // CHECK: "flow.tie_shape"([[LOOP]], [[N]])
  %0 = scf.while (%c = %go, %x = %arg0) : (i1, tensor<?xf32>) -> tensor<?xf32> {
    scf.condition(%c) %x : tensor<?xf32>
  } do {
  ^bb0(%x: tensor<?xf32>):
    %1 = math.tanh %x : tensor<?xf32>
    %false = arith.constant false
    scf.yield %false, %1 : i1, tensor<?xf32>
  } attributes {flow.keeps_shape}
  return %0 : tensor<?xf32>
}

// Both branches of a condition give sizes that follow from the argument's; nothing else of their copies is left.
// CHECK-LABEL: func.func @branches
// CHECK-SAME: %[[C:.+]]: i1, %[[X:.+]]: tensor<?x4xf32>
func.func @branches(%c: i1, %x: tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  // CHECK: %[[N:.+]] = tensor.dim %[[X]], %c0
  // CHECK-NOT: tensor.pad
  // CHECK-DAG: %[[FIRST:.+]] = arith.select %[[C]], %[[N]], %[[N]]
  // CHECK-DAG: %[[MORE:.+]] = {{affine.apply|arith.addi}}
  // CHECK-DAG: %[[SECOND:.+]] = arith.select %[[C]], %[[MORE]], %[[N]]
  // CHECK: %[[R:.+]]:2 = scf.if
  %r:2 = scf.if %c -> (tensor<?x4xf32>, tensor<?x4xf32>) {
    %zero = arith.constant 0.0 : f32
    %n = tensor.dim %x, %c0 : tensor<?x4xf32>
    %e = tensor.empty(%n) : tensor<?x4xf32>
    %twice = linalg.add ins(%x, %x : tensor<?x4xf32>, tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
    %p = tensor.pad %x low[0, 0] high[2, 0] {
    ^bb0(%i: index, %j: index):
      tensor.yield %zero : f32
    } : tensor<?x4xf32> to tensor<?x4xf32>
    scf.yield %twice, %p : tensor<?x4xf32>, tensor<?x4xf32>
  } else {
    scf.yield %x, %x : tensor<?x4xf32>, tensor<?x4xf32>
  }
  // CHECK-DAG: flow.tie_shape{{.*}}%[[R]]#0, %[[FIRST]]
  // CHECK-DAG: flow.tie_shape{{.*}}%[[R]]#1, %[[SECOND]]
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// A condition inside a branch is asked too; what the branch asserts is asserted there alone.
// CHECK-LABEL: func.func @nested
// CHECK-SAME: %[[C:.+]]: i1, %[[D:.+]]: i1, %{{.+}}: i1, %[[X:.+]]: tensor<?xf32>, %[[Y:.+]]: tensor<?xf32>
func.func @nested(%c: i1, %d: i1, %ok: i1, %x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  // CHECK-NOT: cf.assert
  // CHECK: %[[INNER:.+]] = arith.select %[[D]], %{{.+}}, %{{.+}} : index
  // CHECK: %[[SIZE:.+]] = arith.select %[[C]], %[[INNER]], %{{.+}} : index
  // CHECK: %[[R:.+]] = scf.if %[[C]]
  // CHECK-COUNT-1: cf.assert
  %r = scf.if %c -> tensor<?xf32> {
    %inner = scf.if %d -> tensor<?xf32> {
      cf.assert %ok, "holds here"
      %zero = arith.constant 0.0 : f32
      %p = tensor.pad %x low[1] high[0] {
      ^bb0(%i: index):
        tensor.yield %zero : f32
      } : tensor<?xf32> to tensor<?xf32>
      scf.yield %p : tensor<?xf32>
    } else {
      scf.yield %x : tensor<?xf32>
    }
    %n = tensor.dim %inner, %c0 : tensor<?xf32>
    %e = tensor.empty(%n) : tensor<?xf32>
    %t = linalg.exp ins(%inner : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    scf.yield %t : tensor<?xf32>
  } else {
    scf.yield %y : tensor<?xf32>
  }
  // CHECK: flow.tie_shape{{.*}}(%[[R]], %[[SIZE]])
  return %r : tensor<?xf32>
}
