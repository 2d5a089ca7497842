"""Emits nests whose reduction slides a window over an image: no point outside of the image is read or computed.

Tiles of rows start at known positions, so for each tap along the rows it is known at compile time which of them are
inside; taps along other loops have bounds that depend on the position. Small reductions are written out, so that rows
share what their windows have in common.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.common.emission.tile_body import with_index
from eyas.codegen.common.emission.tile_loads import Block, Indices, TileLoads
from eyas.codegen.common.kernel import Access, Nest, Statement
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.windows import Window, strip_guards, windows_of
from eyas.codegen.llvm_cpu.emit import NestEmitter

# More points than this per output make the order of loops that of a contraction: lanes outside, rows inside.
SMALL_WINDOW = 128


def unrolled_reductions(nest: Nest, windows: Sequence[Window], rows: int | None, most: int) -> tuple[int, ...]:
    """Reductions to write out: those whose range depends on the row, and the innermost while they have at most so many
    points together."""
    found = {window.tap for window in windows if rows in window.steps}
    bounded = {window.tap for window in windows if rows not in window.steps}
    points = 1
    for loop in reversed(nest.statements[0].reductions):
        extent = nest.loops[loop].static
        if extent is None or loop in bounded or points * extent > most:
            break
        points *= extent
        found.add(loop)
    return tuple(sorted(found))


def row_tiles(nest: Nest, windows: Sequence[Window], tile: Tile) -> list[tuple[int, int, int]]:
    """Tiles along the rows as (start, rows, how many in a loop); those at the edges stand alone."""
    loop, rows = tile.unroll_loop, tile.unroll
    assert loop is not None
    extent = nest.loops[loop].static
    assert extent is not None
    tiles: list[tuple[int, int, int]] = []
    for start in range(0, extent, rows):
        count = min(rows, extent - start)
        inside = all(
            window.rows_inside(loop, tap, start, count) == (0, count)
            for window in windows
            if loop in window.steps
            for tap in range(nest.loops[window.tap].static or 0)
        )
        if inside and tiles and tiles[-1][2] and count == rows:
            first, _, repeats = tiles[-1]
            tiles[-1] = (first, rows, repeats + 1)
        else:
            tiles.append((start, count, int(inside and count == rows)))
    return tiles


class SlidingNest(NestEmitter):
    """Loops as in `NestEmitter`, but for the tiles of rows and the reduction."""

    def __init__(self, parent, nest: Nest, tile: Tile, bounds: dict[int, tuple]):
        super().__init__(parent, nest, tile, bounds)
        windows = windows_of(nest)
        assert not isinstance(windows, str), "the strategy checked this"
        self.windows = windows
        self.unrolled = unrolled_reductions(nest, windows, tile.unroll_loop, parent.schedule.taps)
        self.stripped: dict[int, Statement] = {}
        self.start: int | None = None
        """Where the rows start, when that is known; otherwise all of them are inside."""
        self.rows = 1
        points = [nest.loops[loop].static or 0 for loop in nest.statements[0].reductions]
        self.rows_outside = _product(points) <= SMALL_WINDOW

    def emit(self, indices: Indices) -> None:
        apart = (self.lane_loop, self.tile.unroll_loop, *self.tile.inside)
        plain = [loop for loop in self.nest.parallel if indices[loop] is None and loop not in apart]
        if self.rows_outside:
            self._enter(plain, indices, lambda at: self._each_tile(at, self._vector_blocks))
        else:
            self._enter(plain, indices, self._vector_blocks)

    def _each_tile(self, indices: Indices, then) -> None:
        loop = self.tile.unroll_loop
        assert loop is not None
        for start, rows, repeats in row_tiles(self.nest, self.windows, self.tile):
            self.rows = rows
            if repeats > 1:
                self.start = None
                low, high = self.at.index(start), self.at.index(start + rows * repeats)
                with self.parent.loop(low, high, rows) as index:
                    then(with_index(indices, loop, index))
            else:
                self.start = None if repeats else start
                then(with_index(indices, loop, self.at.index(start)))

    def _row_blocks(
        self, indices: Indices, vectors: int, mask: mlir.Value | None, statements: Sequence[Statement]
    ) -> None:
        def run(at: Indices) -> None:
            self._block(Block(at, self.rows, vectors, mask), statements)

        run(indices) if self.rows_outside else self._each_tile(indices, run)

    def _reduce(self, statement: Statement, block: Block, made: dict) -> list:
        if self.tile.loop in statement.reductions:
            return super()._reduce(statement, block, made)
        width = self.width
        olds = self._initial(statement, block, TileLoads(self.context, block, width))
        types = statement.element_types
        if id(statement) not in self.stripped:
            self.stripped[id(statement)] = strip_guards(statement)
        bare = self.stripped[id(statement)]
        rows = [
            [self.memory.as_width(old[row][v], type_, width) for old, type_ in zip(olds, types, strict=True)
             for v in range(block.vectors)]
            for row in range(block.rows)
        ]  # fmt: skip
        parts: dict[tuple[int, int], tuple[Block, TileLoads]] = {}

        def part(first: int, last: int) -> tuple[Block, TileLoads]:
            """The block of some of the rows, and what their addresses have in common."""
            indices, loop = block.indices, self.tile.unroll_loop
            if first:
                assert loop is not None and self.start is not None
                indices = with_index(indices, loop, self.at.index(self.start + first))
            piece = Block(indices, last - first, block.vectors, block.mask)
            return piece, TileLoads(self.context, piece, width)

        # Common parts of addresses are computed here, outside of all loops of the reduction.
        for first, last in self._row_ranges(block.rows):
            parts[first, last] = part(first, last)
            parts[first, last][1].prepare([source for source in bare.inputs if isinstance(source, Access)])

        def nest_loops(loops: tuple[int, ...], taps: dict[int, mlir.Value], first: int, carried: list) -> list:
            """`carried` are the accumulators of each row from `first` on."""
            last = first + len(carried)
            if not carried:
                return carried
            if not loops:
                return self._step(bare, parts.get((first, last)) or part(first, last), taps, carried, made, width)
            loop, rest = loops[0], loops[1:]
            extent = self.nest.loops[loop]
            if loop in self.unrolled:
                assert extent.static is not None
                carried = list(carried)
                for tap in range(extent.static):
                    low, high = self._rows_at(loop, tap, first, last)
                    inside = {**taps, loop: self.at.index(tap)}
                    piece = nest_loops(rest, inside, low, carried[low - first : high - first])
                    carried[low - first : high - first] = piece
                return carried
            low, high = self._taps_at(loop, block)
            flat = [value for row in carried for value in row]
            op = scf.ForOp(low, high, self.at.index(1), flat)
            with mlir.InsertionPoint(op.body):
                inner = _rows(list(op.inner_iter_args), len(carried))
                made_inside = nest_loops(rest, {**taps, loop: op.induction_variable}, first, inner)
                scf.YieldOp([value for row in made_inside for value in row])
            return _rows(list(op.results), len(carried))

        final = nest_loops(statement.reductions, {}, 0, rows)
        vectors = block.vectors
        return [[row[o * vectors : (o + 1) * vectors] for row in final] for o in range(len(types))]

    def _step(self, bare: Statement, part: tuple, taps: dict[int, mlir.Value], carried: list, made, width: int) -> list:
        piece, outer = part
        indices = list(piece.indices)
        for loop, index in taps.items():
            indices[loop] = index
        inner = Block(indices, piece.rows, piece.vectors, piece.mask)
        types, vectors = bare.element_types, piece.vectors
        olds = [[row[o * vectors : (o + 1) * vectors] for row in carried] for o in range(len(types))]
        tiles = self._apply(bare, inner, TileLoads(self.context, inner, width, outer), made, olds)
        return [
            [self.memory.as_width(value, type_, width) for tile, type_ in zip(tiles, types, strict=True)
             for value in tile[row]]
            for row in range(piece.rows)
        ]  # fmt: skip

    def _rows_at(self, loop: int, tap: int, first: int, last: int) -> tuple[int, int]:
        """Of the rows from `first` to `last` of a tile those whose tap is inside of the image."""
        if self.start is None:
            return first, last
        for window in self.windows:
            if window.tap == loop and self.tile.unroll_loop in window.steps:
                low, high = window.rows_inside(self.tile.unroll_loop, tap, self.start + first, last - first)
                first, last = first + low, first + high
        return first, last

    def _row_ranges(self, rows: int) -> set[tuple[int, int]]:
        """Ranges of rows that some tap has inside of the image."""
        found = {(0, rows)}
        for loop in self.unrolled:
            for tap in range(self.nest.loops[loop].static or 0):
                first, last = self._rows_at(loop, tap, 0, rows)
                found |= {(first, last)} if first < last else set()
        return found

    def _taps_at(self, loop: int, block: Block) -> tuple[mlir.Value, mlir.Value]:
        """The range of a reduction that is inside of the image at the block's position."""
        low, high = self.at.index(0), self.memory.size(self.nest.loops[loop])
        for window in self.windows:
            if window.tap != loop:
                continue
            position = self.at.index(window.shift)
            for other, step in window.steps.items():
                index = block.indices[other]
                assert index is not None
                position = self.memory.add(position, self.memory.multiply(index, step))
            before = arith.SubIOp(self.at.index(0), position).result
            after = arith.SubIOp(self.at.index(window.extent), position).result
            low = arith.MaxSIOp(low, self._divide_up(before, window.dilation)).result
            high = arith.MinSIOp(high, self._divide_up(after, window.dilation)).result
        return low, high

    def _divide_up(self, value: mlir.Value, by: int) -> mlir.Value:
        return value if by == 1 else arith.CeilDivSIOp(value, self.at.index(by)).result


def _rows(values: list[mlir.Value], rows: int) -> list[list[mlir.Value]]:
    each = len(values) // rows
    return [values[row * each : (row + 1) * each] for row in range(rows)]


def _product(extents: Sequence[int]) -> int:
    total = 1
    for extent in extents:
        total *= extent
    return total
