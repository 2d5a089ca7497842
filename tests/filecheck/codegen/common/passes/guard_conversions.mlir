// RUN: eyas opt %s --passes guard-conversions | filecheck %s

// Narrow integers are the lower bits of 32, also where they are unsigned.
// CHECK-LABEL: func.func @bytes
// CHECK: [[SIGNED:%.*]] = arith.fptosi {{.*}} : f32 to i32
// CHECK: arith.trunci {{.*}} : i32 to i8
// CHECK: arith.fptosi {{.*}} : f32 to i32
// CHECK-NOT: arith.fptoui
func.func @bytes(%x: f32) -> (i8, i8) {
  %0 = arith.fptosi %x : f32 to i8
  %1 = arith.fptoui %x : f32 to i8
  return %0, %1 : i8, i8
}

// Both ends are floats: bounding is enough.
// CHECK-LABEL: func.func @exact
// CHECK-SAME: [[X:%.*]]: f64
// CHECK: [[OVER:%.*]] = arith.cmpf ogt, [[X]], %cst_0
// CHECK: [[ABOVE:%.*]] = arith.cmpf ogt, [[X]], %cst
// CHECK: [[LOW:%.*]] = arith.select [[ABOVE]], [[X]], %cst
// CHECK: [[HIGH:%.*]] = arith.select [[OVER]], %cst_0, [[LOW]]
// CHECK: [[MADE:%.*]] = arith.fptosi [[HIGH]]
// CHECK: [[NUMBER:%.*]] = arith.cmpf ord, [[X]], [[X]]
// CHECK: arith.select [[NUMBER]], [[MADE]], %c0
// NaN is 0 already.
// CHECK: arith.fptoui
// CHECK-NOT: arith.cmpf ord
func.func @exact(%x: f64) -> (i32, i32) {
  %0 = arith.fptosi %x : f64 to i32
  %1 = arith.fptoui %x : f64 to i32
  return %0, %1 : i32, i32
}

// The largest i32 is no f32.
// CHECK-LABEL: func.func @words
// CHECK: arith.constant dense<2.14748352E+9>
// CHECK: [[MADE:%.*]] = arith.fptosi
// CHECK: arith.constant {{.*}}2147483647
// CHECK: arith.select {{.*}}, [[MADE]] : vector<4xi1>, vector<4xi32>
func.func @words(%x: vector<4xf32>) -> vector<4xi32> {
  %0 = arith.fptosi %x : vector<4xf32> to vector<4xi32>
  return %0 : vector<4xi32>
}

// An f16 knows no 2147483648.
// CHECK-LABEL: func.func @halves
// CHECK: arith.extf {{.*}} : f16 to f32
func.func @halves(%x: f16) -> i32 {
  %0 = arith.fptosi %x : f16 to i32
  return %0 : i32
}
