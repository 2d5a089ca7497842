// RUN: eyas opt %s --passes pack-bindings{max-bindings=3} | filecheck %s

// Three tensors and two results: what is read is one flat tensor, made in dispatches within the limit, and so is what
// is made, of which the results are parts.
// CHECK-LABEL: func.func @many
// CHECK-SAME: %[[A:.*]]: tensor<2x2xf32>, %[[B:.*]]: tensor<f32>
func.func @many(%a: tensor<2x2xf32>, %b: tensor<f32>, %c: tensor<3xf32>) -> (tensor<2x2xf32>, tensor<3xf32>) {
  // CHECK: %[[FB:.*]] = "flow.reshape"(%[[B]]) {{.*}} : (tensor<f32>) -> tensor<1xf32>
  // CHECK: %[[FA:.*]] = "flow.reshape"(%[[A]]) {{.*}} : (tensor<2x2xf32>) -> tensor<4xf32>
  // CHECK: %[[O:.*]] = scf.execute_region -> tensor<5xf32>
  // CHECK-NEXT: tensor.concat dim(0) %[[FB]], %[[FA]]
  // CHECK: %[[P:.*]] = scf.execute_region -> tensor<8xf32>
  // CHECK-NEXT: tensor.concat dim(0) %[[O]]
  // CHECK: %[[Q:.*]] = scf.execute_region -> tensor<7xf32>
  // CHECK: tensor.extract_slice %[[P]][0] [1] [1]
  // CHECK: tensor.extract_slice %[[P]][1] [4] [1]
  // CHECK: tensor.expand_shape {{.*}} into tensor<2x2xf32>
  // CHECK: tensor.concat dim(0) %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<3xf32>) -> tensor<7xf32>
  // CHECK: "flow.slice"(%[[Q]]) {offset = 0 : i64} : (tensor<7xf32>) -> tensor<2x2xf32>
  // CHECK: "flow.slice"(%[[Q]]) {offset = 4 : i64} : (tensor<7xf32>) -> tensor<3xf32>
  %0:2 = scf.execute_region -> (tensor<2x2xf32>, tensor<3xf32>) no_inline {
    %x = tensor.extract %b[] : tensor<f32>
    %s = tensor.splat %x : tensor<2x2xf32>
    %m = arith.addf %s, %a : tensor<2x2xf32>
    %n = arith.negf %c : tensor<3xf32>
    scf.yield %m, %n : tensor<2x2xf32>, tensor<3xf32>
  }
  return %0#0, %0#1 : tensor<2x2xf32>, tensor<3xf32>
}

// CHECK-LABEL: func.func @few
// CHECK-NOT: flow.
func.func @few(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = scf.execute_region -> tensor<2xf32> no_inline {
    %n = arith.negf %a : tensor<2xf32>
    scf.yield %n : tensor<2xf32>
  }
  // CHECK: return
  return %0 : tensor<2xf32>
}
