// RUN: eyas opt %s --passes expand-bfloats | filecheck %s

// CHECK-LABEL: func.func @vector
func.func @vector(%a: vector<16xbf16>, %b: vector<16xbf16>) -> vector<16xbf16> {
  // CHECK-COUNT-2: arith.shli {{.*}} : vector<16xi32>
  // CHECK: arith.addf {{.*}} : vector<16xf32>
  // CHECK: arith.constant dense<32767>
  // CHECK: arith.select {{.*}} : vector<16xi1>, vector<16xi16>
  // CHECK: arith.bitcast {{.*}} : vector<16xi16> to vector<16xbf16>
  // CHECK-NOT: truncf
  %0 = arith.addf %a, %b : vector<16xbf16>
  return %0 : vector<16xbf16>
}

// CHECK-LABEL: func.func @conversion
func.func @conversion(%a: f32) -> bf16 {
  // CHECK-NOT: arith.truncf
  // CHECK: arith.bitcast {{.*}} : i16 to bf16
  %0 = arith.truncf %a : f32 to bf16
  return %0 : bf16
}

// CHECK-LABEL: func.func @single
func.func @single(%a: f32, %b: f16) -> (f32, f16) {
  // CHECK: arith.addf {{.*}} : f32
  %0 = arith.addf %a, %a : f32
  // CHECK: arith.mulf {{.*}} : f16
  %1 = arith.mulf %b, %b : f16
  return %0, %1 : f32, f16
}
