// RUN: eyas opt %s --passes drop-asserts | filecheck %s

// State that is read must stay, for the verifier to refuse.
// CHECK: ml_program.global private mutable @global_seed
ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>

func.func @main() -> tensor<i64> {
  // CHECK: ml_program.global_load @global_seed
  %0 = ml_program.global_load @global_seed : tensor<i64>
  return %0 : tensor<i64>
}
