"""Anything that is loop nests: elementwise ops, reductions, normalisations, softmax, layouts.

The two loops of a tile are chosen by what its loads, stores and instructions are estimated to cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.distribute import distribute
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import ONE, ZERO, Size
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.vmvx.blocks import block_of_rows
from eyas.codegen.vmvx.schedule import gives_boxes
from eyas.codegen.vmvx.strategies.nests import NestStrategy
from eyas.module.vmvx_isa import MAX_ELEMENTS, PANEL
from eyas.targets import Target

# Cycles: to issue an instruction, to begin another row of one, and for an element of a load or store that is a
# neighbour, that is one in a tile that transposes, that has others between, or that has a line of the cache for itself.
_ISSUE, _ROW, _NEIGHBOUR, _TRANSPOSED, _APART, _ALONE = 40.0, 5.0, 0.15, 0.6, 1.0, 6.0
_LINE = 16
# Rows of a tile that transposes what it loads.
_TRANSPOSED_ROWS = 32
_UNKNOWN = 256


@dataclass(frozen=True)
class Rows(NestStrategy):
    name: ClassVar[str] = "rows"

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Rows | str:
        block = block_of_rows(found)
        kernel = found.kernel(block)
        if isinstance(kernel, str):
            return NO_NESTS
        tiles = [choose_tile(kernel, number) for number in range(len(kernel.nests))]
        return cls(kernel, Schedule(tuple(tiles), distribute(kernel, tiles, target), block=block)).tried()


def choose_tile(kernel: Kernel, number: int) -> Tile:
    """The loops for columns and rows that cost least."""
    nest = kernel.nests[number]
    common = kernel.common_of(number)
    block = kernel.shared if kernel.block and number >= kernel.first else None
    own = [loop for loop in nest.parallel if loop >= common]
    first = nest.statements[0]
    if first.reductions and combiner_of(first.body, len(first.inputs)) is not None:
        own += first.reductions
    rows = [*own, *([] if block is None else [block])]
    best: tuple[float, Tile] | None = None
    for lane in [*own, None]:
        for row in [*(loop for loop in rows if loop != lane), None]:
            if not gives_boxes(nest, lane, row):
                continue
            transposes = lane is not None and row is not None and _transposes(nest, lane, row)
            tile = Tile(PANEL, lane, 1, row, _TRANSPOSED_ROWS if transposes else 1)
            cost = _cost(nest, tile, kernel.block if row == block else None)
            if best is None or cost < best[0]:
                best = (cost, tile)
    assert best is not None
    return best[1]


def _transposes(nest: Nest, lane: int, row: int) -> bool:
    return any(access.strides[row] == ONE and access.strides[lane] not in (ZERO, ONE) for access in nest.all_accesses)


def _cost(nest: Nest, tile: Tile, block: int | None) -> float:
    """Cycles for the whole nest, roughly."""
    lane, row = tile.loop, tile.unroll_loop
    columns = 1 if lane is None else min(_extent(nest.loops[lane]), MAX_ELEMENTS // tile.unroll)
    extent = 1 if row is None else block or _extent(nest.loops[row])
    rows = min(extent, max(1, MAX_ELEMENTS // columns))
    tiles, points = 1.0, 1.0
    for loop, size in enumerate(nest.loops):
        points *= _extent(size)
        step = columns if loop == lane else rows if loop == row else 1
        tiles *= -(-_extent(size) // max(step, 1))
    instructions = sum(1 if one.body is None else len(list(one.body.operations)) for one in nest.statements)
    cost = 0.0
    for access in nest.accesses:
        along = [ZERO if loop is None else access.strides[loop] for loop in (lane, row)]
        instructions += 1
        if along[0] == ONE and (along[1] == Size(columns) or rows == 1):
            cost += points * _NEIGHBOUR
        elif along[0] == ONE:
            cost += points * (_NEIGHBOUR + _ROW / columns)
        elif along[0] == ZERO:
            cost += points / columns * (_NEIGHBOUR if along[1] in (ZERO, ONE) else _apart(along[1]))
            cost += _ROW * points / columns
        else:
            cost += points * (_TRANSPOSED if along[1] == ONE and rows > 3 else _apart(along[0]))
    return cost + tiles * instructions * _ISSUE


def _apart(stride: Size) -> float:
    return _APART if stride.static is not None and abs(stride.static) < _LINE else _ALONE


def _extent(size: Size) -> int:
    return max(1, _UNKNOWN if size.static is None else size.static)
