"""Recurrent layers: all steps in one dispatch, states and gates in the first-level cache.

A step is a product of few rows with weights that stay in a cache, and elementwise work. With one row the product is as
fast as the weights are read; rows of a batch depend on nothing of each other, so they are shared out in blocks, each of
which goes through all steps by itself and uses each weight that it loads for all of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.panels import why_not_packed
from eyas.codegen.common.schedule import Block, GridAxis, Panels, Schedule, Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.llvm_cpu.schedule import nest_is_scalar
from eyas.codegen.llvm_cpu.strategies.attention import register_tile
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.codegen.llvm_cpu.strategies.rows import choose_tile
from eyas.targets import Target

# Rows of a block where it is not known how many there are, and at most: sums of them are kept in registers.
_ROWS_OF_UNKNOWN, _MOST_ROWS = 4, 12
# One vector that is left over costs as much as so many in a block: each of its sums waits for the one before it.
_LONE_VECTOR = 4
_MOST_VECTORS = 8


@dataclass(frozen=True)
class Recurrence(NestStrategy):
    name: ClassVar[str] = "recurrence"
    takes_steps: ClassVar[bool] = True
    works_in_place: ClassVar[bool] = False

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Recurrence | str:
        if found.raw is None:
            return NO_NESTS
        if found.raw.steps is None:
            return "no steps that follow each other"
        block = _block(found, target)
        kernel = found.kernel(block)
        if isinstance(kernel, str):
            return kernel
        tiles = tuple(_tile(kernel, number, target) for number in range(len(kernel.nests)))
        grid = (GridAxis(0, max(kernel.block, 1)),) if kernel.common else ()
        return cls(kernel, Schedule(tiles, grid, block=block))

    @property
    def packable(self) -> tuple[Panels, ...]:
        """Weights of products, which every step reads in the same order."""
        found = []
        for nest, tile in zip(self.kernel.nests, self.schedule.tiles, strict=True):
            inputs = [source for source in nest.statements[0].inputs if isinstance(source, Access)]
            bindings = [source.storage.binding for source in inputs if nest.reductions]
            for binding in bindings:
                if binding is None or binding in self.schedule.packed_bindings:
                    continue
                if why_not_packed(self.kernel, self.schedule.tiles, binding) is None:
                    found.append(Panels(binding, tile.lanes))
        return tuple(found)


def _block(found: Analysis, target: Target) -> Block | None:
    """Rows that go through the steps together: as many as each core gets."""
    assert found.raw is not None
    if not found.firsts:
        return None
    rows = found.raw.nests[-1].loops[found.raw.shared - 1].static
    size = _ROWS_OF_UNKNOWN if rows is None else min(_MOST_ROWS, -(-rows // max(target.cores, 1)))
    return Block(0, size) if size > 1 else None


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
