// RUN: eyas opt %s --passes convert-stablehlo-complex-constants | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main() -> (tensor<2xcomplex<f32>>, tensor<3xcomplex<f32>>) {
  // CHECK: [[RE:%.*]] = stablehlo.constant dense<1.000000e+00> : tensor<3xf32>
  // CHECK: [[IM:%.*]] = stablehlo.constant dense<2.000000e+00> : tensor<3xf32>
  // CHECK: stablehlo.complex [[RE]], [[IM]] : tensor<3xcomplex<f32>>
  %b = stablehlo.constant dense<(1.0, 2.0)> : tensor<3xcomplex<f32>>
  // CHECK: stablehlo.constant dense<[1.000000e+00, 3.000000e+00]> : tensor<2xf32>
  // CHECK: stablehlo.constant dense<[2.000000e+00, 4.000000e+00]> : tensor<2xf32>
  %a = stablehlo.constant dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>
  return %a, %b : tensor<2xcomplex<f32>>, tensor<3xcomplex<f32>>
}
