"""Which products ask for the next panel of weights, and for how much of it in each step."""

from __future__ import annotations

import pytest
from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis, generalized
from eyas.codegen.common.kernel import Access, Kernel, Nest, Storage
from eyas.codegen.common.schedule import Panels, Schedule, Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.llvm_cpu.prefetch import PanelPrefetch
from eyas.codegen.llvm_cpu.strategies.contraction import Contraction
from eyas.ir import make_context, parse_module

LANES, ROWS = 1, 0


def prefetch(rows: int, unroll: int, vectors: int, pieces: dict[int, int] | None = None) -> PanelPrefetch | None:
    weights = Access(Storage("w", None, ()), (), (Size(0), Size(256), Size(64)), lane_stride=Size(1))
    nest = Nest([Size(rows), Size(512), Size(256)], [])
    tile = Tile(16, LANES, vectors, ROWS, unroll)
    return PanelPrefetch.of(nest, weights, tile, pieces or {})


@pytest.mark.parametrize(
    ("rows", "unroll", "vectors", "lines"),
    [(16, 4, 4, 1), (8, 4, 4, 2), (12, 4, 4, 2), (49, 7, 2, 1), (5, 4, 1, 1)],
)
def test_the_blocks_of_rows_ask_for_all_of_it(rows, unroll, vectors, lines):
    found = prefetch(rows, unroll, vectors)
    assert found is not None and found.lines == lines
    assert lines * -(-rows // unroll) >= vectors


def test_pieces_of_a_workgroup_count():
    assert prefetch(64, 4, 4, {ROWS: 8}).lines == 2
    assert prefetch(64, 4, 4, {ROWS: 4}) is None


def test_one_block_and_very_many_do_not_ask():
    assert prefetch(4, 4, 4) is None
    assert prefetch(4 * 65, 4, 4) is None


@pytest.mark.parametrize(("rows", "packed", "asks"), [(16, True, True), (16, False, False), (1, True, False)])
def test_what_is_emitted(rows, packed, asks):
    text = f"""
func.func private @f(%x: tensor<{rows}x256xf32>, %w: tensor<256x256xf32>) -> tensor<{rows}x256xf32> attributes {{flow.executable, dim_args = array<i64>}} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{rows}x256xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<{rows}x256xf32>) -> tensor<{rows}x256xf32>
  %y = linalg.matmul ins(%x, %w : tensor<{rows}x256xf32>, tensor<256x256xf32>) outs(%i : tensor<{rows}x256xf32>) -> tensor<{rows}x256xf32>
  return %y : tensor<{rows}x256xf32>
}}"""  # noqa: E501
    module = parse_module(text, make_context())
    with module.context, mlir.Location.unknown():
        single = generalized(module.body.operations[0])
        function = single.body.operations[0]
        kernel = Analysis.of(function).default
        assert isinstance(kernel, Kernel)
        tile = Tile(16, 1, 4, 0, 4) if rows > 1 else Tile(16, 0, 4)
        schedule = Schedule((tile,), (), (Panels(1, 64),) if packed else ())
        lowered = mlir.Module.create()
        Contraction(kernel, schedule).lower(function, lowered)
        assert ("memref.prefetch" in str(lowered)) == asks
