// RUN: eyas opt %s --passes convert-stablehlo-composites | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%\w+]]: tensor<?xf32>
func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  // CHECK: chlo.erf [[X]] : tensor<?xf32>
  %0 = stablehlo.composite "chlo.erf" %x {decomposition = @f, version = 1 : i32} : (tensor<?xf32>) -> tensor<?xf32>
  // CHECK: stablehlo.composite "other.op"
  %1 = stablehlo.composite "other.op" %x {decomposition = @f} : (tensor<?xf32>) -> tensor<?xf32>
  return %0, %1 : tensor<?xf32>, tensor<?xf32>
}
func.func private @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}
