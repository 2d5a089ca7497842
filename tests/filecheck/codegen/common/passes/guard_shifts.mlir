// RUN: eyas opt %s --passes guard-shifts | filecheck %s

// CHECK-LABEL: func.func @unknown
// CHECK-SAME: [[A:%.*]]: i8, [[B:%.*]]: i8
func.func @unknown(%a: i8, %b: i8) -> (i8, i8) {
  // CHECK: [[SEVEN:%.*]] = arith.constant 7 : i8
  // CHECK: [[BY:%.*]] = arith.minui [[B]], [[SEVEN]]
  // CHECK: [[SHIFTED:%.*]] = arith.shli [[A]], [[BY]]
  // CHECK: [[INSIDE:%.*]] = arith.cmpi ule, [[B]], [[SEVEN]]
  // CHECK: [[ZERO:%.*]] = arith.constant 0 : i8
  // CHECK: [[LEFT:%.*]] = arith.select [[INSIDE]], [[SHIFTED]], [[ZERO]]
  %0 = arith.shli %a, %b : i8
  // The sign is what is left of a number.
  // CHECK: [[ALSO:%.*]] = arith.minui [[B]], %c7
  // CHECK: [[RIGHT:%.*]] = arith.shrsi [[A]], [[ALSO]]
  // CHECK-NOT: arith.select
  %1 = arith.shrsi %a, %b : i8
  // CHECK: return [[LEFT]], [[RIGHT]]
  return %0, %1 : i8, i8
}

// CHECK-LABEL: func.func @known
// CHECK-NOT: arith.minui
// CHECK: arith.shrui
// CHECK: arith.minui
// CHECK: arith.shli
func.func @known(%a: i32) -> (i32, i32) {
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %0 = arith.shrui %a, %c31 : i32
  %1 = arith.shli %a, %c32 : i32
  return %0, %1 : i32, i32
}

// CHECK-LABEL: func.func @lanes
// CHECK: arith.minui {{.*}} : vector<4xi16>
// CHECK: arith.shrui {{.*}} : vector<4xi16>
// CHECK: arith.select {{.*}} : vector<4xi1>, vector<4xi16>
func.func @lanes(%a: vector<4xi16>, %b: vector<4xi16>) -> vector<4xi16> {
  %0 = arith.shrui %a, %b : vector<4xi16>
  return %0 : vector<4xi16>
}
