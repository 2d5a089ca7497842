// RUN: eyas opt %s --passes select-strategies{target=llvm-cpu:x86_64:znver3} | filecheck %s

// CHECK-LABEL: func.func private @product
// CHECK-SAME: #codegen.strategy<"contraction", {grid
func.func private @product(%a: tensor<64x96xf32>, %b: tensor<96x128xf32>) -> tensor<64x128xf32> attributes {dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>) outs(%f : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %c : tensor<64x128xf32>
}

// What was noted before, by hand or by a tuner, stays.
// CHECK-LABEL: func.func private @noted
// CHECK-SAME: #codegen.strategy<"loops", {}>
func.func private @noted(%a: tensor<64xf32>) -> tensor<64xf32> attributes {codegen.strategy = #codegen.strategy<"loops", {}>, dim_args = array<i64>, flow.executable} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.exp ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// What is no loop nest gets plain loops, and the reason is kept.
// CHECK-LABEL: func.func private @sorted
// CHECK-SAME: tm_tensor.sort is not expressible as a loop nest
// CHECK-SAME: #codegen.strategy<"loops"
func.func private @sorted(%a: tensor<8xf32>) -> tensor<8xf32> attributes {dim_args = array<i64>, flow.executable} {
  %r = tm_tensor.sort dimension(0) outs(%a : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %less = arith.cmpf olt, %x, %y : f32
    tm_tensor.yield %less : i1
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// What a tile leaves on the table is noted for people.
// CHECK-LABEL: func.func private @narrow
// CHECK-SAME: codegen.remarks = ["4 of 8 lanes: the loop has 3 steps"
func.func private @narrow(%a: tensor<64x96xf32>, %b: tensor<96x3xf32>) -> tensor<64x3xf32> attributes {dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x3xf32>) -> tensor<64x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x3xf32>) outs(%f : tensor<64x3xf32>) -> tensor<64x3xf32>
  return %c : tensor<64x3xf32>
}
