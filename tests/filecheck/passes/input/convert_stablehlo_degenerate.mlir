// RUN: eyas opt %s --passes convert-stablehlo-degenerate | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%\w+]]: tensor<4xf32>, [[P:%\w+]]: tensor<4xi1>
func.func @main(%x: tensor<4xf32>, %p: tensor<4xi1>) -> (tensor<0xf32>, tensor<4xi1>) {
  // CHECK: [[E:%\w+]] = tensor.empty() : tensor<0xf32>
  // CHECK-NOT: stablehlo.slice
  %a = stablehlo.slice %x [4:4] : (tensor<4xf32>) -> tensor<0xf32>
  // CHECK-NOT: stablehlo.reduce
  %c = stablehlo.constant dense<false> : tensor<i1>
  %b = stablehlo.reduce(%p init: %c) applies stablehlo.or across dimensions = []
    : (tensor<4xi1>, tensor<i1>) -> tensor<4xi1>
  // CHECK-NOT: stablehlo.optimization_barrier
  %d = stablehlo.optimization_barrier %b : tensor<4xi1>
  // CHECK: return [[E]], [[P]]
  return %a, %d : tensor<0xf32>, tensor<4xi1>
}

// A sum of nothing is where the sum starts.
// CHECK-LABEL: func.func @nothing
// CHECK: [[Z:%\w+]] = tensor.extract
// CHECK: [[F:%\w+]] = linalg.fill ins([[Z]] : f32) outs({{.*}} : tensor<3xf32>)
// CHECK: return [[F]]
func.func @nothing(%x: tensor<0x3xf32>) -> tensor<3xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}

// CHECK-LABEL: func.func @same_shape
// CHECK-SAME: [[X:%\w+]]: tensor<ui8>
// CHECK-NEXT: [[R:%\w+]] = stablehlo.reshape [[X]]
// CHECK-NEXT: return [[X]], [[R]]
func.func @same_shape(%x: tensor<ui8>) -> (tensor<ui8>, tensor<1xui8>) {
  %a = stablehlo.reshape %x : (tensor<ui8>) -> tensor<ui8>
  %b = stablehlo.reshape %x : (tensor<ui8>) -> tensor<1xui8>
  return %a, %b : tensor<ui8>, tensor<1xui8>
}
