// RUN: eyas opt %s --passes drop-asserts | filecheck %s

// CHECK-NOT: ml_program
// CHECK-NOT: cf.assert %{{.*}} "mismatched
ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>

// CHECK: func.func @main
func.func @main(%x: tensor<?xf32>, %same: i1) -> tensor<?xf32> {
  cf.assert %same, "mismatched size for broadcast"
  // CHECK: cf.assert %arg1, "a condition that a frontend took to hold" {flow.keep}
  cf.assert %same, "a condition that a frontend took to hold" {flow.keep}
  // CHECK: return
  return %x : tensor<?xf32>
}
