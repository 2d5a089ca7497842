// RUN: eyas opt %s --passes 'apply-tuning-spec{target=llvm-cpu:x86_64:znver3 spec=tests/tools/tuning_spec.mlir}' | filecheck %s

// What became of each entry is kept for the manifest.
// CHECK: codegen.tuning = [{
// CHECK-SAME: other_targets = ["elsewhere"]
// CHECK-SAME: unused = ["never"]
// CHECK-SAME: used = {upstream = ["exponential"], wide = ["product"]}

// CHECK-LABEL: func.func private @product(
// CHECK-SAME: codegen.strategy = #codegen.strategy<"contraction", {grid = [{loop = 0 : i64, tile = 16 : i64}]
// CHECK-SAME: codegen.tuned = "tests/tools/tuning_spec.mlir @wide"
// CHECK: linalg.matmul ins(
func.func private @product(%a: tensor<64x96xf32>, %b: tensor<96x128xf32>) -> tensor<64x128xf32> attributes {dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>) outs(%f : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %c : tensor<64x128xf32>
}

// 120 is no multiple of 32.
// CHECK-LABEL: func.func private @other_size(
// CHECK-NOT: codegen
func.func private @other_size(%a: tensor<64x96xf32>, %b: tensor<96x120xf32>) -> tensor<64x120xf32> attributes {dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x120xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x120xf32>) -> tensor<64x120xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x120xf32>) outs(%f : tensor<64x120xf32>) -> tensor<64x120xf32>
  return %c : tensor<64x120xf32>
}

// The second operand is read in another order.
// CHECK-LABEL: func.func private @other_maps(
// CHECK-NOT: codegen
#rows = affine_map<(m, n, k) -> (m, k)>
#turned = affine_map<(m, n, k) -> (n, k)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func private @other_maps(%a: tensor<64x96xf32>, %b: tensor<128x96xf32>) -> tensor<64x128xf32> attributes {dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %c = linalg.matmul indexing_maps = [#rows, #turned, #out] ins(%a, %b : tensor<64x96xf32>, tensor<128x96xf32>) outs(%f : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %c : tensor<64x128xf32>
}

// CHECK-LABEL: func.func private @other_type(
// CHECK-NOT: codegen
func.func private @other_type(%a: tensor<64x96xi32>, %b: tensor<96x128xi32>) -> tensor<64x128xi32> attributes {dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<64x128xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<64x128xi32>) -> tensor<64x128xi32>
  %c = linalg.matmul ins(%a, %b : tensor<64x96xi32>, tensor<96x128xi32>) outs(%f : tensor<64x128xi32>) -> tensor<64x128xi32>
  return %c : tensor<64x128xi32>
}

// CHECK-LABEL: func.func private @exponential(
// CHECK-SAME: codegen.strategy = #codegen.strategy<"loops", {}>, codegen.tuned = "tests/tools/tuning_spec.mlir @upstream"
func.func private @exponential(%a: tensor<64xf32>) -> tensor<64xf32> attributes {dim_args = array<i64>, flow.executable} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.exp ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}

// What was noted by hand stays.
// CHECK-LABEL: func.func private @noted(
// CHECK-SAME: attributes {codegen.strategy = #codegen.strategy<"rows"
// CHECK-NOT: codegen.tuned
func.func private @noted(%a: tensor<64xf32>) -> tensor<64xf32> attributes {codegen.strategy = #codegen.strategy<"rows", {grid = [], tiles = [{loop = 0, width = 4}]}>, dim_args = array<i64>, flow.executable} {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.exp ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %r : tensor<64xf32>
}
