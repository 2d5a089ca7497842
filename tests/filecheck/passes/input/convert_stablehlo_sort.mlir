// RUN: eyas opt %s --passes convert-stablehlo-sort,canonicalize | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: tensor<3x9xui8>
func.func @main(%x: tensor<3x9xui8>) -> tensor<3x9xui8> {
  // CHECK: [[S:%.*]] = stablehlo.bitcast_convert [[X]] : (tensor<3x9xui8>) -> tensor<3x9xi8>
  // CHECK: tm_tensor.sort dimension(1) outs([[S]] : tensor<3x9xi8>)
  // CHECK: ^bb0([[A:%.*]]: i8, [[B:%.*]]: i8):
  // CHECK: arith.cmpi uge, [[B]], [[A]] : i8
  // CHECK: stablehlo.bitcast_convert {{.*}} : (tensor<3x9xi8>) -> tensor<3x9xui8>
  // CHECK-NOT: stablehlo.sort
  %r = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<ui8>, %b: tensor<ui8>):
    %c = stablehlo.compare LT, %a, %b, UNSIGNED : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<3x9xui8>) -> tensor<3x9xui8>
  return %r : tensor<3x9xui8>
}
