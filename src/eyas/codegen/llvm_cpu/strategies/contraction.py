"""Contractions and convolutions: a register tile of rows and vectors that reuses every operand it loads.

With `rows` of an operand that is constant along the lanes and `vectors` of one that is constant along the rows, each
step of the reduction makes rows*vectors multiply-adds from rows + vectors loads. The same tile serves matrix products
(rows = M, lanes = N), direct convolutions (rows = output width, lanes = output channels), depthwise ones and pooling;
with one row it is a matrix-vector product, whose speed is that of reading the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.distribute import distribute, distribute_panels, panel_order
from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.panels import why_not_packed
from eyas.codegen.common.schedule import GridAxis, Panels, Schedule, Tile
from eyas.codegen.common.sizes import ZERO, Size, product
from eyas.codegen.common.space import Constraint, Knob
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.llvm_cpu.dot import why_no_dots
from eyas.codegen.llvm_cpu.schedule import nest_is_scalar
from eyas.codegen.llvm_cpu.staging import staged_loops, why_not_staged
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.codegen.llvm_cpu.strategies.rows import choose_tile
from eyas.codegen.llvm_cpu.weights import (
    lane_operand,
    loops_inside,
    weight_constraints,
    weight_knobs,
    weight_point,
    weight_schedule,
)
from eyas.targets import Target

# Weights of one block of lanes below this stay in the first-level cache whatever the order of the loops.
_SMALL_PANEL_ELEMENTS = 2048
# Copying a panel costs as much as a few rows of work on it; rows this many elements apart are no stream.
_MIN_STAGED_ROWS, _MIN_STAGED_STEP = 48, 128
# A matrix that is read once is cut into at least this many panels, so that all cores read.
_MIN_PANELS = 8


@dataclass(frozen=True)
class Contraction(NestStrategy):
    name: ClassVar[str] = "contraction"

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Contraction | str:
        kernel = found.default
        nest = lone_sum(kernel)
        if isinstance(kernel, str) or isinstance(nest, str):
            return str(nest)
        lanes = choose_tile(nest, target)
        if lanes.loop is None:
            return "no contiguous loop"
        rows_loop = _rows_loop(nest, lanes)
        if rows_loop is None and not _is_matrix_vector(nest, lanes):
            return "no operand is reused between rows"
        dot = _dot(nest, replace(lanes, unroll_loop=rows_loop), target)
        tile = replace(register_tile(nest, lanes, rows_loop, target, spare=3 if dot == 4 else 0), dot=dot)
        weights = panel_operand(nest, tile)
        if weights is None:
            return cls(kernel, Schedule((tile,), distribute(kernel, [tile], target)))
        tile = replace(tile, inside=loops_inside(nest, tile, weights))
        grid = distribute_panels(kernel, tile, target)
        return cls(kernel, Schedule((tile,), grid, staged=_staged(kernel, tile, grid, weights)))

    @property
    def packable(self) -> tuple[Panels, ...]:
        return packable_weights(self.kernel, self.schedule)

    def cut_order(self, tiles: Sequence[Tile]) -> Sequence[int]:
        return cut_order(self.kernel, tiles[0])

    def own_knobs(self, target: Target) -> list[Knob]:
        return weight_knobs(self.kernel, may_stage=True)

    def own_constraints(self, target: Target) -> list[Constraint]:
        return weight_constraints(self.kernel)

    def own_point(self) -> dict[str, int]:
        return weight_point(self.schedule)

    def own_schedule(self, schedule: Schedule, point: Mapping[str, int]) -> Schedule:
        return weight_schedule(self.kernel, schedule, point)


def lone_sum(kernel: Kernel | str) -> Nest | str:
    """The only nest of a kernel that reduces in vectors, or why it is none."""
    if isinstance(kernel, str):
        return NO_NESTS
    if len(kernel.nests) != 1:
        return "more than one loop nest"
    nest = kernel.nests[0]
    if not nest.statements[0].reductions:
        return "no reduction"
    return "element types that vectors do not have" if nest_is_scalar(nest) else nest


def packable_weights(kernel: Kernel, schedule: Schedule) -> tuple[Panels, ...]:
    """The binding of the weights, when they would be read faster in panels."""
    if not schedule.panels:
        return ()
    weights = panel_operand(kernel.nests[0], schedule.tiles[0]) if len(kernel.nests) == 1 else None
    if weights is None or weights.storage.binding is None:
        return ()
    binding = weights.storage.binding
    if binding in schedule.packed_bindings or why_not_packed(kernel, schedule.tiles, binding):
        return ()
    if any(axis.loop == schedule.tiles[0].loop and axis.tile % schedule.tiles[0].lanes for axis in schedule.grid):
        return ()
    return (Panels(binding, schedule.tiles[0].lanes),)


def _dot(nest: Nest, tile: Tile, target: Target) -> int:
    """How many products of neighbours one instruction adds up."""
    return next((group for group in _dots(target) if why_no_dots(nest, tile, group) is None), 1)


def _dots(target: Target) -> tuple[int, ...]:
    most = getattr(target, "integer_dot", 1)
    return tuple(group for group in (4, 2) if group <= most)


def register_tile(nest: Nest, lanes: Tile, rows_loop: int | None, target: Target, spare: int = 0) -> Tile:
    """Rows and vectors that fill the register file but not more (with some to spare), and divide the extents well."""
    budget = target.vector_registers - 3 - spare
    best: tuple[float, Tile] | None = None
    assert lanes.loop is not None
    across_lanes = lanes.loop in nest.reductions
    for vectors in (1, 2, 3, 4):
        for rows in range(1, 15 if rows_loop is not None else 2):
            if rows * vectors + vectors + 1 > budget:
                continue
            tile = Tile(lanes.width, lanes.loop, vectors, rows_loop, rows)
            useful = _useful(nest, tile, across_lanes)
            if rows_loop is None and not across_lanes:
                useful *= min(1.0, (nest.loops[lanes.loop].static or 0) / (tile.lanes * _MIN_PANELS))
            # Many rows, far apart, fall into few sets of the cache; a square tile loads least.
            score = useful * (1 - 0.01 * max(0, rows - 8)) + 0.002 * rows * vectors / (rows + vectors)
            if best is None or score > best[0] + 1e-9:
                best = (score, tile)
    assert best is not None
    return best[1]


def _staged(kernel: Kernel, tile: Tile, grid: tuple[GridAxis, ...], weights: Access) -> tuple[int, ...]:
    """The weights, when copying a panel costs little beside what is done with it, and rows are far apart: each is in a
    page of its own, and all of them may fall into few sets of a cache."""
    nest = kernel.nests[0]
    pieces = {axis.loop: axis.tile for axis in grid}
    own = [
        Size(pieces[loop]) if loop in pieces else nest.loops[loop]
        for loop in (tile.unroll_loop, *tile.inside)
        if loop is not None
    ]
    rows = product(own).static
    step = min((stride for loop in nest.reductions if (stride := weights.strides[loop].static)), default=0)
    if weights.storage.binding is None or (rows is not None and rows < _MIN_STAGED_ROWS) or step < _MIN_STAGED_STEP:
        return ()
    binding = weights.storage.binding
    return () if why_not_staged(kernel, (tile,), binding) else (binding,)


def panel_operand(nest: Nest, tile: Tile) -> Access | None:
    """The input that is read along the lanes and is the same for all rows, when a block's part of it is large: the
    weights. All else is arranged around reading them once."""
    weights = lane_operand(nest, tile)
    if weights is None:
        return None
    depth = product([nest.loops[loop] for loop in staged_loops(nest, weights)])
    small = depth.static is not None and depth.static * tile.lanes < _SMALL_PANEL_ELEMENTS
    return None if small else weights


def cut_order(kernel: Kernel, tile: Tile) -> Sequence[int]:
    """As `distribute` and `distribute_panels` cut."""
    nest = kernel.nests[0]
    if panel_operand(nest, tile) is None:
        return nest.parallel
    return [loop for loop in panel_order(nest, tile) if loop is not None]


def _useful(nest: Nest, tile: Tile, across_lanes: bool) -> float:
    """The part of the peak that a tile reaches, with the smaller blocks at the ends of its loops. Where an extent is
    unknown it is thought of as whole blocks."""
    assert tile.loop is not None
    lanes = None if across_lanes else nest.loops[tile.loop].static or None
    points = lanes / tile.width if lanes else tile.vectors
    columns = (
        [(points / tile.vectors, tile.vectors)] if lanes is None else _blocks(-(-lanes // tile.width), tile.vectors)
    )
    extent = None if tile.unroll_loop is None else nest.loops[tile.unroll_loop].static or None
    rows = [(1, tile.unroll)] if extent is None else _blocks(extent, tile.unroll)
    time = sum(m * r * n * v / _speed(r, v, across_lanes) for m, r in rows for n, v in columns)
    return points * (extent or tile.unroll) / time


def _blocks(extent: int, size: int) -> list[tuple[int, int]]:
    """How many blocks of which sizes a loop is."""
    whole, left = divmod(extent, size)
    return [*([(whole, size)] if whole else []), *([(1, left)] if left else [])]


def _speed(rows: int, vectors: int, across_lanes: bool) -> float:
    """The part of the peak that a block reaches: what it loads takes time, and a few sums wait for each other."""
    sums = rows * vectors
    loads = sums if across_lanes else rows + vectors
    return sums / max(sums, 0.9 * loads + 1) * min(1.0, sums / 8)


def _rows_loop(nest: Nest, lanes: Tile) -> int | None:
    """A parallel loop along which some input of the reduction stays the same, better one that is a vector; the
    innermost such loop."""
    inputs = [source for source in nest.statements[0].inputs if isinstance(source, Access)]
    lane = lanes.loop
    vectors = [source for source in inputs if lane is not None and source.strides[lane] != ZERO]
    candidates = [loop for loop in nest.parallel if loop != lane and nest.loops[loop] != Size(1)]
    for reused in (vectors, inputs):
        for loop in reversed(candidates):
            if any(source.strides[loop] == ZERO for source in reused):
                return loop
    return None


def _is_matrix_vector(nest: Nest, lanes: Tile) -> bool:
    """Whether one input is read along the lanes and another is the same for all of them."""
    loop = lanes.loop
    if loop is None or loop in nest.reductions or lanes.width == 1:
        return False
    strides = [source.strides[loop] for source in nest.statements[0].inputs if isinstance(source, Access)]
    return Size(1) in strides and Size(0) in strides
