"""What products and windows have in common: blocks of columns outside, rows inside, and padding that is left out.

Where windows leave the image, what lies outside adds nothing, so its taps do not run: an instruction is told where the
taps begin and how many there are. Rows of a tile must agree on that, so rows at the edges of the image are tiles of
their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eyas.codegen.common.kernel import Access, Nest, Statement, Unsupported
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.windows import Window, strip_guards, windows_of
from eyas.codegen.vmvx.builder import Scalar
from eyas.codegen.vmvx.builder import Tile as Value
from eyas.codegen.vmvx.emit import Bounds, KernelEmitter, NestEmitter
from eyas.codegen.vmvx.memory import View
from eyas.codegen.vmvx.types import element_bytes, tile_type

# Runs of rows with the same taps are code of their own each.
_MOST_SEGMENTS = 8

Taps = dict[int, tuple[Scalar, Scalar]]
"""Of the loops of a sum that are cut off at edges: the first index, and how many there are."""


def without_padding(nest: Nest) -> tuple[Nest, list[Window]] | str:
    """A nest whose sum reads no padding, and the windows that say where the image ends; or why that cannot be."""
    windows = windows_of(nest)
    if isinstance(windows, str):
        return windows
    statements = (strip_guards(nest.statements[0]), *nest.statements[1:])
    return replace(nest, statements=statements), windows


def why_no_rows(windows: list[Window], lane: int | None, row: int | None) -> str | None:
    """Why tiles cannot have these columns and rows beside the edges of an image, or None."""
    for window in windows:
        if lane in window.steps or (row in window.steps and len(window.steps) > 1):
            return "padding along the columns, or along two loops at once"
    return None


class SumEmitter(NestEmitter):
    """A nest that begins with a sum which one instruction makes for a tile."""

    levels: int
    """Loops of the sum that the instruction runs."""

    def __init__(self, parent: KernelEmitter, nest: Nest, tile: Tile, bounds: Bounds):
        stripped = without_padding(nest)
        if isinstance(stripped, str):
            raise Unsupported(stripped)
        super().__init__(parent, stripped[0], tile, bounds)
        self.windows = stripped[1]
        if (problem := why_no_rows(self.windows, tile.loop, tile.unroll_loop)) is not None:
            raise Unsupported(problem)
        if tile.loop is None or tile.loop not in nest.parallel:
            raise Unsupported("no columns")
        self.lane = tile.loop
        self.loops = list(nest.statements[0].reductions)

    def emit(self, view: View) -> None:
        apart = (self.lane, self.tile.unroll_loop, *self.tile.inside)
        plain = [loop for loop in self.nest.parallel if view.indices[loop] is None and loop not in apart]
        most_rows, most_columns = self._tile_sizes()

        def columns(outer: View) -> None:
            self._prepare(outer)
            self._enter(self.tile.inside, outer, lambda inner: self._row_blocks(inner, most_rows))

        self._enter(plain, view, lambda outer: self._column_blocks(outer, most_columns, columns))

    def _column_blocks(self, view: View, most: Scalar, then: Callable[[View], None]) -> None:
        self._blocks(self.lane, most, view, View.with_columns, then)

    def _prepare(self, view: View) -> None:
        """What a block of columns does before its rows."""

    def _row_blocks(self, view: View, most: Scalar) -> None:
        row, builder = self.tile.unroll_loop, self.builder
        edges = [window for window in self.windows if row in window.steps]
        if row is None or not edges:
            self._blocks(row, most, view, View.with_rows, lambda at: self._tile(at, self._taps(at, None, None)))
            return
        low, high = self._bounds(row)
        for first, end, inside in self._segments(row, edges):
            start, stop = low, high
            if first is not None:
                start = builder.max(low, builder.const(first))
            if end is not None:
                stop = builder.min(high, builder.const(end))
            step = most if inside is not None else builder.const(1)
            with builder.loop(start, stop, step) as index:
                count = builder.min(step, builder.sub(stop, index))
                inner = view.with_rows(row, index, builder.const(1) if inside is None else count)
                self._tile(inner, self._taps(inner, row, inside))

    def _segments(self, row: int, edges: list[Window]) -> list[tuple[int | None, int | None, dict | None]]:
        """The rows from one to another that have the same taps inside of the image, and those taps: first and end of
        each loop. Rows beyond are to be asked one by one."""
        extent, first, found = self.nest.loops[row].static, 0, []
        while extent is not None and first < extent and len(found) <= _MOST_SEGMENTS:
            taps = self._inside(row, edges, first)
            end = first + 1
            while end < extent and self._inside(row, edges, end) == taps:
                end += 1
            found.append((first or None, end if end < extent else None, taps))
            first = end
        if extent is None or len(found) > _MOST_SEGMENTS:
            low = max(first_inside(window, row) for window in edges)
            high = max(low, min(end_inside(window, row, self.nest.loops[window.tap].static) for window in edges))
            return [(None, low, None), (low, high, {}), (high, None, None)]
        return found

    def _inside(self, row: int, edges: list[Window], place: int) -> dict[int, tuple[int, int]]:
        """The taps of a row that are in the image."""
        taps: dict[int, tuple[int, int]] = {}
        for window in edges:
            position = window.shift + window.steps[row] * place
            low, high = taps.get(window.tap, (0, self.nest.loops[window.tap].static or 0))
            first = max(low, -(position // window.dilation))
            taps[window.tap] = (first, max(first, min(high, -((position - window.extent) // window.dilation))))
        return taps

    def _taps(self, view: View, row: int | None, known: dict[int, tuple[int, int]] | None) -> Taps:
        """The taps of a tile that are in the image. Along the loop `row` they are `known`, all of them if not named."""
        builder, zero = self.builder, self.builder.const(0)
        ends = {tap: (builder.const(low), builder.const(high)) for tap, (low, high) in (known or {}).items()}
        for window in self.windows:
            if known is not None and row in window.steps:
                continue
            position = builder.const(window.shift)
            for loop, step in sorted(window.steps.items()):
                index = view.indices[loop]
                assert index is not None
                position = builder.add(position, builder.mul(index, builder.const(step)))
            first = builder.ceil_div(builder.sub(zero, position), window.dilation)
            end = builder.ceil_div(builder.sub(builder.const(window.extent), position), window.dilation)
            low, high = ends.get(window.tap, (zero, self.memory.size(self.nest.loops[window.tap])))
            ends[window.tap] = (builder.max(low, first), builder.min(high, end))
        return {tap: (low, builder.sub(high, low)) for tap, (low, high) in ends.items()}

    def _tile(self, view: View, taps: Taps) -> None:
        self.taps = taps
        self._block(view)

    # The sum.

    def _reduce(self, statement: Statement, view: View, made: dict[tuple[int, int], Value]) -> list[Value]:
        builder = self.builder
        total = builder.variable(tile_type(statement.element_types[0]), view.rows, view.columns)
        (old,) = self._initial(statement, view)
        if old is None:
            raise Unsupported("a reduction without an initial value")
        builder.assign(total, old)
        inside = self.loops[-self.levels :]
        for loop in inside:
            if loop in self.taps:
                view = view.at(loop, self.taps[loop][0])

        def outside(loops: list[int], at: View) -> None:
            if not loops:
                self._sum(total, at, inside)
                return
            first, count = self.taps.get(loops[0]) or (builder.const(0), self.memory.size(self.nest.loops[loops[0]]))
            with builder.loop(first, builder.add(first, count), builder.const(1)) as index:
                outside(loops[1:], at.at(loops[0], index))

        outside(self.loops[: -self.levels], view)
        return [total]

    def _sum(self, total: Value, view: View, loops: list[int]) -> None:
        """Adds to a tile what an instruction sums up over some loops."""
        raise NotImplementedError

    def _level(self, loop: int, left: Access, right: Access | None, step: int = 1) -> tuple[Scalar, Scalar, Scalar]:
        """How many steps a loop of the instruction has, and how many bytes each of them is for both operands."""
        size = self.memory.size
        count = self.taps[loop][1] if loop in self.taps else size(self.nest.loops[loop])
        if step > 1:
            count = self.builder.div(count, self.builder.const(step))
        bytes_ = [
            self.builder.const(0)
            if access is None
            else size(access.strides[loop] * element_bytes(access.storage.element) * step)
            for access in (left, right)
        ]
        return count, bytes_[0], bytes_[1]

    def _levels(self, loops: list[int], left: Access, right: Access | None, step: int = 1) -> list[Scalar]:
        one, zero = self.builder.const(1), self.builder.const(0)
        found = [(one, zero, zero)] * (self.levels - len(loops))
        found += [self._level(loop, left, right, step if loop == loops[-1] else 1) for loop in loops]
        return [number for level in found for number in level]


def first_inside(window: Window, row: int) -> int:
    """The first row whose taps are all in the image."""
    return max(0, -(window.shift // window.steps[row]))


def end_inside(window: Window, row: int, taps: int | None) -> int:
    """One beyond the last row whose taps are all in the image."""
    reach = window.shift + window.dilation * ((taps or 1) - 1)
    return max(0, (window.extent - 1 - reach) // window.steps[row] + 1)
