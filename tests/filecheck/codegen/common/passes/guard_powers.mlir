// RUN: eyas opt %s --passes guard-powers | filecheck %s

// CHECK-LABEL: func.func @power
// CHECK-SAME: [[A:%.*]]: i32, [[B:%.*]]: i32
// CHECK: [[NEGATIVE:%.*]] = arith.cmpi slt, [[B]], %c0
// CHECK: [[NONE:%.*]] = arith.cmpi eq, [[A]], %c0
// CHECK: [[BAD:%.*]] = arith.andi [[NEGATIVE]], [[NONE]]
// CHECK: [[SAFE:%.*]] = arith.select [[BAD]], %c2{{.*}}, [[A]]
// CHECK: math.ipowi [[SAFE]], [[B]]
func.func @power(%a: i32, %b: i32) -> i32 {
  %0 = math.ipowi %a, %b : i32
  return %0 : i32
}
