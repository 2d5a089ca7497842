// RUN: eyas opt %s --passes 'fold-size-casts,canonicalize' | filecheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<?xf32>, %i: tensor<i32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  // CHECK: [[D:%\w+]] = tensor.dim
  %d = tensor.dim %x, %c0 : tensor<?xf32>
  %0 = arith.index_cast %d : index to i32
  %1 = arith.extsi %0 : i32 to i64
  %2 = arith.trunci %1 : i64 to i32
  %n = arith.index_cast %2 : i32 to index
  // CHECK: tensor.empty([[D]])
  %e = tensor.empty(%n) : tensor<?xf32>
  // What comes from data stays.
  // CHECK: [[V:%\w+]] = tensor.extract
  // CHECK: [[M:%\w+]] = arith.index_cast [[V]]
  // CHECK: tensor.empty([[M]])
  %v = tensor.extract %i[] : tensor<i32>
  %m = arith.index_cast %v : i32 to index
  %f = tensor.empty(%m) : tensor<?xf32>
  return %e, %f : tensor<?xf32>, tensor<?xf32>
}
