// RUN: eyas opt %s --passes expand-exact | filecheck %s

// CHECK-LABEL: func.func @counts
func.func @counts(%a: i8, %b: i32) -> (i8, i32) {
  // CHECK: [[WIDE:%.*]] = arith.extui {{.*}} : i8 to i32
  // CHECK: [[COUNT:%.*]] = math.ctlz [[WIDE]] : i32
  // CHECK: arith.subi [[COUNT]], %c24
  %0 = math.ctlz %a : i8
  // What a device has, stays.
  // CHECK: math.ctlz {{.*}} : i32
  %1 = math.ctlz %b : i32
  return %0, %1 : i8, i32
}

// CHECK-LABEL: func.func @remainder
func.func @remainder(%a: f32, %b: f32) -> f32 {
  // CHECK: arith.remui
  // CHECK: scf.for
  // CHECK: arith.remui
  // CHECK-NOT: arith.remf
  %0 = arith.remf %a, %b : f32
  return %0 : f32
}

// CHECK-LABEL: func.func @powers
func.func @powers(%a: i32, %b: i32, %c: f32) -> (i32, f32) {
  // CHECK: scf.while
  // CHECK: arith.muli
  // CHECK-NOT: math.ipowi
  %0 = math.ipowi %a, %b : i32
  // CHECK: scf.while
  // CHECK: arith.mulf
  // CHECK: arith.divf
  %1 = math.fpowi %c, %b : f32, i32
  return %0, %1 : i32, f32
}

// CHECK-LABEL: func.func @lanes
func.func @lanes(%a: vector<2xf32>) -> vector<2xi1> {
  // CHECK-COUNT-2: arith.cmpf olt
  // CHECK: vector.from_elements
  %0 = math.isfinite %a : vector<2xf32>
  return %0 : vector<2xi1>
}
