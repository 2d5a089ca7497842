// RUN: eyas opt %s --passes speculate-branches | filecheck %s

// Both branches are computed, an inner one too.
// CHECK-LABEL: func.func @main
// CHECK-NOT: scf.if
// CHECK: %[[M:.*]] = linalg.matmul
// CHECK-NOT: scf.if
// CHECK: %[[CHOSEN:.*]] = linalg.generic {{.*}} ins(%[[M]], %{{.*}} : tensor<3x8xf32>, tensor<3x8xf32>)
// CHECK: arith.select
// CHECK: linalg.generic {{.*}} ins(%[[CHOSEN]], %{{.*}} : tensor<3x8xf32>, tensor<3x8xf32>)
// CHECK: arith.select
func.func @main(%x: tensor<3x8xf32>, %c: tensor<i1>, %d: tensor<i1>) -> tensor<3x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = "flow.parameter"() {key = "w"} : () -> tensor<8x8xf32>
  %go = tensor.extract %c[] : tensor<i1>
  %also = tensor.extract %d[] : tensor<i1>
  %r = scf.if %go -> (tensor<3x8xf32>) {
    %inner = scf.if %also -> (tensor<3x8xf32>) {
      %e = tensor.empty() : tensor<3x8xf32>
      %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3x8xf32>) -> tensor<3x8xf32>
      %m = linalg.matmul ins(%x, %w : tensor<3x8xf32>, tensor<8x8xf32>) outs(%z : tensor<3x8xf32>) -> tensor<3x8xf32>
      scf.yield %m : tensor<3x8xf32>
    } else {
      scf.yield %x : tensor<3x8xf32>
    }
    scf.yield %inner : tensor<3x8xf32>
  } else {
    scf.yield %x : tensor<3x8xf32>
  }
  return %r : tensor<3x8xf32>
}

// A branch that may fail, and one with a slice that may lie outside unless the condition holds, stay as they are.
// CHECK-LABEL: func.func @fails
// CHECK: scf.if
// CHECK: scf.if
func.func @fails(%x: tensor<3x8xf32>, %c: tensor<i1>, %p: tensor<i64>) -> (tensor<3x8xf32>, tensor<1x8xf32>) {
  %go = tensor.extract %c[] : tensor<i1>
  %r = scf.if %go -> (tensor<3x8xf32>) {
    %bad = arith.constant false
    cf.assert %bad, "no"
    scf.yield %x : tensor<3x8xf32>
  } else {
    scf.yield %x : tensor<3x8xf32>
  }
  %q = tensor.extract %p[] : tensor<i64>
  %at = arith.index_cast %q : i64 to index
  %first = tensor.extract_slice %x[0, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<1x8xf32>
  %s = scf.if %go -> (tensor<1x8xf32>) {
    %row = tensor.extract_slice %x[%at, 0] [1, 8] [1, 1] : tensor<3x8xf32> to tensor<1x8xf32>
    scf.yield %row : tensor<1x8xf32>
  } else {
    scf.yield %first : tensor<1x8xf32>
  }
  return %r, %s : tensor<3x8xf32>, tensor<1x8xf32>
}
