// RUN: eyas opt %s --passes split-concats{max-bindings=4} | filecheck %s

// Three operands and a result are what a dispatch with four bindings takes.
// CHECK-LABEL: func.func @few
func.func @few(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<7xf32> {
  // CHECK: tensor.concat dim(0) %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<7xf32>
  %0 = tensor.concat dim(0) %a, %b, %a : (tensor<2xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

// CHECK-LABEL: func.func @many
// CHECK-SAME: %[[A:.*]]: tensor<2xf32>, %[[B:.*]]: tensor<3xf32>
func.func @many(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<12xf32> {
  // CHECK: %[[L:.*]] = tensor.concat dim(0) %[[A]], %[[B]], %[[A]] : {{.*}} -> tensor<7xf32>
  // CHECK: %[[R:.*]] = tensor.concat dim(0) %[[B]], %[[A]] : {{.*}} -> tensor<5xf32>
  // CHECK: tensor.concat dim(0) %[[L]], %[[R]] : (tensor<7xf32>, tensor<5xf32>) -> tensor<12xf32>
  %0 = tensor.concat dim(0) %a, %b, %a, %b, %a : (tensor<2xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<12xf32>
  return %0 : tensor<12xf32>
}

// CHECK-LABEL: func.func @dynamic
func.func @dynamic(%a: tensor<?x4xf32>, %b: tensor<2x?xf32>) -> tensor<?x4xf32> {
  // CHECK: tensor.concat {{.*}} -> tensor<?x4xf32>
  // CHECK: tensor.concat {{.*}} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %0 = tensor.concat dim(0) %a, %b, %a, %a : (tensor<?x4xf32>, tensor<2x?xf32>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
