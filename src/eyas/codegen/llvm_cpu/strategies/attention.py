"""Products that hand rows to each other through softmax or other row-wise ops: attention.

A block of query rows goes through all nests before the next one, so that its scores stay in the first-level cache. The
products among the nests get register tiles with rows of the block, everything else the tiles of the `rows` strategy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.strategies.attention import BlocksOfRows
from eyas.codegen.llvm_cpu.schedule import nest_is_scalar
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.codegen.llvm_cpu.strategies.rows import choose_tile
from eyas.targets import Target

_ROWS_SIDE_BY_SIDE = 4


@dataclass(frozen=True)
class Attention(BlocksOfRows, NestStrategy):
    @classmethod
    def tile(cls, kernel: Kernel, number: int, target: Target) -> Tile:
        return _tile(number, kernel, target)


def _tile(number: int, kernel: Kernel, target: Target) -> Tile:
    nest, rows = kernel.nests[number], kernel.shared
    tile = choose_tile(nest, target, kernel.common_of(number))
    if number < kernel.first or not nest.reductions or nest_is_scalar(nest) or tile.loop is None:
        return tile
    if tile.loop in nest.reductions:
        # Several rows side by side, since combining the lanes of one is a chain of ops that wait for each other.
        return replace(tile, vectors=min(tile.vectors, 2), unroll_loop=rows, unroll=_ROWS_SIDE_BY_SIDE)
    inputs = [source for source in nest.statements[0].inputs if isinstance(source, Access)]
    if not any(source.strides[rows] == Size(0) for source in inputs):
        return tile
    return register_tile(nest, tile, rows, kernel.block, target)


def register_tile(nest: Nest, lanes: Tile, rows_loop: int, block: int, target: Target) -> Tile:
    """Rows that divide the block and vectors that divide the lanes, as many as the register file holds."""
    budget = target.vector_registers - (4 if target.vector_registers >= 32 else 3)
    assert lanes.loop is not None
    extent = nest.loops[lanes.loop].static
    best, best_score = lanes, 0.0
    for rows in (size for size in range(1, 15) if block % size == 0):
        for vectors in (1, 2, 3, 4):
            if rows * vectors + vectors + 1 > budget:
                continue
            # Lanes that are left over run in single vectors, of which the last is masked.
            whole = 1.0 if not extent else extent // (vectors * lanes.width) * vectors * lanes.width / extent
            speed = whole * _speed(rows, vectors) + (1 - whole) * _speed(rows, 1)
            score = speed + rows * vectors / 1000
            if score > best_score:
                best, best_score = replace(lanes, vectors=vectors, unroll_loop=rows_loop, unroll=rows), score
    return best


def _speed(rows: int, vectors: int) -> float:
    """The part of the time in which multiply-adds are started: loads and waiting for sums take the rest."""
    work = rows * vectors
    return work / max(work, 0.9 * (rows + vectors) + 1) * min(1.0, work / 10)
