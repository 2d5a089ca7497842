// RUN: eyas opt %s --passes 'compile-executables{target=llvm-cpu:aarch64 disable=contraction workers=1}' | filecheck %s

// CHECK: func.func @main
// CHECK-NEXT: return
func.func @main() {
  return
}
// CHECK-NOT: func.func
// CHECK: "hal.executable"()
// CHECK-SAME: {bindings = 2 : i64, constants = 1 : i64, grid = [array<i64: {{[0-9]+}}, 4, 0>]
// CHECK-SAME: name = "double", rejected = [{{.*}}"contraction: switched off"{{.*}}], strategy = "rows"
// CHECK-SAME: format = "elf-aarch64"
// CHECK-SAME: sym_name = "kernels", target = "llvm-cpu:aarch64
func.func private @double(%x: tensor<?x4xf32>, %n: index) -> tensor<?x4xf32> attributes {flow.executable, dim_args = array<i64: 0, 0>} {
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = arith.addf %i, %i : f32
    linalg.yield %r : f32
  } -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
