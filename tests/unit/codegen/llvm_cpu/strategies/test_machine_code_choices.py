"""Which strategy takes what for machine code, with which tiles, and which schedules are refused for what reason."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from eyas.codegen.common.analysis import Analysis, analysis_of, generalized
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Block, GridAxis, Panels, Schedule, Tile
from eyas.codegen.llvm_cpu.compile import BACKEND
from eyas.codegen.llvm_cpu.schedule import check_schedule
from eyas.codegen.llvm_cpu.strategies.rows import Rows
from eyas.codegen.llvm_cpu.strategies.windows import Windows
from eyas.errors import CompileError
from eyas.ir import make_context, mlir, parse_module
from eyas.targets import Target

SSE2, AVX2, AVX512 = ("llvm-cpu:x86_64", "llvm-cpu:x86_64:x86-64-v3", "llvm-cpu:x86_64:x86-64-v4")
MATMUL = """
func.func private @f(%x: tensor<MxKxT>, %w: tensor<KxNxT>) -> tensor<MxNxT> attributes {NOTED dim_args = array<i64>} {
  %zero = arith.constant 0.0 : T
  %e = tensor.empty() : tensor<MxNxT>
  %init = linalg.fill ins(%zero : T) outs(%e : tensor<MxNxT>) -> tensor<MxNxT>
  %r = linalg.matmul ins(%x, %w : tensor<MxKxT>, tensor<KxNxT>) outs(%init : tensor<MxNxT>) -> tensor<MxNxT>
  return %r : tensor<MxNxT>
}
"""
DEPTHWISE = """
func.func private @f(%x: tensor<1x12x12x32xf32>, %w: tensor<3x3x32xf32>) -> tensor<1x10x10x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x10x10x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x10x10x32xf32>) -> tensor<1x10x10x32xf32>
  %r = linalg.depthwise_conv_2d_nhwc_hwc {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
    ins(%x, %w : tensor<1x12x12x32xf32>, tensor<3x3x32xf32>) outs(%init : tensor<1x10x10x32xf32>)
    -> tensor<1x10x10x32xf32>
  return %r : tensor<1x10x10x32xf32>
}
"""
TRANSPOSE = """
func.func private @f(%x: tensor<64x48xf32>) -> tensor<48x64xf32> {
  %e = tensor.empty() : tensor<48x64xf32>
  %r = linalg.transpose ins(%x : tensor<64x48xf32>) outs(%e : tensor<48x64xf32>) permutation = [1, 0]
  return %r : tensor<48x64xf32>
}
"""
SOFTMAX = """
#x = affine_map<(a, b) -> (a, b)>
#r = affine_map<(a, b) -> (a)>
func.func private @f(%x: tensor<40x37xf32>) -> tensor<40x37xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<40xf32>) -> tensor<40xf32>
  %s = linalg.generic {indexing_maps = [#x, #r], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<40x37xf32>) outs(%i : tensor<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<40xf32>
  %f = tensor.empty() : tensor<40x37xf32>
  %y = linalg.generic {indexing_maps = [#x, #r, #x], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<40x37xf32>, tensor<40xf32>) outs(%f : tensor<40x37xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<40x37xf32>
  return %y : tensor<40x37xf32>
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


def matmul(rows: int, columns: int, depth: int, type_: str = "f32", noted: str = "") -> str:
    text = MATMUL.replace("Mx", f"{rows}x").replace("Kx", f"{depth}x").replace("Nx", f"{columns}x")
    text = text.replace("xT>", f"x{type_}>").replace(": T", f": {type_}")
    return text.replace("NOTED", f"codegen.strategy = {noted}," if noted else "")


_MODULES: list[mlir.Module] = []  # a kernel's values live as long as its module


def function(text: str):
    module = parse_module(text, make_context())
    with module.context, mlir.Location.unknown():
        single = generalized(module.body.operations[0])
    _MODULES.extend((module, single))
    return single.body.operations[0]


def select(text: str, target: str = AVX512):
    one = function(text)
    with one.context, mlir.Location.unknown():
        return BACKEND.select(one, Target.parse(target), frozenset())


def analysis(text: str) -> Analysis:
    one = function(text)
    with one.context, mlir.Location.unknown():
        return Analysis.of(one)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (matmul(17, 33, 9), "contraction"),
        (matmul(1, 64, 9), "contraction"),
        (matmul(17, 33, 9, "f64"), "contraction"),
        (DEPTHWISE, "windows"),
        (TRANSPOSE, "rows"),
        (SOFTMAX, "rows"),
        (COMPLEX, "rows"),
    ],
    ids=["matmul", "vector", "f64", "depthwise", "transpose", "softmax", "complex"],
)
@pytest.mark.parametrize("target", [SSE2, AVX2, AVX512], ids=["sse2", "avx2", "avx512"])
def test_strategy_of(text, name, target):
    chosen, rejected = select(text, target)
    assert chosen.name == name, rejected
    assert chosen.problem() is None


@pytest.mark.parametrize(("target", "lanes", "registers"), [(SSE2, 4, 16), (AVX2, 8, 16), (AVX512, 16, 32)])
def test_a_product_fills_the_register_file(target, lanes, registers):
    chosen, _ = select(matmul(96, 128, 256), target)
    (tile,) = chosen.schedule.tiles
    assert (tile.loop, tile.unroll_loop, tile.width) == (1, 0, lanes)
    assert registers / 2 <= tile.vectors * tile.unroll + tile.vectors + 1 <= registers
    assert chosen.packable == (Panels(1, tile.lanes),)


def test_vectors_are_no_wider_than_the_loop_needs():
    chosen, _ = select(matmul(64, 3, 64))
    assert chosen.schedule.tiles[0].width == 4


def test_a_transpose_turns_squares_of_registers():
    chosen, _ = select(TRANSPOSE)
    assert chosen.schedule.tiles == (Tile(16, 1, 1, 0, 16),)


def test_a_window_keeps_its_rows_whole():
    chosen, _ = select(DEPTHWISE)
    (tile,) = chosen.schedule.tiles
    assert tile.unroll_loop not in [axis.loop for axis in chosen.grid]


GOOD = Tile(16, 1, 2, 0, 4)


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        (Schedule(()), "tiles has 0 tiles; it must have one for each of the 1 loop nests"),
        (Schedule((replace(GOOD, width=12),)), "tiles[0].width is 12; it must be a power of two up to 64"),
        (Schedule((replace(GOOD, width=128),)), "tiles[0].width is 128"),
        (Schedule((replace(GOOD, width=0),)), "tiles[0].width is 0; it must be at least 1"),
        (Schedule((replace(GOOD, vectors=17),)), "tiles[0].vectors is 17; it must be at most 16"),
        (Schedule((replace(GOOD, unroll=65),)), "tiles[0].unroll is 65; it must be at most 64"),
        (Schedule((replace(GOOD, unroll=64),)), "width * vectors * unroll must be at most 1024"),
        (Schedule((replace(GOOD, loop=None),)), "tiles[0].width is 16; without a loop for the lanes"),
        (Schedule((replace(GOOD, loop=3),)), "tiles[0].loop is 3; allowed are the loops [0, 1, 2]"),
        (Schedule((replace(GOOD, loop=-1),)), "tiles[0].loop is -1"),
        (Schedule((replace(GOOD, unroll_loop=1),)), "tiles[0].unroll_loop is 1; allowed are the loops [0, 2]"),
        (Schedule((replace(GOOD, unroll_loop=2),)), "tiles[0].unroll_loop is 2; reductions cannot be unrolled"),
        (Schedule((replace(GOOD, unroll_loop=None),)), "tiles[0].unroll is 4; without an unroll_loop it must be 1"),
        (Schedule((Tile(1, 2),)), "tiles[0].width is 1; lanes along a reduction must be at least 2"),
        (Schedule((replace(GOOD, inside=(1,)),)), "tiles[0].inside is [1]"),
        (Schedule((GOOD,), (GridAxis(2, 4),)), "grid[0].loop is 2; allowed are the loops [0, 1]"),
        (Schedule((GOOD,), (GridAxis(0, 4), GridAxis(0, 4))), "grid[1].loop is 0"),
        (Schedule((GOOD,), (GridAxis(0, 0),)), "grid[0].tile is 0; it must be 1 to"),
        (Schedule((GOOD,), (GridAxis(0, 2**40),)), "grid[0].tile is 1099511627776"),
        (Schedule((GOOD,), tuple(GridAxis(0, 4) for _ in range(4))), "grid has 4 axes; at most 3"),
        (Schedule((GOOD,), (GridAxis(1, 16),), (Panels(1, 32),)), "it must hold whole panels of 32 lanes"),
        (Schedule((GOOD,), (), (Panels(1, 64),)), "packed[0].lanes is 64, but the tile reads panels of"),
        (Schedule((GOOD,), (), (Panels(0, 32),)), "packed[0].binding is 0, which cannot lie in panels"),
        (Schedule((GOOD,), (), (Panels(1, 32), Panels(1, 32))), "packed[1].binding is 1, which is there already"),
        (Schedule((GOOD,), (), (Panels(1, 32),), (1,)), "staged is [1]; one binding can be staged"),
        (Schedule((GOOD,), (), (), (0,)), "staged is [0], but that binding cannot be"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_schedules_that_cannot_run_are_refused(schedule, reason):
    kernel = analysis(matmul(100, 50, 9)).default
    assert isinstance(kernel, Kernel)
    assert reason in (check_schedule(schedule, kernel) or "")


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule((Tile(),)),
        Schedule((replace(GOOD, width=1),)),  # registers of one lane, as on a machine without vectors
        Schedule((GOOD,), (GridAxis(1, 10), GridAxis(0, 3))),  # no whole tiles: each workgroup has a tail
        Schedule((GOOD,), (GridAxis(0, 2**31 - 1),)),
        Schedule((Tile(8, 2, 4),)),
        Schedule((Tile(16, 0, 1, 1, 3),)),
        Schedule((GOOD,), (GridAxis(1, 32),), (Panels(1, 32),)),
        Schedule((GOOD,), (), (), (1,)),
    ],
    ids=str,
)
def test_schedules_that_can_run_are_not(schedule):
    kernel = analysis(matmul(100, 50, 9)).default
    assert isinstance(kernel, Kernel)
    assert check_schedule(schedule, kernel) is None


def test_elements_that_vectors_do_not_have():
    kernel = analysis(COMPLEX).default
    assert isinstance(kernel, Kernel)
    assert "element types that vectors do not have" in (check_schedule(Schedule((Tile(8, 0),)), kernel) or "")


def test_strategies_check_what_they_emit():
    found = analysis(matmul(17, 33, 9)).default
    assert isinstance(found, Kernel)
    assert "no windows" not in (Rows.check(Schedule((Tile(),)), found) or "")
    sliding = analysis(DEPTHWISE).default
    assert isinstance(sliding, Kernel)
    rows = Windows.choose(analysis(DEPTHWISE), Target.parse(AVX512))
    assert isinstance(rows, Windows)
    (tile,) = rows.schedule.tiles
    cut = Schedule((tile,), (GridAxis(tile.unroll_loop or 0, 2),))
    assert "workgroups cannot divide the rows" in (Windows.check(cut, sliding) or "")


def test_rows_go_through_nests_in_the_blocks_of_the_schedule():
    found = analysis(SOFTMAX)
    plain, blocked = found.kernel(), found.kernel(Block(0, 8))
    assert isinstance(plain, Kernel) and isinstance(blocked, Kernel)
    assert (plain.shared, plain.block, blocked.shared, blocked.block) == (1, 0, 0, 8)
    assert "blocks from nest 1 on; allowed is one of [0]" in str(found.kernel(Block(1, 8)))
    assert "need at least 1" in str(found.kernel(Block(0, 0)))
    assert "too large" in str(found.kernel(Block(0, 10**6)))
    uneven = Schedule((Tile(16, 1), Tile(16, 1)), (GridAxis(0, 12),), block=Block(0, 8))
    assert "it must hold whole blocks of 8 rows" in (check_schedule(uneven, blocked) or "")


def test_nothing_changes_a_kernel():
    found = analysis(SOFTMAX)
    before = found.raw
    choices = [strategy.choose(found, Target.parse(AVX512)) for strategy in BACKEND.strategies]
    again = [strategy.choose(found, Target.parse(AVX512)) for strategy in reversed(BACKEND.strategies)]
    assert found.raw is before and [str(one)[:60] for one in choices] == [str(one)[:60] for one in reversed(again)]
    assert isinstance(found.default, Kernel)
    with pytest.raises(FrozenInstanceError):
        found.default.shared = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        found.default.nests[0].loops = ()  # type: ignore[misc]


def test_a_function_is_read_once():
    one, known = function(SOFTMAX), {}
    with one.context, mlir.Location.unknown():
        first = analysis_of(one, known)
        one.attributes["codegen.strategy"] = mlir.Attribute.parse('#codegen.strategy<"loops", {}>')
        assert analysis_of(one, known) is first and len(known) == 1
        other = function(COMPLEX)
    with other.context, mlir.Location.unknown():
        assert analysis_of(other, known) is not first


@pytest.mark.parametrize(
    ("noted", "said"),
    [
        ('#codegen.strategy<"contractoin", {}>', "unknown strategy 'contractoin'; there are: transforms, windows"),
        ('#codegen.strategy<"rows", {}>', "as noted: tiles has 0 tiles"),
        ('#codegen.strategy<"loops", {tiles = []}>', "tiles is no field (there are no fields here)"),
        ('#codegen.strategy<"transforms", {tiles = [{}]}>', "no transform of small tiles"),
        ('#codegen.strategy<"contraction", {tiles = [{width = 3, loop = 1}]}>', "tiles[0].width is 3"),
        ('"rows"', 'write #codegen.strategy<"name", {...}>'),
    ],
)
def test_what_is_noted_wrongly_is_a_compile_error(noted, said):
    with pytest.raises(CompileError) as caught:
        select(matmul(17, 33, 9, noted=noted))
    assert said in str(caught.value) and "executable 'f'" in str(caught.value)


def test_what_is_noted_is_taken():
    noted = '#codegen.strategy<"rows", {tiles = [{loop = 1, width = 8}], grid = [{loop = 0, tile = 5}]}>'
    chosen, _ = select(matmul(17, 33, 9, noted=noted))
    assert chosen.name == "rows" and chosen.schedule == Schedule((Tile(8, 1),), (GridAxis(0, 5),))
