// RUN: eyas opt %s --passes convert-float-sizes | filecheck %s

// CHECK-LABEL: func.func @scales
// CHECK-SAME: %[[N:.+]]: i64
func.func @scales(%n: i64) -> (i64, i64, i64, i64) {
  %two = arith.constant 2.0 : f32
  %some = arith.constant 2.5 : f32
  %third = arith.constant 0.3333333 : f32
  %f = arith.sitofp %n : i64 to f32
  // CHECK: %[[TWICE:.+]] = arith.muli %[[N]], %c2_i64
  %0 = arith.mulf %f, %two : f32
  %1 = math.floor %0 : f32
  %2 = arith.fptosi %1 : f32 to i64
  // CHECK: %[[FIVE:.+]] = arith.muli %[[N]], %c5_i64
  // CHECK: %[[MORE:.+]] = arith.floordivsi %[[FIVE]], %{{.+}}
  %3 = arith.mulf %some, %f : f32
  %4 = arith.fptosi %3 : f32 to i64
  // CHECK: %[[HALF:.+]] = arith.ceildivsi %[[N]], %{{.+}}
  %5 = arith.divf %f, %two : f32
  %6 = math.ceil %5 : f32
  %7 = arith.fptosi %6 : f32 to i64
  // Not a fraction of small numbers: the product is rounded.
  // CHECK: %[[KEPT:.+]] = arith.fptosi
  %8 = arith.mulf %f, %third : f32
  %9 = math.floor %8 : f32
  %10 = arith.fptosi %9 : f32 to i64
  // CHECK: return %[[TWICE]], %[[MORE]], %[[HALF]], %[[KEPT]]
  return %2, %4, %7, %10 : i64, i64, i64, i64
}
