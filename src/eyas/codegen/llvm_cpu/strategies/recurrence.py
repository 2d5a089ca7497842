"""Recurrent layers: all steps in one dispatch, states and gates in the first-level cache.

A step is a product of few rows with weights that stay in a cache, and elementwise work. With one row the product is as
fast as the weights are read; rows of a block use each weight that is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass

from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.strategies.recurrence import RowsInSteps
from eyas.codegen.llvm_cpu.schedule import nest_is_scalar
from eyas.codegen.llvm_cpu.strategies.attention import register_tile
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.codegen.llvm_cpu.strategies.rows import choose_tile
from eyas.targets import Target

# One vector that is left over costs as much as so many in a block: each of its sums waits for the one before it.
_LONE_VECTOR = 4
_MOST_VECTORS = 8


@dataclass(frozen=True)
class Recurrence(RowsInSteps, NestStrategy):
    @classmethod
    def tile(cls, kernel: Kernel, number: int, target: Target) -> Tile:
        return _tile(kernel, number, target)


def _tile(kernel: Kernel, number: int, target: Target) -> Tile:
    nest = kernel.nests[number]
    tile = choose_tile(nest, target, kernel.common_of(number))
    if not nest.reductions or nest_is_scalar(nest) or tile.loop not in nest.parallel:
        return tile
    if kernel.block and _shares_weights(nest, kernel.shared):
        return register_tile(nest, tile, kernel.shared, kernel.block, target)
    return _tile_of_a_row(nest, tile)


def _shares_weights(nest: Nest, rows: int) -> bool:
    """Whether some input is the same for all rows."""
    inputs = [source for source in nest.statements[0].inputs if isinstance(source, Access)]
    return any(source.strides[rows] == Size(0) for source in inputs)


def _tile_of_a_row(nest: Nest, tile: Tile) -> Tile:
    """As many vectors as leave few over."""
    assert tile.loop is not None
    extent = nest.loops[tile.loop].static
    if extent is None:
        return tile
    count = -(-extent // tile.width)

    def cost(vectors: int) -> float:
        whole = extent // (vectors * tile.width)
        return whole * (max(vectors, _LONE_VECTOR) + 1) + (count - whole * vectors) * (_LONE_VECTOR + 1)

    return Tile(tile.width, tile.loop, min(range(1, _MOST_VECTORS + 1), key=cost))
