// RUN: eyas opt %s --passes convert-stablehlo-householder,canonicalize | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[A:%.*]]: tensor<6x4xf32>
func.func @main(%a: tensor<6x4xf32>) -> tensor<6x4xf32> {
  // CHECK: [[F:%.*]]:2 = scf.for {{.*}} iter_args({{%.*}} = [[A]], {{%.*}} = {{%.*}}) -> (tensor<6x4xf32>, tensor<4xf32>)
  // CHECK: math.copysign
  // CHECK: tensor.extract [[F]]#1
  // CHECK-NOT: stablehlo.custom_call
  %f, %taus = stablehlo.custom_call @Qr(%a) : (tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<4xf32>)
  %q = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%f, %taus)
    : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  return %q : tensor<6x4xf32>
}
