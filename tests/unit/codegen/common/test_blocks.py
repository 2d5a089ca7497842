"""Rows go through several nests in blocks that stay near, in bytes of what they hold."""

from __future__ import annotations

import pytest

from eyas.codegen.common.analysis import Analysis, generalized
from eyas.codegen.vmvx.blocks import block_of_rows
from eyas.ir import make_context, mlir, parse_module
from eyas.targets import Target

# (x w) v: the rows of x w are handed from one product to the next.
PRODUCTS = """
#l = affine_map<(h, m, n, k) -> (h, m, k)>
#r = affine_map<(h, m, n, k) -> (h, k, n)>
#o = affine_map<(h, m, n, k) -> (h, m, n)>
func.func private @f(%x: tensor<2x96x8xT>, %w: tensor<2x8xNxT>, %v: tensor<2xNx8xT>) -> tensor<2x96x8xT> {
  %zero = arith.constant 0.0 : T
  %e = tensor.empty() : tensor<2x96xNxT>
  %i = linalg.fill ins(%zero : T) outs(%e : tensor<2x96xNxT>) -> tensor<2x96xNxT>
  %y = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%x, %w : tensor<2x96x8xT>, tensor<2x8xNxT>) outs(%i : tensor<2x96xNxT>) {
  ^bb0(%a: T, %b: T, %c: T):
    %p = arith.mulf %a, %b : T
    %q = arith.addf %p, %c : T
    linalg.yield %q : T
  } -> tensor<2x96xNxT>
  %f = tensor.empty() : tensor<2x96x8xT>
  %j = linalg.fill ins(%zero : T) outs(%f : tensor<2x96x8xT>) -> tensor<2x96x8xT>
  %z = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
    ins(%y, %v : tensor<2x96xNxT>, tensor<2xNx8xT>) outs(%j : tensor<2x96x8xT>) {
  ^bb0(%a: T, %b: T, %c: T):
    %p = arith.mulf %a, %b : T
    %q = arith.addf %p, %c : T
    linalg.yield %q : T
  } -> tensor<2x96x8xT>
  return %z : tensor<2x96x8xT>
}
"""


def analysis(target: str, element: str, columns: int) -> tuple[mlir.Module, Analysis]:
    module = parse_module(
        PRODUCTS.replace("xT>", f"x{element}>").replace(": T", f": {element}").replace("xNx", f"x{columns}x"),
        make_context(),
    )
    with module.context, mlir.Location.unknown():
        single = generalized(module.body.operations[0])
        return single, Analysis.of(single.body.operations[0], Target.parse(target).near_bytes)


@pytest.mark.parametrize(
    ("target", "element", "columns", "rows"),
    [
        ("llvm-cpu:x86_64:znver4", "f32", 512, 16),
        ("llvm-cpu:x86_64:znver4", "f32", 341, 24),
        ("llvm-cpu:x86_64:znver4", "f64", 512, 8),
        ("llvm-cpu:x86_64:znver4", "f16", 512, 16),
        ("llvm-cpu:x86_64:znver4:l1d=16K", "f32", 512, 8),
        ("llvm-cpu:aarch64:apple-m1", "f32", 512, 24),
        ("llvm-cpu:x86_64:znver4", "f32", 4096, 0),
    ],
)
def test_products_hand_on_what_is_near(target: str, element: str, columns: int, rows: int) -> None:
    _module, found = analysis(target, element, columns)
    assert (found.block_of_products.rows if found.block_of_products else 0) == rows
    if block := found.block_of_products:
        assert block_of_rows(found) == block
