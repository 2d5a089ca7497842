// RUN: eyas opt %s --passes guard-division | filecheck %s

// CHECK-LABEL: func.func @unknown
// CHECK-SAME: [[A:%.*]]: i32, [[B:%.*]]: i32
func.func @unknown(%a: i32, %b: i32) -> (i32, i32) {
  // CHECK: [[ZERO:%.*]] = arith.cmpi eq, [[B]], %c0
  // CHECK: [[LEAST:%.*]] = arith.cmpi eq, [[A]], %c-2147483648
  // CHECK: [[MINUS:%.*]] = arith.cmpi eq, [[B]], %c-1
  // CHECK: [[OVER:%.*]] = arith.andi [[LEAST]], [[MINUS]]
  // CHECK: [[BAD:%.*]] = arith.ori [[ZERO]], [[OVER]]
  // CHECK: [[SAFE:%.*]] = arith.select [[BAD]], %c1{{.*}}, [[B]]
  // CHECK: arith.divsi [[A]], [[SAFE]]
  %0 = arith.divsi %a, %b : i32
  // An unsigned quotient never overflows.
  // CHECK: [[NONE:%.*]] = arith.cmpi eq, [[B]], %c0
  // CHECK-NOT: arith.andi
  // CHECK: [[SOME:%.*]] = arith.select [[NONE]],
  // CHECK: arith.remui [[A]], [[SOME]]
  %1 = arith.remui %a, %b : i32
  return %0, %1 : i32, i32
}

// CHECK-LABEL: func.func @known
// CHECK-NOT: arith.select
// CHECK: arith.divsi
func.func @known(%a: vector<4xi64>, %i: index) -> index {
  %c7 = arith.constant 7 : index
  %0 = arith.divsi %i, %c7 : index
  return %0 : index
}
