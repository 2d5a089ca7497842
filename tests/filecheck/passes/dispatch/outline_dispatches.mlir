// RUN: eyas opt %s --passes outline-dispatches | filecheck %s

#id = affine_map<(a) -> (a)>

// CHECK-LABEL: func.func @main
// CHECK-SAME: [[X:%.*]]: tensor<?xf32>, [[Y:%.*]]: tensor<4xf32>
func.func @main(%x: tensor<?xf32>, %y: tensor<4xf32>) -> (tensor<?xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  // CHECK: [[N:%.*]] = tensor.dim [[X]]
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  // The tensor, then its size once: argument and result share it.
  // CHECK: [[A:%.*]] = call @main_dispatch_0_elementwise_exp_d_f32([[X]], [[N]]) {flow.dispatch}
  %a = scf.execute_region -> tensor<?xf32> no_inline {
    %e = tensor.empty(%n) : tensor<?xf32>
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%i: f32, %o: f32):
      %r = math.exp %i : f32
      linalg.yield %r : f32
    } -> tensor<?xf32>
    scf.yield %0 : tensor<?xf32>
  }
  "flow.tie_shape"(%a, %n) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<?xf32>, index) -> ()
  // Nothing dynamic: no index arguments.
  // CHECK: [[B:%.*]] = call @main_dispatch_1_transpose_4_f32([[Y]]) {flow.dispatch}
  %b = scf.execute_region -> tensor<4xf32> no_inline {
    %e = tensor.empty() : tensor<4xf32>
    %0 = linalg.transpose ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) permutation = [0]
    scf.yield %0 : tensor<4xf32>
  }
  // CHECK-NOT: scf.execute_region
  // CHECK: return [[A]], [[B]]
  return %a, %b : tensor<?xf32>, tensor<4xf32>
}
// CHECK: func.func private @main_dispatch_0_elementwise_exp_d_f32(%{{.*}}: tensor<?xf32>, %{{.*}}: index) -> tensor<?xf32>
// CHECK-SAME: dim_args = array<i64: 0, 0>, flow.executable
// CHECK: func.func private @main_dispatch_1_transpose_4_f32(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK-SAME: dim_args = array<i64>, flow.executable
