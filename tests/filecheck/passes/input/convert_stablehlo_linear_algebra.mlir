// RUN: eyas opt %s --passes convert-stablehlo-linear-algebra,canonicalize | filecheck %s

// CHECK-LABEL: func.func @factors
// CHECK-SAME: [[A:%\w+]]: tensor<5x5xf32>, [[B:%\w+]]: tensor<5x3xf32>
func.func @factors(%a: tensor<5x5xf32>, %b: tensor<5x3xf32>) -> (tensor<5x5xf32>, tensor<5x3xf32>) {
  // CHECK: tensor.expand_shape [[A]]
  // CHECK-SAME: into tensor<1x5x5xf32>
  // CHECK: math.sqrt
  %l = stablehlo.cholesky %a, lower = true : tensor<5x5xf32>
  // CHECK: tensor.expand_shape [[B]]
  // CHECK: arith.divf
  // CHECK: tensor.collapse_shape
  // CHECK-SAME: into tensor<5x3xf32>
  // CHECK-NOT: stablehlo
  %x = "stablehlo.triangular_solve"(%l, %b) <{
    left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>
  }> : (tensor<5x5xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %l, %x : tensor<5x5xf32>, tensor<5x3xf32>
}

// CHECK-LABEL: func.func @orthogonal
// CHECK-SAME: [[A:%\w+]]: tensor<?x2x6x4xcomplex<f32>>
func.func @orthogonal(%a: tensor<?x2x6x4xcomplex<f32>>) -> tensor<?x2x6x4xcomplex<f32>> {
  // CHECK: tensor.collapse_shape [[A]]
  // CHECK-SAME: into tensor<?x6x4xcomplex<f32>>
  // CHECK: math.copysign
  // CHECK: complex.conj
  // CHECK-NOT: stablehlo.custom_call
  // CHECK: tensor.expand_shape
  // CHECK-SAME: into tensor<?x2x6x4xcomplex<f32>>
  %f, %taus = stablehlo.custom_call @Qr(%a)
    : (tensor<?x2x6x4xcomplex<f32>>) -> (tensor<?x2x6x4xcomplex<f32>>, tensor<?x2x4xcomplex<f32>>)
  %q = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%f, %taus)
    : (tensor<?x2x6x4xcomplex<f32>>, tensor<?x2x4xcomplex<f32>>) -> tensor<?x2x6x4xcomplex<f32>>
  return %q : tensor<?x2x6x4xcomplex<f32>>
}

// CHECK-LABEL: func.func @spectrum
func.func @spectrum(%a: tensor<2x3x3xf32>) -> (tensor<2x3xf32>, tensor<2x3x3xf32>) {
  // CHECK: stablehlo.convert %{{.*}} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf64>
  // CHECK: scf.while
  // CHECK-DAG: stablehlo.convert %{{.*}} : (tensor<2x3xf64>) -> tensor<2x3xf32>
  // CHECK-DAG: stablehlo.convert %{{.*}} : (tensor<2x3x3xf64>) -> tensor<2x3x3xf32>
  %w, %v = stablehlo.custom_call @eyas.eigh(%a) : (tensor<2x3x3xf32>) -> (tensor<2x3xf32>, tensor<2x3x3xf32>)
  return %w, %v : tensor<2x3xf32>, tensor<2x3x3xf32>
}
