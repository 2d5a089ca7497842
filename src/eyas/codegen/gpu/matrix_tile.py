"""Products by the matrix instructions of subgroups: operands pass through shared memory, sums stay in fragments.

A fragment is a small matrix that a subgroup has in its registers, nobody knows where. Each subgroup has several rows
and columns of them. With two buffers, threads fill one while they multiply from the other:

    shared[0] <- memory at 0; registers <- memory at depth; barrier
    for k in steps of depth:
        shared[other] <- registers; registers <- memory at k + 2 depth
        for each slice of depth: fragments += rows of shared * columns of shared
        barrier

When the sum is done, one row of fragments after the other goes through shared memory, where elements have places, and
each thread finishes some of them as it would finish those of a tile of its own: bias, activation, casts, stores.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, vector

from eyas.codegen.common.emission.tile_body import TileBody, with_index
from eyas.codegen.common.emission.tile_loads import Block, Indices
from eyas.codegen.common.kernel import Nest, Statement
from eyas.codegen.gpu.matrix_stage import GROUP_BYTES, MatrixStage, group_type
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import each
from eyas.codegen.gpu.staged_tile import Operand, StagedTile

POINTS = GROUP_BYTES // 4
"""Sums that are one group of shared memory; a thread finishes that many neighbours at a time."""


@dataclass(frozen=True)
class Fragments:
    """What a workgroup computes with: subgroups of `subgroup` threads, `across` of them side by side, each with `rows`
    times `columns` fragments of `shape` (rows, columns, depth)."""

    subgroup: int
    across: int
    rows: int
    columns: int
    shape: tuple[int, int, int]

    @property
    def pitch(self) -> int:
        """Groups between the lines of a row of fragments that are finished."""
        return self.columns * self.shape[1] // POINTS | 1

    @property
    def finished(self) -> int:
        """Groups of shared memory that a row of finished fragments of one subgroup takes."""
        return self.shape[0] * self.pitch


class MatrixTile(StagedTile):
    """All that a workgroup whose tile begins at `corner` (row, column) does, with one or two `buffers`."""

    stages: list[MatrixStage]  # type: ignore[assignment]

    def __init__(
        self,
        memory: Memory,
        nest: Nest,
        rows: Operand,
        columns: Operand,
        depth: int,
        corner: tuple[mlir.Value, mlir.Value],
        fragments: Fragments,
        buffers: int,
    ):
        self.fragments, self.buffers, at = fragments, buffers, memory.at
        self.element = nest.statements[0].element_types[0]
        self.number, self.lane = gpu.subgroup_id(), gpu.lane_id()
        down, right = (op(self.number, at.index(fragments.across)).result for op in (arith.DivUIOp, arith.RemUIOp))
        first = [
            arith.MulIOp(one, at.index(count)).result
            for one, count in ((down, fragments.rows), (right, fragments.columns))
        ]
        place = [
            arith.MulIOp(one, at.index(extent)).result for one, extent in zip(first, fragments.shape[:2], strict=True)
        ]
        self._filled = 0
        super().__init__(memory, nest, rows, columns, depth, corner, (place[0], place[1]))
        self.firsts = [stage.first_of(one) for stage, one in zip(self.stages, first, strict=True)]
        finished = at.threads // fragments.subgroup * fragments.finished
        self.shared = at.shared(group_type(), max(buffers * self._filled, finished))

    def _stage(self, operand: Operand, corner: mlir.Value) -> MatrixStage:  # type: ignore[override]
        is_left = operand.loop == self.context.row_loop
        stage = MatrixStage(self, operand, corner, self.fragments.shape[0 if is_left else 1], self._filled)
        self._filled += stage.size
        return stage

    # --- the sum ------------------------------------------------------------------------------------------------------

    def _sums(self, statement: Statement, block: Block) -> list[mlir.Value]:
        """The subgroup's fragments, row by row."""
        m, n, _ = self.fragments.shape
        type_ = mlir.Type.parse(f'!gpu.mma_matrix<{m}x{n}x{self.element}, "COp">')
        zero = gpu.SubgroupMmaConstantMatrixOp(type_, self.at.constant(self.element, 0)).result
        zeros = [zero] * (self.fragments.rows * self.fragments.columns)
        *outer, _ = statement.reductions
        run = self._sum_from_two if self.buffers == 2 else self._sum_from_one
        return TileBody._run_reductions(self, outer, block, zeros, run)

    def _sum_from_one(self, around: Block, carried: list[mlir.Value]) -> list[mlir.Value]:
        zero = self.at.index(0)
        high = self.memory.size(self.nest.loops[self.sum])

        def step(index: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            self._fill(values[len(carried) :], zero)
            gpu.BarrierOp()
            ahead = self._fetch(around.indices, self._later(index, 1))
            sums = self._multiply_fragments(zero, values[: len(carried)])
            gpu.BarrierOp()
            return [*sums, *ahead]

        values = self._carry(zero, high, self.depth, [*carried, *self._fetch(around.indices, zero)], step)
        return values[: len(carried)]

    def _sum_from_two(self, around: Block, carried: list[mlir.Value]) -> list[mlir.Value]:
        zero, size = self.at.index(0), self.at.index(self._filled)
        high = self.memory.size(self.nest.loops[self.sum])
        self._fill(self._fetch(around.indices, zero), zero)
        ahead = self._fetch(around.indices, self._later(zero, 1))
        gpu.BarrierOp()

        def step(index: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            buffer, *values = values
            other = arith.SubIOp(size, buffer).result
            self._fill(values[len(carried) :], other)
            ahead = self._fetch(around.indices, self._later(index, 2))
            sums = self._multiply_fragments(buffer, values[: len(carried)])
            gpu.BarrierOp()
            return [other, *sums, *ahead]

        values = self._carry(zero, high, self.depth, [zero, *carried, *ahead], step)
        return values[1 : len(carried) + 1]

    def _later(self, index: mlir.Value, steps: int) -> mlir.Value:
        """Where the step begins that comes so many later, or the last; what is loaded twice is not used."""
        high = self.nest.loops[self.sum]
        if high.static is not None:
            last = self.at.index((high.static - 1) // self.depth * self.depth)
        else:
            before = arith.SubIOp(self.memory.size(high), self.at.index(1)).result
            whole = arith.DivUIOp(before, self.at.index(self.depth)).result
            last = arith.MulIOp(whole, self.at.index(self.depth)).result
        return arith.MinUIOp(self.memory.add(index, self.at.index(steps * self.depth)), last).result

    def _fetch(self, indices: Indices, start: mlir.Value) -> list[mlir.Value]:
        return [group for stage in self.stages for group in stage.load(indices, start)]

    def _fill(self, groups: list[mlir.Value], buffer: mlir.Value) -> None:
        count = self.stages[0].rounds
        self.stages[0].store(groups[:count], buffer)
        self.stages[1].store(groups[count:], buffer)

    def _multiply_fragments(self, buffer: mlir.Value, sums: list[mlir.Value]) -> list[mlir.Value]:
        """All steps that are in shared memory, from the buffer on that begins there."""
        k, counts = self.fragments.shape[2], (self.fragments.rows, self.fragments.columns)
        firsts = [self.memory.add(first, buffer) for first in self.firsts]
        for slice_ in range(self.depth // k):
            left, right = (
                [stage.read(first, number, slice_, k, stage is self.stages[0]) for number in range(count)]
                for stage, first, count in zip(self.stages, firsts, counts, strict=True)
            )
            factors = [(one, other) for one in left for other in right]
            sums = [
                gpu.SubgroupMmaComputeOp(one, other, sum_).result
                for (one, other), sum_ in zip(factors, sums, strict=True)
            ]
        return sums

    # --- what follows it ----------------------------------------------------------------------------------------------

    def run(self, block: Block) -> None:
        sums = self._sums(self.nest.statements[0], block)
        of, at = self.fragments, self.at
        m, n, _ = of.shape
        side = of.columns * n // POINTS
        own = arith.MulIOp(self.number, at.index(of.finished)).result
        for row in range(of.rows):
            for column, fragment in enumerate(sums[row * of.columns : (row + 1) * of.columns]):
                start = self.memory.add(own, at.index(column * n // POINTS))
                gpu.SubgroupMmaStoreMatrixOp(fragment, self.shared, [start], of.pitch)
            gpu.BarrierOp()

            def finish(group: mlir.Value, row: int = row) -> None:
                line, place = (op(group, at.index(side)).result for op in (arith.DivUIOp, arith.RemUIOp))
                address = self.memory.add(self.memory.add(own, arith.MulIOp(line, at.index(of.pitch)).result), place)
                values = self._values(memref.LoadOp(self.shared, [address]).result)
                line = self.memory.add(line, at.index(row * m))
                column = arith.MulIOp(place, at.index(POINTS)).result
                indices = block.indices
                for stage, first, inside in zip(self.stages, self.place, (line, column), strict=True):
                    position = self.memory.add(arith.AddIOp(stage.corner, first).result, inside)
                    indices = with_index(indices, stage.operand.loop, position)
                self._finish_inside(Block(indices, 1, POINTS, None), [[values]])

            each(self.lane, at.index(m * side), at.index(of.subgroup), finish)
            gpu.BarrierOp()

    def _values(self, group: mlir.Value) -> list[mlir.Value]:
        words = [vector.ExtractOp(group, [], [lane]).result for lane in range(POINTS)]
        same = self.element == words[0].type
        return words if same else [arith.BitcastOp(self.element, word).result for word in words]

    def _finish(self, block: Block, tiles: list, rows: range, columns: range) -> None:
        """What the sum begins with is added at its end: a fragment begins with zeros."""
        statement = self.nest.statements[0]
        if statement.inits[0] is not None:
            indices = block.indices
            for (operand, first), part in zip(self._axes(block), (rows, columns), strict=True):
                indices = with_index(indices, operand.loop, self.memory.add(first, self.at.index(part.start)))
            part = Block(indices, len(rows), len(columns), None)
            (initial,) = self._initial(statement, part, self._loads(part))
            (tile,) = tiles
            tile = [list(row) for row in tile]
            add = arith.AddFOp if isinstance(self.element, mlir.FloatType) else arith.AddIOp
            for row in rows:
                for column in columns:
                    start = self.memory.as_width(
                        initial[row - rows.start][column - columns.start], tile[row][column].type, 1
                    )
                    tile[row][column] = add(start, tile[row][column]).result
            tiles = [tile]
        super()._finish(block, tiles, rows, columns)
