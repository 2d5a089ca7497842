// RUN: eyas opt %s --passes convert-stablehlo-gather | filecheck %s

// CHECK-LABEL: func.func @reverse
// CHECK-SAME: [[X:%\w+]]: tensor<?x4xf32>
func.func @reverse(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // CHECK: [[N:%\w+]] = tensor.dim [[X]]
  // CHECK: linalg.generic {{.*}}outs({{.*}} : tensor<?x4xf32>)
  // CHECK: [[I:%\w+]] = linalg.index 0
  // CHECK: [[J:%\w+]] = linalg.index 1
  // CHECK: [[L:%\w+]] = arith.subi [[N]], {{.*}}
  // CHECK: [[K:%\w+]] = arith.subi [[L]], [[I]]
  // CHECK: tensor.extract [[X]][[[K]], [[J]]]
  %r = stablehlo.reverse %x, dims = [0] : tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// The start is clamped so that the slice fits.
// CHECK-LABEL: func.func @gather
// CHECK: linalg.generic
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: tensor.extract
// CHECK-NOT: stablehlo.dynamic_gather
func.func @gather(%x: tensor<9x?xf32>, %i: tensor<3x1xi64>, %s: tensor<2xi32>) -> tensor<3x?xf32> {
  %r = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = true}>
    : (tensor<9x?xf32>, tensor<3x1xi64>, tensor<2xi32>) -> tensor<3x?xf32>
  return %r : tensor<3x?xf32>
}
