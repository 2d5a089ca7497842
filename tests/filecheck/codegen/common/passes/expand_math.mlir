// RUN: eyas opt %s --passes expand-math,canonicalize | filecheck %s

// Functions of vectors and scalars become arithmetic, without a library.
// CHECK-LABEL: func.func @exp
// CHECK-NOT: math.exp
// CHECK-DAG: math.fma
// CHECK: return
func.func @exp(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.exp %x : vector<8xf32>
  return %0 : vector<8xf32>
}

// What the machine has stays.
// CHECK-LABEL: func.func @sqrt
// CHECK: math.sqrt
func.func @sqrt(%x: vector<8xf32>) -> vector<8xf32> {
  %0 = math.sqrt %x : vector<8xf32>
  return %0 : vector<8xf32>
}
