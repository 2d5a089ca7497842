// RUN: eyas opt %s --passes convert-stablehlo-fft | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: tensor<3x16xcomplex<f32>>, [[Y:%.*]]: tensor<64xf32>
func.func @main(%x: tensor<3x16xcomplex<f32>>, %y: tensor<64xf32>) -> (tensor<3x16xcomplex<f32>>, tensor<33xcomplex<f32>>) {
  // CHECK: [[RE:%.*]] = stablehlo.real [[X]]
  // CHECK: [[IM:%.*]] = stablehlo.imag [[X]]
  // CHECK: stablehlo.dot_general [[RE]], {{.*}} (tensor<3x16xf32>, tensor<16x16xf32>) -> tensor<3x16xf32>
  // CHECK: stablehlo.complex
  %a = stablehlo.fft %x, type = FFT, length = [16] : (tensor<3x16xcomplex<f32>>) -> tensor<3x16xcomplex<f32>>
  // A length of 64 is two transforms of 8 with a rotation between them.
  // CHECK: stablehlo.dot_general {{.*}} (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: stablehlo.multiply {{.*}} : tensor<8x8xf32>
  // CHECK: stablehlo.slice {{.*}} [0:33]
  // CHECK-NOT: stablehlo.fft
  %b = stablehlo.fft %y, type = RFFT, length = [64] : (tensor<64xf32>) -> tensor<33xcomplex<f32>>
  return %a, %b : tensor<3x16xcomplex<f32>>, tensor<33xcomplex<f32>>
}
