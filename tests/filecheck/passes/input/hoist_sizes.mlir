// RUN: eyas opt %s --passes hoist-sizes | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK: [[N:%\w+]] = tensor.dim %arg0
// CHECK: linalg.generic
// CHECK: arith.minsi {{.*}}, [[N]]
func.func @main(%x: tensor<?xi8>, %i: tensor<9xindex>) -> tensor<9xi8> {
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<9xi8>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%i : tensor<9xindex>) outs(%e : tensor<9xi8>) {
  ^bb0(%in: index, %out: i8):
    // CHECK-NOT: tensor.dim
    %n = tensor.dim %x, %c0 : tensor<?xi8>
    %m = arith.minsi %in, %n : index
    %v = tensor.extract %x[%m] : tensor<?xi8>
    linalg.yield %v : i8
  } -> tensor<9xi8>
  return %r : tensor<9xi8>
}
