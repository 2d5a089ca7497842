"""Products by the matrix instructions of subgroups: operands pass through shared memory, sums stay in fragments.

A fragment is a small matrix that a subgroup has in its registers, nobody knows where. Each subgroup has several rows
and columns of them. With two buffers, threads fill one while they multiply from the other:

    shared[0] <- memory at 0; registers <- memory at depth; barrier; factors <- shared[0], slice 0
    for k in steps of depth:
        shared[1] <- registers; registers <- memory at k + 2 depth
        for each slice of depth:
            next factors <- shared[0], next slice; or, at the last: barrier; next factors <- shared[1], slice 0
            sums += factors of rows * factors of columns
        swap the buffers

When the sum is done, one row of fragments after the other goes through shared memory, where elements have places, and
each thread finishes some of them as it would finish those of a tile of its own: bias, activation, casts, stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf, vector

from eyas.codegen.common.emission.tile_body import with_index
from eyas.codegen.common.emission.tile_loads import Block, Indices
from eyas.codegen.common.expressions import odd
from eyas.codegen.common.kernel import Nest
from eyas.codegen.common.sizes import product
from eyas.codegen.gpu.matrix_stage import GROUP_BYTES, MatrixStage, Side, group_type
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode, each
from eyas.codegen.gpu.thread_tile import ThreadTile

POINTS = GROUP_BYTES // 4
"""Sums that are one group of shared memory; a thread finishes that many neighbours at a time."""


@dataclass(frozen=True)
class Fragments:
    """What a workgroup computes with: subgroups of `subgroup` threads, `down` times `across` of them, each with `rows`
    times `columns` fragments of `shape` (rows, columns, depth). There are `parts` of such, which have the same
    fragments and share the steps of their sums."""

    subgroup: int
    parts: int
    down: int
    across: int
    rows: int
    columns: int
    shape: tuple[int, int, int]

    @property
    def subgroups(self) -> int:
        return self.parts * self.down * self.across

    @property
    def pitch(self) -> Any:
        """Groups between the lines of a row of fragments that are finished."""
        return odd(self.columns * self.shape[1] // POINTS)

    @property
    def finished(self) -> Any:
        """Groups of shared memory that a row of finished fragments of each subgroup takes."""
        return self.subgroups * self.shape[0] * self.pitch


class MatrixTile(ThreadTile):
    """All that a workgroup whose tile begins at `corner` (row, column) does, with one or two `buffers`, while elements
    of `in_flight` more steps are on their way to registers."""

    def __init__(
        self,
        memory: Memory,
        nest: Nest,
        sides: tuple[Side, Side],
        depth: int,
        corner: tuple[mlir.Value, mlir.Value],
        fragments: Fragments,
        buffers: int,
        in_flight: int,
        spread: int,
        ahead: bool,
    ):
        super().__init__(memory, nest, None, sides[1].loops[-1])
        at = memory.at
        self.fragments, self.buffers, self.depth, self.corner = fragments, buffers, depth, corner
        self.spread, self.reads_ahead = spread, ahead
        self.in_flight, self.slices = in_flight, depth // fragments.shape[2] // fragments.parts
        *self.outer, self.sum = nest.statements[0].reductions
        self.element = nest.statements[0].element_types[0]
        tiles, across = at.index(fragments.down * fragments.across), at.index(fragments.across)
        self.part, self.number = (op(gpu.subgroup_id(), tiles).result for op in (arith.DivUIOp, arith.RemUIOp))
        down, right = (op(self.number, across).result for op in (arith.DivUIOp, arith.RemUIOp))
        counts = fragments.rows, fragments.columns
        first = [arith.MulIOp(*pair).result for pair in zip((down, right), map(at.index, counts), strict=True)]
        extents = map(at.index, fragments.shape[:2])
        self.place = [arith.MulIOp(*pair).result for pair in zip(first, extents, strict=True)]
        rows = MatrixStage(self, sides[0], corner[0], fragments.shape[0], 0)
        columns = MatrixStage(self, sides[1], corner[1], fragments.shape[1], rows.size)
        self.stages, self.filled = (rows, columns), rows.size + columns.size
        self.rounds = rows.rounds + columns.rounds
        own = arith.MulIOp(self.part, at.index(self.slices * fragments.shape[2])).result
        self.firsts = [stage.first_of(one, own) for stage, one in zip(self.stages, first, strict=True)]
        self.shared = at.shared(group_type(), max(buffers * self.filled, fragments.finished))

    # --- the sum ------------------------------------------------------------------------------------------------------

    def _sums(self, indices: Indices) -> list[mlir.Value]:
        """The subgroup's fragments, row by row."""
        m, n, _ = self.fragments.shape
        type_ = mlir.Type.parse(f'!gpu.mma_matrix<{m}x{n}x{self.element}, "COp">')
        zero = gpu.SubgroupMmaConstantMatrixOp(type_, self.at.constant(self.element, 0)).result
        zeros = [zero] * (self.fragments.rows * self.fragments.columns)
        for stage in self.stages:
            stage.prepare(indices)
        return self._sum_from_two(zeros) if self.buffers == 2 else self._sum_from_one(zeros)

    def _sum_from_one(self, zeros: list[mlir.Value]) -> list[mlir.Value]:
        zero, count = self.at.index(0), len(zeros)
        coming = [group for number in range(self.in_flight) for group in self._fetch(self._later(zero, number))]

        def step(index: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            sums, coming = values[:count], values[count:]
            self._fill(coming[: self.rounds], zero)
            gpu.BarrierOp()
            coming = [*coming[self.rounds :], *self._fetch(self._later(index, self.in_flight))]
            factors = self._read(zero, 0)
            for slice_ in range(self.slices):
                is_last = slice_ + 1 == self.slices
                following = self._read(zero, slice_ + 1) if self.reads_ahead and not is_last else []
                sums = self._multiply(factors, sums)
                factors = following if self.reads_ahead or is_last else self._read(zero, slice_ + 1)
            gpu.BarrierOp()
            return [*sums, *coming]

        return self._carry(zero, self._end, self._stride, [*zeros, *coming], step)[:count]

    def _sum_from_two(self, zeros: list[mlir.Value]) -> list[mlir.Value]:
        """Fragments may be read one slice ahead, those of the next step's first slice after the step's only barrier."""
        zero, size, count = self.at.index(0), self.at.index(self.filled), len(zeros)
        self._fill(self._fetch(zero), zero)
        coming = [group for number in range(self.in_flight) for group in self._fetch(self._later(zero, number + 1))]
        gpu.BarrierOp()
        first = self._read(zero, 0) if self.reads_ahead else []
        parts = len(first)

        def step(index: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            buffer, *values = values
            sums, factors, coming = values[:count], values[count : count + parts], values[count + parts :]
            other = arith.SubIOp(size, buffer).result
            requests, fetched = self._requests(self._later(index, self.in_flight + 1)), []

            def pass_on(number: int) -> None:
                self._put(coming[number], number, other)
                fetched.append(requests[number]())

            for slice_ in range(self.slices):
                is_last = slice_ + 1 == self.slices
                share = [partial(pass_on, number) for number in self._share(slice_)]
                if not self.spread:
                    _run(share)
                if not self.reads_ahead:
                    following, factors = [], self._read(buffer, slice_)
                elif not is_last:
                    following = self._read(buffer, slice_ + 1)
                if self.spread == 1:
                    _run(share)
                between = share if self.spread == 2 else []
                if not is_last or not self.reads_ahead:
                    sums, factors = self._multiply(factors, sums, between), following
                    continue
                half = len(sums) // 2 if self.spread == 2 else 0
                sums = self._multiply(factors, sums, between, range(half))
                gpu.BarrierOp()
                following = self._read(other, 0)
                sums, factors = self._multiply(factors, sums, [], range(half, len(sums))), following
            if not self.reads_ahead:
                gpu.BarrierOp()
            return [other, *sums, *factors, *coming[self.rounds :], *fetched]

        carried = self._carry(zero, self._end, self._stride, [zero, *zeros, *first, *coming], step)
        if self.reads_ahead:
            gpu.BarrierOp()  # the last step has read fragments that nobody needs
        return carried[1 : count + 1]

    def _share(self, slice_: int) -> range:
        """The groups that go to shared memory at a slice: all at the first, some at each but the last, or some at each
        where they do so between multiplications, of the last one before its middle."""
        parts = [1] + [0] * (self.slices - 1)
        if self.spread == 1 and self.slices > 1:
            parts = [1] * (self.slices - 1) + [0]
        elif self.spread == 2:
            parts = [2] * (self.slices - 1) + [1]
        first, last = (sum(parts[:number]) * self.rounds // sum(parts) for number in (slice_, slice_ + 1))
        return range(first, last)

    # One loop counts all that is summed up: along the innermost sum alone in points; else in steps of `depth` points,
    # as many as the innermost sum has for each point of the others.

    @property
    def _stride(self) -> int:
        return 1 if self.outer else self.depth

    @property
    def _chunks(self) -> mlir.Value:
        """Steps of the innermost sum."""
        extent = self.memory.size(self.nest.loops[self.sum])
        return arith.CeilDivUIOp(extent, self.at.index(self.depth)).result

    @property
    def _end(self) -> mlir.Value:
        if not self.outer:
            return self.memory.size(self.nest.loops[self.sum])
        points = self.memory.size(product([self.nest.loops[loop] for loop in self.outer]))
        return arith.MulIOp(points, self._chunks).result

    def _later(self, index: mlir.Value, steps: int) -> mlir.Value:
        """Where the step begins that comes so many later, or the last; what is loaded twice is not used."""
        last = arith.SubIOp(self._end, self.at.index(1)).result
        if not self.outer:
            depth = self.at.index(self.depth)
            last = arith.MulIOp(arith.DivUIOp(last, depth).result, depth).result
        return arith.MinUIOp(self.memory.add(index, self.at.index(steps * self._stride)), last).result

    def _requests(self, index: mlir.Value) -> list[Callable[[], mlir.Value]]:
        """What fetches each of this thread's groups of a step."""
        indices: Indices = [None] * len(self.nest.loops)
        if self.outer:
            number, chunk = (op(index, self._chunks).result for op in (arith.DivUIOp, arith.RemUIOp))
            sizes = [self.nest.loops[loop] for loop in self.outer]
            for loop, one in zip(self.outer, decode(self.memory, number, sizes), strict=True):
                indices[loop] = one
            index = arith.MulIOp(chunk, self.at.index(self.depth)).result
        return [partial(stage.load, indices, index, number) for stage in self.stages for number in range(stage.rounds)]

    def _fetch(self, index: mlir.Value) -> list[mlir.Value]:
        return [request() for request in self._requests(index)]

    def _put(self, group: mlir.Value, number: int, buffer: mlir.Value) -> None:
        """Stores a group that was fetched, by its number among those of both operands."""
        rows, columns = self.stages
        if number < rows.rounds:
            rows.store(group, number, buffer)
        else:
            columns.store(group, number - rows.rounds, buffer)

    def _fill(self, groups: list[mlir.Value], buffer: mlir.Value) -> None:
        for number, group in enumerate(groups):
            self._put(group, number, buffer)

    def _read(self, buffer: mlir.Value, slice_: int) -> list[mlir.Value]:
        """The subgroup's fragments of rows, then of columns, at a slice of the steps in a buffer."""
        k, of = self.fragments.shape[2], self.fragments
        found: list[mlir.Value] = []
        for stage, first, count in zip(self.stages, self.firsts, (of.rows, of.columns), strict=True):
            start = self.memory.add(first, buffer)
            found += [stage.read(start, number, slice_, k, stage is self.stages[0]) for number in range(count)]
        return found

    def _multiply(
        self,
        factors: list[mlir.Value],
        sums: list[mlir.Value],
        between: Sequence[Callable[[], None]] = (),
        which: range | None = None,
    ) -> list[mlir.Value]:
        """Adds products of all pairs of fragments, or of some, to their sums; something else is done in between."""
        rows, columns = factors[: self.fragments.rows], factors[self.fragments.rows :]
        pairs = [(one, other) for one in rows for other in columns]
        which, sums = range(len(sums)) if which is None else which, list(sums)
        for turn, number in enumerate(which):
            first, last = (at * len(between) // len(which) for at in (turn, turn + 1))
            _run(between[first:last])
            sums[number] = gpu.SubgroupMmaComputeOp(*pairs[number], sums[number]).result
        if not which:
            _run(between)
        return sums

    # --- what follows it ----------------------------------------------------------------------------------------------

    def run(self, block: Block) -> None:
        sums = self._sums(block.indices)
        of, at, memory = self.fragments, self.at, self.memory
        m, n, _ = of.shape
        side = of.columns * n // POINTS
        size, tiles = m * of.pitch, of.down * of.across
        own = arith.MulIOp(self.number, at.index(size)).result
        mine = memory.add(own, arith.MulIOp(self.part, at.index(tiles * size)).result)
        lanes = of.parts * of.subgroup
        lane = memory.add(arith.MulIOp(self.part, at.index(of.subgroup)).result, gpu.lane_id())
        for row in range(of.rows):
            for column, fragment in enumerate(sums[row * of.columns : (row + 1) * of.columns]):
                start = memory.add(mine, at.index(column * n // POINTS))
                gpu.SubgroupMmaStoreMatrixOp(fragment, self.shared, [start], of.pitch)
            gpu.BarrierOp()

            def finish(group: mlir.Value, row: int = row) -> None:
                line, place = (op(group, at.index(side)).result for op in (arith.DivUIOp, arith.RemUIOp))
                address = memory.add(memory.add(own, arith.MulIOp(line, at.index(of.pitch)).result), place)
                values = self._values([memory.add(address, at.index(part * tiles * size)) for part in range(of.parts)])
                inside = memory.add(line, at.index(row * m)), arith.MulIOp(place, at.index(POINTS)).result
                starts = [arith.AddIOp(*pair).result for pair in zip(self.corner, self.place, strict=True)]
                first = [arith.AddIOp(*pair).result for pair in zip(starts, inside, strict=True)]
                self._finish_inside(block.indices, first[0], first[1], values)

            each(lane, at.index(m * side), at.index(lanes), finish)
            gpu.BarrierOp()

    def _values(self, addresses: list[mlir.Value]) -> list[mlir.Value]:
        """The sums of what parts have at some addresses of shared memory."""
        totals: list[mlir.Value] = []
        for address in addresses:
            group = memref.LoadOp(self.shared, [address]).result
            words = [vector.ExtractOp(group, [], [lane]).result for lane in range(POINTS)]
            if self.element != words[0].type:
                words = [arith.BitcastOp(self.element, word).result for word in words]
            totals = [self._add(*pair) for pair in zip(totals, words, strict=True)] if totals else words
        return totals

    def _add(self, one: mlir.Value, other: mlir.Value) -> mlir.Value:
        add = arith.AddFOp if isinstance(self.element, mlir.FloatType) else arith.AddIOp
        return add(one, other).result

    def _finish_inside(self, indices: Indices, row: mlir.Value, column: mlir.Value, values: list[mlir.Value]) -> None:
        """Finishes neighbours of one row: all together where they surely are inside together, else one by one."""
        rows, columns = self.stages
        extent = self.nest.loops[columns.side.loops[-1]]
        together = not columns.sticks_out or extent.factor % POINTS == 0
        for first in range(0, POINTS, POINTS if together else 1):
            start = self.memory.add(column, self.at.index(first))
            part = values if together else values[first : first + 1]
            inside = [self._below(row, rows), self._below(start, columns)]
            conditions = [one for one in inside if one is not None]
            if not conditions:
                self._finish(indices, row, start, part)
                continue
            branch = scf.IfOp(arith.AndIOp(*conditions).result if len(conditions) == 2 else conditions[0])
            with mlir.InsertionPoint(branch.then_block):
                self._finish(indices, row, start, part)
                scf.YieldOp([])

    def _below(self, position: mlir.Value, stage: MatrixStage) -> mlir.Value | None:
        """Whether a position is inside; None where it surely is."""
        if not stage.sticks_out:
            return None
        return arith.CmpIOp(arith.CmpIPredicate.ult, position, self.memory.size(stage.points)).result

    def _finish(self, indices: Indices, row: mlir.Value, column: mlir.Value, values: list[mlir.Value]) -> None:
        """What follows the sum. What that begins with is added now: a fragment begins with zeros."""
        sizes = [self.nest.loops[loop] for loop in self.stages[0].side.loops]
        for loop, index in zip(self.stages[0].side.loops, decode(self.memory, row, sizes), strict=True):
            indices = with_index(indices, loop, index)
        block = Block(with_index(indices, self.stages[1].side.loops[-1], column), 1, len(values), None)
        first, made = self.nest.statements[0], {}
        if first.inits[0] is not None:
            ((initial,),) = self._initial(first, block, self._loads(block))
            values = [self._add(*pair) for pair in zip(initial, values, strict=True)]
        self._keep(0, first, block, [[values]], made)
        for position, statement in list(enumerate(self.nest.statements))[1:]:
            loads = self._loads(block)
            found = self._apply(statement, block, loads, made, self._initial(statement, block, loads))
            self._keep(position, statement, block, found, made)


def _run(steps: Sequence[Callable[[], None]]) -> None:
    for step in steps:
        step()
