"""Products and convolutions: each thread has a tile of rows and columns in registers, and a workgroup a tile of those.

With `row_points` of an operand that is the same along the columns and `column_points` of one that is the same along the
rows, each step of the sum makes row_points * column_points multiply-adds from row_points + column_points loads.
Neighbouring threads have neighbouring columns, so that they load neighbouring elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.expressions import Number, between, divides, equal, select
from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.sizes import ZERO, Size, product
from eyas.codegen.common.space import Constraint, advice, first_problem, law, powers_of_two
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.common.traffic import element_bytes
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.passed_tile import PassedTile, is_passed
from eyas.codegen.gpu.points import decode, each, fits_a_grid
from eyas.codegen.gpu.sliced_tile import SlicedTile, why_not_sliced
from eyas.codegen.gpu.strategies.base import (
    THREADS,
    TILES_STICK_OUT,
    KernelStrategy,
    at_most_threads,
    knob,
    open_knobs,
    powers,
    ranges,
)
from eyas.codegen.gpu.thread_tile import ThreadTile, contiguous_loop, slides
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_THREADS = 64
# Steps of the sum that are written out, where it has a multiple of them.
_DEPTH = 4
_ROW_POINTS, _COLUMN_POINTS = (8, 4, 2, 1), (4, 2, 1)
_UNKNOWN_ROWS = 64
_WIDEST_WINDOW = 9
# Few rows: how many those are, the fewest steps of a sum that is shared, threads side by side at the most and at the
# fewest, so that they read whole sectors of memory, and threads of a workgroup.
_FEW_ROWS, _MIN_SLICED, _SLICED_COLUMNS, _FEWEST_COLUMNS, _SLICED_THREADS = 8, 128, 32, 8, 512
# Sums of a thread that are worth trying: no device has registers for more.
_MOST_SUMS = 128

# Lanes that hand over rows: the fewest of these for which it pays, sums of a thread, and columns of one at the most.
_FEWEST_PASSED, _PASSED_POINTS, _PASSED_COLUMNS = 4, 128, 8


@dataclass(frozen=True)
class ProductKnobs:
    threads: int = knob(THREADS)
    columns: int = knob("threads side by side along the columns; the others are along the rows")
    row_points: int = knob("rows of a thread")
    column_points: int = knob("columns of a thread")
    depth: int = knob("steps of the sum that are written out")
    slices: int = knob("threads that share the sum of one tile; of few rows they read the weights together")
    lanes: int = knob(
        "threads of a subgroup that load different rows and hand them to each other; 1: each loads its own"
    )


@dataclass(frozen=True)
class ProductLoops:
    """The loops of a nest whose points are rows and columns of a product."""

    row: int | None
    column: int
    others: tuple[int, ...]


@dataclass(frozen=True)
class Contraction(KernelStrategy):
    name: ClassVar[str] = "contraction"
    knobs_type: ClassVar[type] = ProductKnobs
    knobs: ProductKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Contraction | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        nest = kernel.nests[0]
        loops = product_loops(nest)
        assert not isinstance(loops, str)
        rows = 1 if loops.row is None else nest.loops[loops.row].static or _UNKNOWN_ROWS
        columns = nest.loops[loops.column].static or _UNKNOWN_ROWS
        others = product([nest.loops[loop] for loop in loops.others]).static or 1
        if target.facts.shared_is_near and (knobs := _sliced_knobs(nest, (rows, columns, others), target)) is not None:
            return cls(kernel, knobs)
        if not target.facts.shared_is_near and (knobs := _passed_knobs(nest, loops, (rows, columns, others), target)):
            return cls(kernel, knobs)
        row_points = next(points for points in _ROW_POINTS if points <= rows)
        column_points = next(points for points in _COLUMN_POINTS if columns % points == 0)
        threads = min(_THREADS, target.max_threads)
        wanted = 2 * threads * target.cores
        while row_points > 1 and others * rows * columns < wanted * row_points * column_points:
            row_points //= 2
        side = 1
        while side < threads and side * column_points < columns and side < 16:
            side *= 2
        while threads > side and (threads // side // 2) * row_points >= rows:
            threads //= 2
        return cls(kernel, ProductKnobs(threads, side, row_points, column_points, _depth_of(nest, loops), 1, 1))

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = found.plain
        if isinstance(kernel, str):
            return NO_NESTS
        if len(kernel.nests) != 1 or kernel.steps is not None:
            return "more than one loop nest"
        if kernel.nests[0].guards:
            return TILES_STICK_OUT
        loops = product_loops(kernel.nests[0])
        return loops if isinstance(loops, str) else kernel

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        nest, loops = kernel.nests[0], product_loops(kernel.nests[0])
        assert not isinstance(loops, str)
        found = [
            *powers(of, "threads", "columns", "lanes"),
            at_most_threads(of, "columns"),
            *ranges(of, 1, 64, "row_points", "column_points", "depth"),
        ]
        if loops.row is None:
            found.append(law(of.row_points <= 1, "row_points is {row_points}; without rows it must be 1"))
        side = of.threads // of.columns
        words = "slices is {slices}; it must be 1 to threads / columns = {side}"
        found.append(law(between(1, of.slices, side), words, side=side))
        alone = of.slices <= 1
        whole = alone | equal(of.slices * of.columns, of.threads)
        found.append(law(whole, "slices is {slices}; it must be 1, or threads / columns"))
        if (reason := why_not_sliced(nest)) is not None:
            found.append(law(alone, f"slices is {{slices}}; it must be 1: {reason}"))
        steps = nest.loops[nest.statements[0].reductions[-1]]
        words = f"slices is {{slices}}; it must be 1: depth must divide the {steps} steps of the sum"
        found.append(law(alone | divides(of.depth, steps.factor), words))
        words = "slices is {slices}; it must be 1: tiles of threads that wait for each other must be whole"
        pieces = [(nest.loops[loops.column], of.column_points)]
        pieces += [] if loops.row is None else [(nest.loops[loops.row], of.row_points)]
        for extent, piece in pieces:
            found.append(law(alone if extent.static is None else alone | divides(piece, extent.static), words))
        return [*found, *_passed_laws(nest, loops, of)]

    @classmethod
    def limits(cls, kernel: Kernel, of: Any, target: GpuTarget) -> list[Constraint]:
        lanes = target.subgroup if target.has("subgroup-shuffle") else 1
        words = f"lanes is {{lanes}}; on this device it must be 1{f' or {lanes}' if lanes > 1 else ''}"
        there = law(equal(of.lanes, 1) | equal(of.lanes, lanes), words)
        idle = no_idle_threads(cls(kernel, of).workgroups)
        return [*super().limits(kernel, of, target), there, *few_sums(of), *idle]

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        return {
            "threads": powers_of_two(16, target.max_threads),
            "columns": powers_of_two(1, min(target.max_threads, 256)),
            "row_points": (1, 2, 3, 4, 5, 6, 7, 8, 12, 16),
            "column_points": (1, 2, 4, 8),
            "depth": (1, 2, 4, 8, 16),
            "slices": powers_of_two(1, 64),
            "lanes": (1, target.subgroup) if target.has("subgroup-shuffle") else (1,),
        }

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        return select(of.slices > 1, of.threads * element_bytes(kernel.nests[0].statements[0].element_types[0]), 0)

    @property
    def loops(self) -> ProductLoops:
        loops = product_loops(self.kernel.nests[0])
        assert isinstance(loops, ProductLoops)
        return loops

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        """Of everything that is neither row nor column, of the columns, and of the rows."""
        nest, loops, knobs = self.kernel.nests[0], self.loops, self.knobs
        axes = [
            (product([nest.loops[loop] for loop in loops.others]), 1),
            (nest.loops[loops.column], knobs.columns * knobs.column_points),
        ]
        if loops.row is not None:
            axes.append((nest.loops[loops.row], knobs.threads // knobs.columns // knobs.slices * knobs.row_points))
        return axes

    def emit(self, interface: Interface) -> None:
        at, memory, nest = interface, Memory(self.kernel, interface), self.kernel.nests[0]
        loops, knobs = self.loops, self.knobs
        _, (columns, column_piece), *rows = self.workgroups
        if knobs.columns == knobs.threads:
            # Said plainly: a driver then sees that the rows are the same for all threads, and loads them once.
            across, along = at.thread, at.index(0)
        else:
            across = arith.RemUIOp(at.thread, at.index(knobs.columns)).result
            along = arith.DivUIOp(at.thread, at.index(knobs.columns)).result
        if knobs.slices > 1:
            pair = (loops.row, loops.column)
            tile = SlicedTile(memory, nest, pair, knobs.depth, knobs.slices, along)
            along = at.index(0)
        elif knobs.lanes > 1:
            assert loops.row is not None
            tile = PassedTile(memory, nest, (loops.row, loops.column), knobs.depth, knobs.lanes)
        else:
            tile = ThreadTile(memory, nest, loops.row, loops.column, knobs.depth)
        column = _first(at, at.ids[1], column_piece, across, knobs.column_points)
        row = _first(at, at.ids[2], rows[0][1], along, knobs.row_points) if rows else at.index(0)
        if max(knobs.slices, knobs.lanes) > 1 and columns.factor % column_piece:
            # All threads come to the barriers, or hand over rows; those beyond the end compute the last columns again.
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, column, memory.size(columns)).result
            tile.writes = inside if tile.writes is None else arith.AndIOp(tile.writes, inside).result
            column = arith.MinUIOp(column, at.index(columns.factor - knobs.column_points)).result
            column_piece = knobs.column_points

        def run(number: mlir.Value) -> None:
            indices = self._other_indices(memory, number)

            def run_columns(first_row: mlir.Value, row_count: int) -> None:
                def run_tile(first_column: mlir.Value, column_count: int) -> None:
                    inside = list(indices)
                    inside[loops.column] = first_column
                    if loops.row is not None:
                        inside[loops.row] = first_row
                    tile.run(Block(inside, row_count, column_count, None))

                _in_parts(memory, column, columns, knobs.column_points, column_piece, run_tile)

            if rows:
                _in_parts(memory, row, rows[0][0], knobs.row_points, rows[0][1], run_columns)
            else:
                run_columns(row, 1)

        self._each_other(memory, run)

    def _each_other(self, memory: Memory, run: Callable[[mlir.Value], None]) -> None:
        """Runs code for what the grid has along x: everything that is neither row nor column."""
        others, _ = self.workgroups[0]
        if fits_a_grid(others, 1):
            run(memory.at.ids[0])
        else:
            each(memory.at.ids[0], memory.size(others), gpu.grid_dim(gpu.Dimension.x), run)

    def _other_indices(self, memory: Memory, number: mlir.Value) -> list[mlir.Value | None]:
        nest = self.kernel.nests[0]
        indices: list[mlir.Value | None] = [None] * len(nest.loops)
        sizes = [nest.loops[loop] for loop in self.loops.others]
        for loop, index in zip(self.loops.others, decode(memory, number, sizes), strict=True):
            indices[loop] = index
        return indices


def _depth_of(nest: Nest, loops: ProductLoops) -> int:
    """All steps along a window whose rows overlap, so that what they share is loaded once."""
    first = nest.statements[0]
    steps = nest.loops[first.reductions[-1]].static
    shared = any(isinstance(one, Access) and slides(one, loops.row, first.reductions[-1]) for one in first.inputs)
    return steps if shared and steps is not None and steps <= _WIDEST_WINDOW else _DEPTH


def _sliced_knobs(nest: Nest, extents: tuple[int, int, int], target: GpuTarget) -> ProductKnobs | None:
    """For few rows: as many threads on each sum as keep the memory busy."""
    rows, columns, others = extents
    steps = nest.loops[nest.statements[0].reductions[-1]].static or 0
    if rows > _FEW_ROWS or steps < _MIN_SLICED or steps % _DEPTH or why_not_sliced(nest) is not None:
        return None
    loops = product_loops(nest)
    assert not isinstance(loops, str)
    if any(nest.loops[loop].static is None for loop in (loops.row, loops.column) if loop is not None):
        return None  # threads that wait for each other must all go the same way
    side = min(target.subgroup, _SLICED_COLUMNS)
    while side > _FEWEST_COLUMNS and others * columns < side * target.cores:
        side //= 2
    column_points = next(
        points for points in _COLUMN_POINTS
        if columns % points == 0 and (points == 1 or others * columns // (side * points) >= 2 * target.cores)
    )  # fmt: skip
    slices = min(min(_SLICED_THREADS, target.max_threads) // side, steps // (4 * _DEPTH))
    slices = 1 << (max(1, slices).bit_length() - 1)
    return ProductKnobs(side * slices, side, rows, column_points, _DEPTH, slices, 1) if slices > 1 else None


def _passed_knobs(
    nest: Nest, loops: ProductLoops, extents: tuple[int, int, int], target: GpuTarget
) -> ProductKnobs | None:
    """For drivers that compute on a CPU: one subgroup, as wide as it can be, whose lanes hand rows to each other."""
    rows, columns, others = extents
    if not target.has("subgroup-shuffle") or target.subgroup < 2 or rows < _FEWEST_PASSED:
        return None
    lanes = target.subgroup
    column_points = next(
        points for points in (_PASSED_COLUMNS, *_COLUMN_POINTS)
        if columns % points == 0 and (points == 1 or columns >= lanes * points)
    )  # fmt: skip
    most = min(rows, _PASSED_POINTS // column_points)
    # Rows that divide all of them need no second form of the tile, which the driver would have to compile.
    row_points = next((points for points in range(most, most // 2, -1) if rows % points == 0), most)
    while row_points > lanes and others * rows * columns < 2 * target.cores * lanes * row_points * column_points:
        row_points //= 2
    knobs = ProductKnobs(lanes, lanes, row_points, column_points, _depth_of(nest, loops), 1, lanes)
    return knobs if _why_not_passed(nest, loops, knobs) is None else None


def _why_not_passed(nest: Nest, loops: ProductLoops, knobs: ProductKnobs) -> str | None:
    """Why threads cannot hand rows to each other, or None."""
    return first_problem(_passed_laws(nest, loops, open_knobs(ProductKnobs)), asdict(knobs))


def _passed_laws(nest: Nest, loops: ProductLoops, of: Any) -> list[Constraint]:
    """What must hold so that threads can hand rows to each other."""
    alone, words = of.lanes <= 1, "lanes is {lanes}; it must be 1: "
    columns = nest.loops[loops.column].static
    whole = alone if columns is None else alone | divides(of.column_points, columns)
    part = f"a subgroup must be whole, and column_points = {{column_points}} does not divide {columns} columns"
    found = [
        law(alone | (of.slices <= 1), f"{words}slices is more than 1"),
        law(
            alone | divides(of.lanes, of.columns),
            f"{words}threads of a subgroup would have different rows, with {{columns}} columns",
        ),
        law(whole, words + part),
    ]
    inputs = [source for source in nest.statements[0].inputs if isinstance(source, Access)]
    if not any(is_passed(one, loops.row, loops.column) for one in inputs):
        found.append(law(alone, f"{words}no operand moves along rows alone"))
    return found


def product_loops(nest: Nest) -> ProductLoops | str:
    """Which loops of a nest are rows and columns, or why it is no product."""
    first = nest.statements[0]
    if not first.reductions or any(statement.reductions for statement in nest.statements[1:]):
        return "no sum"
    column = contiguous_loop(nest, nest.parallel)
    if column is None:
        return "no loop along which results are neighbours"
    inputs = [source for source in first.inputs if isinstance(source, Access)]
    moving = [source for source in inputs if source.strides[column] != ZERO]
    if len(inputs) < 2 or not moving:
        return "nothing is multiplied"
    candidates = [loop for loop in nest.parallel if loop != column and nest.loops[loop] != Size(1)]
    for reused in (moving, inputs):
        for loop in reversed(candidates):
            if any(source.strides[loop] == ZERO for source in reused):
                return ProductLoops(loop, column, tuple(one for one in nest.parallel if one not in (loop, column)))
    if len(moving) == len(inputs):
        return "no operand is used again"
    return ProductLoops(None, column, tuple(loop for loop in nest.parallel if loop != column))


def few_sums(of: Any) -> list[Constraint]:
    """A thread has its sums in registers."""
    points = of.row_points * of.column_points
    words = f"row_points is {{row_points}}; {{points}} sums of a thread are more than {_MOST_SUMS}, and leave registers"
    return [advice(points <= _MOST_SUMS, words, points=points)]


def no_idle_threads(workgroups: Sequence[tuple[Size, Any]]) -> list[Constraint]:
    """A tile that is twice as long as what there is has more idle threads than busy ones."""
    names = ("", "columns is {columns}", "threads is {threads}")
    return [
        advice(
            piece < 2 * extent.static, f"{names[axis]}; a tile of {{piece}} is for {extent.static} points", piece=piece
        )
        for axis, (extent, piece) in list(enumerate(workgroups))[1:]
        if extent.static
    ]


def _first(at: Interface, workgroup: mlir.Value, piece: int, thread: mlir.Value, points: int) -> mlir.Value:
    """The first point of a thread along an axis."""
    base = arith.MulIOp(workgroup, at.index(piece)).result
    return arith.AddIOp(base, arith.MulIOp(thread, at.index(points)).result).result


def _in_parts(
    memory: Memory, first: mlir.Value, extent: Size, points: int, piece: int, run: Callable[[mlir.Value, int], None]
) -> None:
    """Runs code for the points of a thread: all of them, or those that there are."""
    static, at = extent.static, memory.at
    if static is not None and static % piece == 0:
        run(first, points)
        return
    size = memory.size(extent)
    end = arith.AddIOp(first, at.index(points)).result
    if static is None or static >= points:
        whole = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ule, end, size).result)
        with mlir.InsertionPoint(whole.then_block):
            run(first, points)
            scf.YieldOp([])
    if points == 1 or (static is not None and static % points == 0):
        return
    if static is None:
        sticks_out = arith.CmpIOp(arith.CmpIPredicate.ugt, end, size).result
        start = arith.SelectOp(sticks_out, first, size).result
        each(start, size, at.index(1), lambda index: run(index, 1))
        return
    last = static - static % points
    part = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, first, at.index(last)).result)
    with mlir.InsertionPoint(part.then_block):
        run(first, static % points)
        scf.YieldOp([])
