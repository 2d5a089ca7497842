// RUN: eyas opt %s --passes convert-stablehlo-linear-algebra,canonicalize | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[A:%\w+]]: tensor<5x5xf32>, [[B:%\w+]]: tensor<5x3xf32>
func.func @main(%a: tensor<5x5xf32>, %b: tensor<5x3xf32>) -> (tensor<5x5xf32>, tensor<5x3xf32>) {
  // CHECK: linalg.fill
  // CHECK: [[L:%\w+]] = scf.for [[J:%\w+]] =
  // CHECK: scf.for [[I:%\w+]] = [[J]] to
  // CHECK: tensor.extract [[A]][[[I]], [[J]]]
  // CHECK: math.sqrt
  %l = stablehlo.cholesky %a, lower = true : tensor<5x5xf32>
  // CHECK: scf.for {{.*}} iter_args({{%.*}} = [[B]])
  // CHECK: tensor.extract [[L]]
  // CHECK: arith.divf
  // CHECK-NOT: stablehlo.triangular_solve
  %x = "stablehlo.triangular_solve"(%l, %b) <{
    left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>
  }> : (tensor<5x5xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %l, %x : tensor<5x5xf32>, tensor<5x3xf32>
}
