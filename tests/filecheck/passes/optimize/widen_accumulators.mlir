// RUN: eyas opt %s --passes 'widen-accumulators,canonicalize,cse' | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#rows = affine_map<(d0, d1) -> (d0)>

// CHECK-LABEL: func.func @sum
// CHECK: linalg.fill {{.*}} tensor<4xf32>
// CHECK: linalg.generic {{.*}}ins(%arg0 : tensor<4x600xf16>) outs({{.*}} : tensor<4xf32>)
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf {{.*}} : f32 to f16
func.func @sum(%x: tensor<4x600xf16>) -> tensor<4xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4xf16>
  %f = linalg.fill ins(%zero : f16) outs(%e : tensor<4xf16>) -> tensor<4xf16>
  %r = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x600xf16>) outs(%f : tensor<4xf16>) {
  ^bb0(%i: f16, %o: f16):
    %s = arith.addf %i, %o : f16
    linalg.yield %s : f16
  } -> tensor<4xf16>
  return %r : tensor<4xf16>
}

// A maximum is exact in any type.
// CHECK-LABEL: func.func @max
// CHECK-NOT: arith.extf
func.func @max(%x: tensor<4x600xbf16>) -> tensor<4xbf16> {
  %low = arith.constant 0xFF80 : bf16
  %e = tensor.empty() : tensor<4xbf16>
  %f = linalg.fill ins(%low : bf16) outs(%e : tensor<4xbf16>) -> tensor<4xbf16>
  %r = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x600xbf16>) outs(%f : tensor<4xbf16>) {
  ^bb0(%i: bf16, %o: bf16):
    %s = arith.maximumf %i, %o : bf16
    linalg.yield %s : bf16
  } -> tensor<4xbf16>
  return %r : tensor<4xbf16>
}

// The product of two narrow floats is exact in f32, and rounding it first would lose that.
// CHECK-LABEL: func.func @dot
// CHECK: ^bb0([[A:%\w+]]: bf16, [[B:%\w+]]: bf16, [[O:%\w+]]: f32)
// CHECK-DAG: [[X:%\w+]] = arith.extf [[A]] : bf16 to f32
// CHECK-DAG: [[Y:%\w+]] = arith.extf [[B]] : bf16 to f32
// CHECK: [[P:%\w+]] = arith.mulf [[X]], [[Y]] : f32
// CHECK: arith.addf [[O]], [[P]] : f32
func.func @dot(%x: tensor<4x600xbf16>, %y: tensor<4x600xbf16>) -> tensor<4xbf16> {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<4xbf16>
  %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<4xbf16>) -> tensor<4xbf16>
  %r = linalg.generic {indexing_maps = [#id, #id, #rows], iterator_types = ["parallel", "reduction"]} ins(%x, %y : tensor<4x600xbf16>, tensor<4x600xbf16>) outs(%f : tensor<4xbf16>) {
  ^bb0(%i: bf16, %j: bf16, %o: bf16):
    %p = arith.mulf %i, %j : bf16
    %s = arith.addf %o, %p : bf16
    linalg.yield %s : bf16
  } -> tensor<4xbf16>
  return %r : tensor<4xbf16>
}
