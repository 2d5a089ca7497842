// RUN: eyas opt %s --passes convert-stablehlo-shapes,canonicalize | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: tensor<?x1xf32>
func.func @main(%x: tensor<?x1xf32>) -> (tensor<?x8xf32>, tensor<?xf32>) {
  // CHECK-NOT: stablehlo.get_dimension_size
  // CHECK-NOT: stablehlo.custom_call
  // CHECK-NOT: stablehlo.multiply
  // CHECK-DAG: [[C8:%.*]] = arith.constant 8 : i32
  // CHECK: [[D:%.*]] = tensor.dim [[X]]
  // CHECK: [[N:%.*]] = arith.index_cast [[D]] : index to i32
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x1xf32>) -> tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ok = stablehlo.compare GE, %n, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n) {has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  // CHECK: [[S:%.*]] = tensor.from_elements [[N]], [[C8]] : tensor<2xi32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %c8 = stablehlo.constant dense<8> : tensor<1xi32>
  %shape = stablehlo.concatenate %n1, %c8, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  // CHECK: [[B:%.*]] = stablehlo.dynamic_broadcast_in_dim [[X]], [[S]]
  // CHECK-SAME: known_expanding_dimensions = array<i64: 1>, known_nonexpanding_dimensions = array<i64: 0>
  %b = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [0, 1]
    : (tensor<?x1xf32>, tensor<2xi32>) -> tensor<?x8xf32>
  // CHECK: [[P:%.*]] = arith.muli [[N]], [[C8]] : i32
  %c8s = stablehlo.constant dense<8> : tensor<i32>
  %p = stablehlo.multiply %n, %c8s : tensor<i32>
  %p1 = stablehlo.reshape %p : (tensor<i32>) -> tensor<1xi32>
  // CHECK: [[PI:%.*]] = arith.index_cast [[P]] : i32 to index
  // CHECK: [[F:%.*]] = tensor.from_elements [[PI]] : tensor<1xindex>
  // CHECK: [[R:%.*]] = tensor.reshape [[B]]([[F]]) : (tensor<?x8xf32>, tensor<1xindex>) -> tensor<?xf32>
  %r = stablehlo.dynamic_reshape %b, %p1 : (tensor<?x8xf32>, tensor<1xi32>) -> tensor<?xf32>
  // CHECK: return [[B]], [[R]]
  return %b, %r : tensor<?x8xf32>, tensor<?xf32>
}

// A floor division as JAX writes it.
// CHECK-LABEL: func.func @half
// CHECK-NOT: stablehlo
// CHECK: arith.divsi
// CHECK: [[NEG:%.*]] = arith.cmpi ne
// CHECK: [[REST:%.*]] = arith.cmpi ne
// CHECK: [[BOTH:%.*]] = arith.andi [[NEG]], [[REST]] : i1
// CHECK: arith.select [[BOTH]]
// CHECK-NOT: stablehlo
func.func @half(%x: tensor<?xf32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %n = stablehlo.subtract %size, %one : tensor<i32>
  %q = stablehlo.divide %n, %two : tensor<i32>
  %a = stablehlo.sign %n : tensor<i32>
  %b = stablehlo.sign %two : tensor<i32>
  %c = stablehlo.compare NE, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = stablehlo.remainder %n, %two : tensor<i32>
  %d = stablehlo.compare NE, %r, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %e = stablehlo.and %c, %d : tensor<i1>
  %less = stablehlo.subtract %q, %one : tensor<i32>
  %result = stablehlo.select %e, %less, %q : tensor<i1>, tensor<i32>
  return %result : tensor<i32>
}
