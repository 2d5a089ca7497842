// RUN: eyas opt %s --passes narrow-scalars,canonicalize | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: f32, [[H:%.*]]: f16
func.func @main(%x: f32, %h: f16) -> (f32, f16, i1, i1, i1) {
  // CHECK-DAG: [[E32:%.*]] = arith.constant 9.99999974E-6 : f32
  // CHECK-DAG: [[T16:%.*]] = arith.constant 9.997550e-02 : f16
  // CHECK-DAG: [[INF:%.*]] = arith.constant 0xFF800000 : f32
  // CHECK-DAG: [[INF16:%.*]] = arith.constant 0xFC00 : f16
  // CHECK-DAG: [[T64:%.*]] = arith.constant 1.000000e-01 : f64
  %eps = arith.constant 1.0e-05 : f64
  %tenth = arith.constant 0.1 : f64
  %inf = arith.constant 0xFFF0000000000000 : f64
  // CHECK-NOT: arith.truncf
  %e32 = arith.truncf %eps : f64 to f32
  %t16 = arith.truncf %tenth : f64 to f16
  // CHECK: [[A:%.*]] = arith.addf [[X]], [[E32]] : f32
  %a = arith.addf %x, %e32 : f32
  // CHECK: [[B:%.*]] = arith.addf [[H]], [[T16]] : f16
  %b = arith.addf %h, %t16 : f16
  // CHECK: [[W:%.*]] = arith.extf [[X]] : f32 to f64
  // CHECK: [[C:%.*]] = arith.cmpf oeq, [[X]], [[INF]] : f32
  %w = arith.extf %x : f32 to f64
  %c = arith.cmpf oeq, %w, %inf : f64
  // CHECK: [[D:%.*]] = arith.cmpf oeq, [[H]], [[INF16]] : f16
  %v = arith.extf %h : f16 to f64
  %d = arith.cmpf oeq, %v, %inf : f64
  // 0.1 is another number in f32, so this comparison stays wide.
  // CHECK: [[E:%.*]] = arith.cmpf olt, [[W]], [[T64]] : f64
  %e = arith.cmpf olt, %w, %tenth : f64
  // CHECK: return [[A]], [[B]], [[C]], [[D]], [[E]]
  return %a, %b, %c, %d, %e : f32, f16, i1, i1, i1
}
