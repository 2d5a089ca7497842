"""Convolutions of few channels, depthwise ones and pooling, and any convolution that reads a padded image in place.

Lanes are channels, rows are neighbours along the image's width. Windows of neighbours overlap, so with the taps written
out each element is loaded once for all rows of a tile; taps outside of the image do not run (see `sliding`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.constraints import MAX_WRITTEN_OUT, TileNumbers
from eyas.codegen.common.distribute import distribute_windows, window_order
from eyas.codegen.common.expressions import Var, any_of, differ, one_of
from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.schedule import Panels, Schedule, Tile
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.space import Constraint, Knob, domain, law
from eyas.codegen.common.windows import MAX_TAPS, Window, windows_of
from eyas.codegen.llvm_cpu.emit import NestEmitter
from eyas.codegen.llvm_cpu.sliding import SMALL_WINDOW, SlidingNest, row_tiles
from eyas.codegen.llvm_cpu.space import at_loops, loop_pairs
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.codegen.llvm_cpu.strategies.contraction import lone_sum, packable_weights, panel_operand, register_tile
from eyas.codegen.llvm_cpu.strategies.rows import choose_tile
from eyas.codegen.llvm_cpu.weights import loops_inside, weight_constraints, weight_knobs, weight_point, weight_schedule
from eyas.targets import Target

# Tiles at the edges are code of their own each; a padding that needs more of them is not worth it.
_MAX_LONE_TILES = 16


@dataclass(frozen=True)
class Windows(NestStrategy):
    name: ClassVar[str] = "windows"
    part_of: ClassVar[str] = "contraction"
    emitter: ClassVar[type[NestEmitter]] = SlidingNest

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Windows | str:
        kernel = found.default
        nest = lone_sum(kernel)
        if isinstance(kernel, str) or isinstance(nest, str):
            return str(nest)
        lanes = choose_tile(nest, target)
        if lanes.loop not in nest.parallel or lanes.width == 1:
            return "no channels that are contiguous"
        windows = windows_of(nest)
        if isinstance(windows, str):
            return windows
        rows = _rows_loop(nest, windows, lanes.loop)
        if rows is None:
            return "no windows that overlap or leave the image"
        tile = _tile(nest, lanes, rows, target)
        if (problem := why_not_sliding(nest, windows, tile)) is not None:
            return problem
        return cls(kernel, Schedule((tile,), distribute_windows(kernel, tile, target)))

    @classmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        nest = lone_sum(kernel)
        windows = windows_of(nest) if isinstance(nest, Nest) else nest
        if isinstance(nest, str) or isinstance(windows, str):
            return f"tiles: the dispatch has no windows: {windows}"
        if (problem := super().check(schedule, kernel)) is not None:
            return problem
        (tile,) = schedule.tiles
        for number, axis in enumerate(schedule.grid):
            if axis.loop == tile.unroll_loop:
                return f"grid[{number}].loop is {axis.loop}; workgroups cannot divide the rows (unroll_loop) of windows"
        if tile.loop not in nest.parallel:
            return f"tiles[0].loop is {tile.loop}; the lanes of windows are channels, a parallel loop"
        if (problem := why_not_sliding(nest, windows, tile)) is not None:
            return f"tiles[0].unroll_loop is {tile.unroll_loop} with unroll {tile.unroll}: {problem}"
        return None

    @property
    def packable(self) -> tuple[Panels, ...]:
        return packable_weights(self.kernel, self.schedule)

    def cut_order(self, tiles: Sequence[Tile]) -> Sequence[int]:
        (tile,) = tiles
        rows = [] if tile.unroll_loop is None else [tile.unroll_loop]
        return (*window_order(self.kernel.nests[0], tile), *rows)  # rows stay whole, or are refused

    def own_knobs(self, target: Target) -> list[Knob]:
        taps = Knob("taps", self._taps(), "points of a window that are written out at most")
        return [*weight_knobs(self.kernel, may_stage=False), taps]

    def own_constraints(self, target: Target) -> list[Constraint]:
        return [*weight_constraints(self.kernel), *self._sliding_laws(target), *self._whole_rows()]

    def own_point(self) -> dict[str, int]:
        return weight_point(self.schedule) | {"taps": self._as_many(self.schedule.taps)}

    def own_schedule(self, schedule: Schedule, point: Mapping[str, int]) -> Schedule:
        default, taps = schedule.taps, point["taps"]
        changed = weight_schedule(self.kernel, schedule, point)
        return replace(changed, taps=default if taps == self._as_many(default) else taps)

    def _taps(self) -> tuple[int, ...]:
        """Points that make a difference: those of the innermost loops of the window."""
        nest, counts = self.kernel.nests[0], [1]
        for loop in reversed(nest.statements[0].reductions):
            counts.append(counts[-1] * (nest.loops[loop].static or MAX_WRITTEN_OUT + 1))
        return domain(count for count in counts if count <= MAX_WRITTEN_OUT)

    def _as_many(self, taps: int) -> int:
        return max(count for count in self._taps() if count <= taps)

    def _sliding_laws(self, target: Target) -> list[Constraint]:
        """When `why_not_sliding` has nothing against a tile."""
        of, nest = TileNumbers.of(0), self.kernel.nests[0]
        windows = windows_of(nest)
        assert not isinstance(windows, str)
        domains = {knob.name: knob.domain for knob in self.tile_knobs(0, target)}
        unrolls = domain(domains[f"{of.path}.unroll"], self.schedule.tiles[0].unroll)
        found = [
            law(one_of(of.loop, nest.parallel), of.words("loop", "the lanes of windows are channels, a parallel loop"))
        ]
        fitting = []
        for lane, row in loop_pairs(nest):
            tiles = [Tile(2, lane, 1, row, unroll) for unroll in unrolls] if row is not None else []
            good = [tile.unroll for tile in tiles if why_not_sliding(nest, windows, tile) is None]
            fitting += [at_loops(of, lane, row) & one_of(of.unroll, good)] if good else []
        words = "with so many rows, or along this loop, the window cannot slide"
        return [*found, law(any_of(fitting), of.words("unroll", words))]

    def _whole_rows(self) -> list[Constraint]:
        of, grid = TileNumbers.of(0), self._grid_space
        return [
            law(
                differ(of.unroll_loop, loop) | (Var(grid.name(loop)) <= (0 if grid.loops[loop].static is None else 1)),
                f"{grid.name(loop)} is {{{grid.name(loop)}}}; workgroups cannot divide the rows of windows",
            )
            for loop in grid.cut
        ]


def why_not_sliding(nest: Nest, windows: list[Window], tile: Tile) -> str | None:
    """Why the nest cannot be emitted as a sliding window with this tile, or None."""
    rows, lanes = tile.unroll_loop, tile.loop
    if rows is None or nest.loops[rows].static is None or lanes is None:
        return "no rows of known number"
    if any(statement.reductions for statement in nest.statements[1:]):
        return "a second reduction"
    for window in windows:
        if lanes in window.steps or (rows in window.steps and len(window.steps) > 1):
            return "padding along the channels, or along two loops at once"
        taps = nest.loops[window.tap].static
        if rows in window.steps and taps is None:
            return "a window of unknown size"
        if rows in window.steps and taps is not None and taps > MAX_TAPS:
            return f"a window of {taps} taps along the rows, more than {MAX_TAPS} are too much code"
    alone = sum(1 for _, _, repeats in row_tiles(nest, windows, tile) if repeats == 0)
    if alone > _MAX_LONE_TILES:
        return f"{alone} tiles at the edges, more than {_MAX_LONE_TILES}"
    return None


def _rows_loop(nest: Nest, windows: list[Window], lanes: int) -> int | None:
    """The loop along the width: where windows leave the image, or else where they overlap."""
    candidates = [loop for loop in nest.parallel if loop != lanes and nest.loops[loop].static is not None]
    padded = [loop for loop in candidates if any(loop in window.steps for window in windows)]
    if padded:
        return padded[-1]
    points = product([nest.loops[loop] for loop in nest.statements[0].reductions]).static
    if points is None or points > SMALL_WINDOW:
        return None
    return next((loop for loop in reversed(candidates) if _overlaps(nest, loop, lanes)), None)


def _overlaps(nest: Nest, row: int, lanes: int) -> bool:
    """Whether two points along a loop read the same element, at different taps."""
    extent = nest.loops[row].static or 0
    for access in nest.statements[0].inputs:
        if not isinstance(access, Access) or not access.strides[row].static:
            continue
        if access.strides[lanes] != Size(0) and any(access.strides[loop] == Size(0) for loop in nest.parallel):
            continue  # in a filter's gradient, a contraction uses a vector of the image for all filters
        for tap in nest.statements[0].reductions:
            stride, taps = access.strides[tap].static, nest.loops[tap].static or 0
            steps = [stride * tap / access.strides[row].factor for tap in range(1, taps)] if stride else []
            if any(step == int(step) and 0 < step < extent for step in steps):
                return True
    return False


def _tile(nest: Nest, lanes: Tile, rows: int, target: Target) -> Tile:
    if not _has_filters(nest, lanes, rows):
        return _tile_of_channels(nest, lanes, rows, target)
    tile = register_tile(nest, lanes, rows, target)
    weights = panel_operand(nest, tile)
    if weights is None:
        return tile
    return replace(tile, inside=loops_inside(nest, tile, weights))


def _has_filters(nest: Nest, lanes: Tile, rows: int) -> bool:
    """Whether pixels are the same for all lanes and weights the same for all rows, as in a contraction."""
    loop = lanes.loop
    assert loop is not None
    inputs = [access for access in nest.statements[0].inputs if isinstance(access, Access)]
    pixels = any(access.strides[loop] == Size(0) for access in inputs)
    return pixels and any(access.strides[rows] == Size(0) and access.strides[loop] != Size(0) for access in inputs)


def _tile_of_channels(nest: Nest, lanes: Tile, rows: int, target: Target) -> Tile:
    """Each channel by itself: nothing is shared between lanes, so one vector, and rows that divide the width."""
    extent = nest.loops[rows].static or 1
    most = 16 if target.vector_registers >= 32 else 6
    tiles = -(-extent // most)
    return Tile(lanes.width, lanes.loop, 1, rows, -(-extent // tiles))
