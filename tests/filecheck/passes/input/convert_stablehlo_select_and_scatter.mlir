// RUN: eyas opt %s --passes convert-stablehlo-select-and-scatter,canonicalize | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: tensor<4xf32>, [[S:%.*]]: tensor<2xf32>, [[I:%.*]]: tensor<f32>
func.func @main(%x: tensor<4xf32>, %s: tensor<2xf32>, %i: tensor<f32>) -> tensor<4xf32> {
  // CHECK: [[F:%.*]] = linalg.fill
  // CHECK: scf.for [[N:%.*]] = {{.*}} iter_args([[T:%.*]] = [[F]]) -> (tensor<4xf32>)
  // CHECK: [[B:%.*]]:3 = scf.for {{.*}} -> (i1, f32, index)
  // CHECK: arith.cmpf oge
  // CHECK: scf.if [[B]]#0
  // CHECK: tensor.extract [[S]][[[N]]]
  // CHECK: arith.addf
  // CHECK: tensor.insert {{.*}} into [[T]][[[B]]#2]
  // CHECK-NOT: stablehlo.select_and_scatter
  %r = "stablehlo.select_and_scatter"(%x, %s, %i) <{
    window_dimensions = array<i64: 2>, window_strides = array<i64: 2>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
