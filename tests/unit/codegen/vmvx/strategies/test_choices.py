"""Which strategy takes what, with which loops for columns and rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eyas.codegen.common.analysis import Analysis, generalized
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import GridAxis, Panels, Schedule, Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.vmvx.compile import BACKEND
from eyas.codegen.vmvx.emit_product import longest_inside
from eyas.codegen.vmvx.schedule import check_schedule
from eyas.ir import make_context, mlir, parse_module
from eyas.targets import Target

MATMUL = """
func.func private @f(%x: tensor<MxKxTYPE>, %w: tensor<KxNxTYPE>) -> tensor<MxNxTYPE> {
  %zero = arith.constant 0.0 : TYPE
  %e = tensor.empty() : tensor<MxNxTYPE>
  %init = linalg.fill ins(%zero : TYPE) outs(%e : tensor<MxNxTYPE>) -> tensor<MxNxTYPE>
  %r = linalg.matmul ins(%x, %w : tensor<MxKxTYPE>, tensor<KxNxTYPE>) outs(%init : tensor<MxNxTYPE>)
    -> tensor<MxNxTYPE>
  return %r : tensor<MxNxTYPE>
}
"""
POOL = """
func.func private @f(%x: tensor<1x16x16x32xf32>, %w: tensor<2x2xf32>) -> tensor<1x8x8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x8x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  %r = linalg.pooling_nhwc_max {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x16x16x32xf32>, tensor<2x2xf32>) outs(%init : tensor<1x8x8x32xf32>) -> tensor<1x8x8x32xf32>
  return %r : tensor<1x8x8x32xf32>
}
"""
COPY = """
func.func private @f(%x: tensor<64x48xf32>) -> tensor<48x64xf32> {
  %e = tensor.empty() : tensor<48x64xf32>
  %r = linalg.transpose ins(%x : tensor<64x48xf32>) outs(%e : tensor<48x64xf32>) permutation = [1, 0]
  return %r : tensor<48x64xf32>
}
"""
COMPLEX = """
#id = affine_map<(a) -> (a)>
func.func private @f(%x: tensor<64xcomplex<f32>>) -> tensor<64xcomplex<f32>> {
  %e = tensor.empty() : tensor<64xcomplex<f32>>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<64xcomplex<f32>>) outs(%e : tensor<64xcomplex<f32>>) {
  ^bb0(%i: complex<f32>, %o: complex<f32>):
    %s = complex.add %i, %i : complex<f32>
    linalg.yield %s : complex<f32>
  } -> tensor<64xcomplex<f32>>
  return %r : tensor<64xcomplex<f32>>
}
"""


def matmul(rows: int, columns: int, depth: int, type_: str = "f32") -> str:
    text = MATMUL.replace("Mx", f"{rows}x").replace("Kx", f"{depth}x").replace("Nx", f"{columns}x")
    return text.replace("TYPE", type_)


_MODULES: list[mlir.Module] = []  # a kernel's values live as long as its module


def function(text: str):
    module = parse_module(text, make_context())
    with module.context, mlir.Location.unknown():
        single = generalized(module.body.operations[0])
    _MODULES.extend((module, single))
    return single.body.operations[0]


def select(text: str):
    one = function(text)
    with one.context, mlir.Location.unknown():
        return BACKEND.select(one, Target.parse("vmvx"), frozenset())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (matmul(17, 33, 9), "contraction"),
        (matmul(1, 64, 9), "contraction"),
        (matmul(17, 33, 9, "f64"), "contraction"),
        (matmul(17, 33, 9, "bf16"), "rows"),
        (POOL, "windows"),
        (COPY, "rows"),
        (COMPLEX, "loops"),
    ],
    ids=["matmul", "vector", "f64", "bf16", "pool", "transpose", "complex"],
)
def test_strategy_of(text, name):
    chosen, rejected = select(text)
    assert chosen.name == name, rejected


def test_a_product_has_columns_and_rows_and_wants_panels():
    chosen, _ = select(matmul(100, 50, 9))
    (tile,) = chosen.schedule.tiles
    assert (tile.loop, tile.unroll_loop, tile.unroll) == (1, 0, 8)
    assert chosen.packable == (Panels(1, 16),)


SUM = """
#x = affine_map<(f, i, n, h, w) -> (n, h, w, i)>
#g = affine_map<(f, i, n, h, w) -> (n, h, w, f)>
#r = affine_map<(f, i, n, h, w) -> (f, i)>
func.func private @f(%p: tensor<8xHx4x64xf32>, %g: tensor<8x2x2x32xf32>) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %x = tensor.extract_slice %p[0, 0, 0, 0] [8, 2, 2, 64] [1, 1, 1, 1] : tensor<8xHx4x64xf32> to tensor<8x2x2x64xf32>
  %e = tensor.empty() : tensor<32x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %r = linalg.generic {indexing_maps = [#x, #g, #r],
    iterator_types = ["parallel", "parallel", "reduction", "reduction", "reduction"]}
    ins(%x, %g : tensor<8x2x2x64xf32>, tensor<8x2x2x32xf32>) outs(%init : tensor<32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<32x64xf32>
  return %r : tensor<32x64xf32>
}
"""


def test_the_longest_loop_of_a_sum_is_innermost():
    """A part of an image: its rows do not follow each other, and eight samples are more than two pixels."""
    chosen, rejected = select(SUM.replace("H", "4"))
    assert chosen.name == "contraction", rejected
    nest = chosen.kernel.nests[0]
    assert [nest.loops[loop].static for loop in nest.statements[0].reductions] == [8, 2, 2]
    ordered = longest_inside(nest, chosen.product, list(nest.statements[0].reductions))
    assert [nest.loops[loop].static for loop in ordered] == [2, 2, 8]
    longer = tuple(Size(extent) for extent in (4, 64, 8, 2, 16))
    assert longest_inside(replace(nest, loops=longer), chosen.product, [2, 3, 4]) == [2, 3, 4]


def test_elements_that_tiles_do_not_have_are_named():
    _, rejected = select(COMPLEX)
    assert any("complex" in reason for reason in rejected), rejected


def analysis(text: str) -> Analysis:
    one = function(text)
    with one.context, mlir.Location.unknown():
        return Analysis.of(one)


def kernel(text: str) -> Kernel:
    found = analysis(text).default
    assert isinstance(found, Kernel)
    return found


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        (Schedule(()), "tiles has 0 tiles; it must have one for each of the 1 loop nests"),
        (Schedule((Tile(8, 1, 1, 0, 8),)), "tiles[0].width is 8; for tile instructions it is always 16"),
        (Schedule((Tile(16, 1, 2, 0, 8),)), "tiles[0].vectors is 2"),
        (Schedule((Tile(16, 7, 1, 0, 8),)), "tiles[0].loop is 7; allowed are the loops [0, 1, 2]"),
        (Schedule((Tile(16, 1, 1, 1, 8),)), "tiles[0].unroll_loop is 1; allowed are the loops [0, 2]"),
        (Schedule((Tile(16, 1, 1, 0, 1000),)), "tiles[0].unroll is 1000"),
        (Schedule((Tile(16, 1, 1, 0, 8, (2,)),)), "tiles[0].inside is [2]"),
        (Schedule((Tile(16, 1, 1, 0, 8),), (GridAxis(2, 1),)), "grid[0].loop is 2; allowed are the loops [0, 1]"),
        (Schedule((Tile(16, 1, 1, 0, 8),), (GridAxis(1, 8),), (Panels(1, 16),)), "whole panels of 16 lanes"),
        (Schedule((Tile(16, 1, 1, 0, 8),), (), (Panels(0, 16),)), "packed[0].binding is 0"),
        (Schedule((Tile(16, 1, 1, 0, 8),), (), (Panels(1, 32),)), "packed[0].lanes is 32"),
        (Schedule((Tile(16, 1, 1, 0, 8),), (), (), (1,)), "staged is [1]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_schedules_that_cannot_run_are_refused(schedule, reason):
    assert reason in (check_schedule(schedule, kernel(matmul(100, 50, 9))) or "")


def test_a_noted_schedule_is_read_back():
    text = matmul(100, 50, 9)
    chosen, _ = select(text)
    with chosen.kernel.nests[0].statements[0].location.context:
        noted = chosen.schedule_attribute()
        again = type(chosen).from_attribute(noted, analysis(text))
    assert again.schedule == chosen.schedule
