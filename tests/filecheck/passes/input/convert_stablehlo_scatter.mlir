// RUN: eyas opt %s --passes convert-stablehlo-scatter,canonicalize | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: tensor<4x8xf32>, [[I:%.*]]: tensor<6x1xi32>, [[U:%.*]]: tensor<6x8xf32>
func.func @main(%x: tensor<4x8xf32>, %i: tensor<6x1xi32>, %u: tensor<6x8xf32>) -> tensor<4x8xf32> {
  // CHECK: scf.for [[N:%.*]] = {{.*}} iter_args([[T:%.*]] = [[X]])
  // CHECK: [[S:%.*]] = tensor.extract [[I]][[[N]], {{%.*}}] : tensor<6x1xi32>
  // CHECK: [[AT:%.*]] = arith.index_cast [[S]] : i32 to index
  // CHECK: scf.if
  // CHECK: scf.for [[W:%.*]] = {{.*}} iter_args([[R:%.*]] = [[T]])
  // CHECK-DAG: [[OLD:%.*]] = tensor.extract [[R]][[[AT]], [[W]]]
  // CHECK-DAG: [[NEW:%.*]] = tensor.extract [[U]][[[N]], [[W]]]
  // CHECK: [[SUM:%.*]] = arith.addf [[OLD]], [[NEW]]
  // CHECK: tensor.insert [[SUM]] into [[R]][[[AT]], [[W]]]
  // CHECK-NOT: stablehlo.scatter
  %r = "stablehlo.scatter"(%x, %i, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<6x1xi32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
