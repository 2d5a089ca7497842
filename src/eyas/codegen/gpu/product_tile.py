"""Products whose operands pass through shared memory: a workgroup loads each element once for all of its threads.

Rows are whatever points the operand of the columns is the same for: the pixels of all images of a batch are the rows of
a convolution, whose windows are read in place. Threads have groups of four rows and columns each, apart from each
other, so that neighbours read and write neighbours. While they compute, the elements of the next step are on their way
to their registers:

    for k in steps of depth:
        shared[k % buffers] <- registers; barrier
        registers <- memory at k + depth
        depth times: sums += rows of shared * columns of shared

With `slices`, so many teams of threads have every so manieth step each, and add up what they have at the end.
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf, vector

from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.emission.body import Lane, evaluate_body
from eyas.codegen.common.emission.tile_loads import Block, Indices
from eyas.codegen.common.kernel import Access, Nest
from eyas.codegen.gpu.axis import Axis
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.product_stage import GROUP, ProductStage
from eyas.codegen.gpu.thread_tile import ThreadTile


class ProductTile(ThreadTile):
    """What one thread of a workgroup does whose tile begins at `corner` (row, column).

    `shape` are the threads of a team along rows and columns, `points` those of each thread.
    """

    def __init__(
        self,
        memory: Memory,
        nest: Nest,
        operands: tuple[Access, Access],
        axes: tuple[Axis, Axis],
        shape: tuple[int, int],
        points: tuple[int, int],
        depth: int,
        slices: int,
        buffers: int,
        corner: tuple[mlir.Value, mlir.Value],
    ):
        super().__init__(memory, nest, None, axes[1].inner)
        at, self.axes, self.shape, self.points = memory.at, axes, shape, points
        self.depth, self.slices, self.buffers, self.corner = depth, slices, buffers, corner
        self.statement = nest.statements[0]
        self.sum = Axis(nest, self.statement.reductions)
        self.team = shape[0] * shape[1]
        self.member = arith.RemUIOp(at.thread, at.index(self.team)).result if slices > 1 else at.thread
        self.slice = arith.DivUIOp(at.thread, at.index(self.team)).result if slices > 1 else at.index(0)
        steps = self.sum.extent.static
        self.ends_early = steps is None or bool(steps % (depth * slices))
        row = arith.DivUIOp(self.member, at.index(shape[1])).result
        self.place = row, arith.RemUIOp(self.member, at.index(shape[1])).result
        self.stages: list[ProductStage] = []
        filled = 0
        for access, axis, one, many, begin in zip(operands, axes, shape, points, corner, strict=True):
            stage = ProductStage(self, access, axis, one * many, begin, filled)
            self.stages.append(stage)
            filled += stage.size
        self.filled = filled
        element = mlir.VectorType.get([GROUP], operands[0].storage.element)
        self.shared = at.shared(element, slices * buffers * filled)
        self.own = arith.MulIOp(self.slice, at.index(buffers * filled)).result

    def run_at(self, indices: Indices) -> None:
        """The workgroup's tile, for given indices of what is neither row nor column."""
        sums = self.sums_at(indices)
        if self.slices == 1:
            self._finish_all(indices, sums)
            return
        sums = self._added(sums)
        first = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, self.slice, self.at.index(0)).result)
        with mlir.InsertionPoint(first.then_block):
            self._finish_all(indices, sums)
            scf.YieldOp([])

    # --- the sum ------------------------------------------------------------------------------------------------------

    def sums_at(self, indices: Indices) -> list[mlir.Value]:
        """This thread's sums, row by row, for given indices of what is neither row nor column."""
        for stage in self.stages:
            stage.enter(indices)
        return self._sums()

    def _sums(self) -> list[mlir.Value]:
        """This thread's sums, row by row."""
        at, memory, statement = self.at, self.memory, self.statement
        (init,), (type_,) = statement.inits, statement.element_types
        combiner = combiner_of(statement.body, len(statement.inputs))
        assert combiner is not None, "the strategy checked this"
        nothing = at.constant(type_, combiner.identity(type_))
        begins = isinstance(init, Access) or init is None or self.slices > 1
        carried = [nothing if begins else memory.scalar(init)] * (self.points[0] * self.points[1])
        reach = self.depth * self.slices
        steps = memory.size(self.sum.extent)
        begin = arith.MulIOp(self.slice, at.index(self.depth)).result
        last = arith.SubIOp(steps, at.index(1)).result
        ahead = [group for stage in self.stages for group in stage.load(begin)]
        count = len(self.stages[0].shares)

        def step(index: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            buffer, *values = values
            sums, groups = values[: len(carried)], values[len(carried) :]
            self.stages[0].store(groups[:count], buffer)
            self.stages[1].store(groups[count:], buffer)
            gpu.BarrierOp()
            following = arith.AddIOp(index, at.index(reach)).result
            # What is loaded after the last step is not used.
            following = arith.SelectOp(arith.CmpIOp(arith.CmpIPredicate.ugt, following, last).result, index, following)
            start = memory.add(following.result, begin)
            groups = [group for stage in self.stages for group in stage.load(start)]
            for first in range(0, self.depth, GROUP):
                sums = self._multiply(buffer, first, sums)
            if self.buffers == 1:
                gpu.BarrierOp()
                return [buffer, *sums, *groups]
            both = arith.AddIOp(arith.AddIOp(self.own, self.own).result, at.index(self.filled)).result
            return [arith.SubIOp(both, buffer).result, *sums, *groups]

        values = self._carry(at.index(0), steps, reach, [self.own, *carried, *ahead], step)
        return values[1 : len(carried) + 1]

    def _multiply(self, buffer: mlir.Value, first: int, sums: list[mlir.Value]) -> list[mlir.Value]:
        """GROUP steps of the sum from shared memory."""
        rows, columns = (
            stage.read(buffer, place, points, threads, first)
            for stage, place, points, threads in zip(self.stages, self.place, self.points, self.shape, strict=True)
        )
        statement = self.statement
        readers = self._index_readers(statement, self._loads(Block([None] * len(self.nest.loops), 1, 1, None)), 0, 0)
        lane = Lane(self.memory, 1, None, *readers, sums=True)
        sums = list(sums)
        for step in range(GROUP):
            pairs = [(row, column) for row in rows[step] for column in columns[step]]
            for number, (row, column) in enumerate(pairs):
                found = {id(stage.access): one for stage, one in zip(self.stages, (row, column), strict=True)}
                factors = [found.get(id(source)) for source in statement.inputs]  # None: only its size is read
                (value,) = evaluate_body(statement.body, [*factors, sums[number]], lane)
                sums[number] = value
        return sums

    def _added(self, sums: list[mlir.Value]) -> list[mlir.Value]:
        """What all slices have together. The workgroup comes here together; the first slice has the result."""
        at, memory, statement = self.at, self.memory, self.statement
        combiner = combiner_of(statement.body, len(statement.inputs))
        assert combiner is not None
        type_ = mlir.VectorType.get([GROUP], statement.element_types[0])
        shared = at.shared(type_, at.threads)
        totals: list[mlir.Value] = []
        for first in range(0, len(sums), GROUP):
            memref.StoreOp(vector.FromElementsOp(type_, sums[first : first + GROUP]).result, shared, [at.thread])
            gpu.BarrierOp()
            found = sums[first : first + GROUP]
            for other in range(1, self.slices):
                whole = memref.LoadOp(shared, [memory.add(self.member, at.index(other * self.team))]).result
                lanes = [vector.ExtractOp(whole, [], [lane]).result for lane in range(GROUP)]
                found = [combiner.join(one, lane) for one, lane in zip(found, lanes, strict=True)]
            totals += found
            gpu.BarrierOp()  # before the memory is used again
        return totals

    # --- what follows -------------------------------------------------------------------------------------------------

    def _finish_all(self, indices: Indices, sums: list[mlir.Value]) -> None:
        """Runs what follows the sum for all points that lie inside: a row and a group of columns at a time."""
        memory, (rows, columns) = self.memory, self.axes
        for row in range(self.points[0]):
            position = self._position(0, row)

            def finish(row: int = row, position: mlir.Value = position) -> None:
                placed = rows.place(memory, indices, position)
                values = sums[row * self.points[1] : (row + 1) * self.points[1]]
                together = columns.extent.factor % GROUP == 0
                for first in range(0, self.points[1], GROUP if together else 1):
                    column = self._position(1, first)
                    part = values[first : first + GROUP] if together else [values[first]]
                    block = Block(columns.place(memory, placed, column), 1, len(part), None)

                    def run(block: Block = block, part: list[mlir.Value] = part) -> None:
                        self._finish(block, part)

                    self._if_inside(1, column, run)

            self._if_inside(0, position, finish)

    def _position(self, side: int, number: int) -> mlir.Value:
        """Where a thread's row or column with a number is."""
        at, memory = self.at, self.memory
        inside = memory.multiply(self.place[side], GROUP)
        ahead = number // GROUP * GROUP * self.shape[side] + number % GROUP
        return memory.add(memory.add(self.corner[side], inside), at.index(ahead))

    def _if_inside(self, side: int, position: mlir.Value, run) -> None:
        if not self.stages[side].sticks_out:
            run()
            return
        extent = self.memory.size(self.axes[side].extent)
        branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, position, extent).result)
        with mlir.InsertionPoint(branch.then_block):
            run()
            scf.YieldOp([])

    def _finish(self, block: Block, sums: list[mlir.Value]) -> None:
        statement, made = self.statement, {}
        (init,) = statement.inits
        if isinstance(init, Access) or (init is not None and self.slices > 1):
            combiner = combiner_of(statement.body, len(statement.inputs))
            assert combiner is not None
            ((olds,),) = self._initial(statement, block, self._loads(block))
            sums = [combiner.join(old, value) for old, value in zip(olds, sums, strict=True)]
        self._keep(0, statement, block, [[sums]], made)
        for position, following in list(enumerate(self.nest.statements))[1:]:
            loads = self._loads(block)
            found = self._apply(following, block, loads, made, self._initial(following, block, loads))
            self._keep(position, following, block, found, made)
