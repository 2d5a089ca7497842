// RUN: eyas opt %s --passes convert-stablehlo-control-flow | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[N:%.*]]: tensor<i32>, [[X:%.*]]: tensor<4xf32>
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
  %limit = stablehlo.constant dense<3> : tensor<i32>
  // CHECK: [[L:%.*]] = scf.while ([[I:%.*]] = [[N]]) : (tensor<i32>) -> tensor<i32> {
  // CHECK: [[C:%.*]] = stablehlo.compare LT, [[I]]
  // CHECK: [[B:%.*]] = tensor.extract [[C]][] : tensor<i1>
  // CHECK: scf.condition([[B]]) [[I]] : tensor<i32>
  // CHECK: } do {
  // CHECK: [[J:%.*]] = stablehlo.add
  // CHECK: scf.yield [[J]] : tensor<i32>
  %r = stablehlo.while(%i = %n) : tensor<i32>
    cond {
      %c = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %limit : tensor<i32>
      stablehlo.return %j : tensor<i32>
    }
  // CHECK: [[V:%.*]] = tensor.extract [[N]][] : tensor<i32>
  // CHECK: [[IS0:%.*]] = arith.cmpi eq, [[V]]
  // CHECK: [[S:%.*]] = scf.if [[IS0]] -> (tensor<4xf32>) {
  // CHECK: stablehlo.sine
  // CHECK: } else {
  // CHECK: [[IS1:%.*]] = arith.cmpi eq, [[V]]
  // CHECK: scf.if [[IS1]] -> (tensor<4xf32>) {
  // CHECK: stablehlo.cosine
  // CHECK: } else {
  // CHECK: scf.yield [[X]] : tensor<4xf32>
  %s = "stablehlo.case"(%n) ({
    %a = stablehlo.sine %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    %a = stablehlo.cosine %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  // CHECK: return [[L]], [[S]]
  return %r, %s : tensor<i32>, tensor<4xf32>
}
