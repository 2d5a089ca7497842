"""Products by the matrix instructions of subgroups: operands pass through shared memory, sums stay in fragments.

A fragment is a small matrix that a subgroup has in its registers, nobody knows where. Each subgroup has several rows
and columns of them. When the sum is done, one fragment after the other goes through shared memory, where its elements
have places, and each thread finishes a few of them as it would finish those of a tile of its own.

    for k in steps of depth:
        shared <- registers; barrier
        registers <- memory at k + depth
        for each slice of depth: fragments += rows of shared * columns of shared
        barrier
    for each fragment: shared <- fragment; barrier; bias, activation, casts, stores; barrier
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, vector

from eyas.codegen.common.emission.tile_body import with_index
from eyas.codegen.common.emission.tile_loads import Block, Indices, TileContext
from eyas.codegen.common.kernel import Nest, Statement
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.staged_tile import Operand, Stage, StagedTile
from eyas.codegen.gpu.thread_tile import ThreadLoads
from eyas.ir.values import element_bytes

GROUP = 4
"""Elements that are loaded, and lie in shared memory, as one vector."""
PAD_BYTES = 16
"""Between the lines of shared memory; the instructions want lines to be a multiple of that."""


@dataclass(frozen=True)
class Fragments:
    """What a workgroup computes with: subgroups of `subgroup` threads, `across` of them side by side, each with `rows`
    times `columns` fragments of `shape` (rows, columns, depth)."""

    subgroup: int
    across: int
    rows: int
    columns: int
    shape: tuple[int, int, int]


class MatrixTile(StagedTile):
    """All that a workgroup whose tile begins at `corner` (row, column) does."""

    def __init__(
        self,
        memory: Memory,
        nest: Nest,
        rows: Operand,
        columns: Operand,
        depth: int,
        corner: tuple[mlir.Value, mlir.Value],
        fragments: Fragments,
    ):
        self.fragments, at = fragments, memory.at
        number = gpu.subgroup_id()
        down = arith.DivUIOp(number, at.index(fragments.across)).result
        right = arith.RemUIOp(number, at.index(fragments.across)).result
        m, n, _ = fragments.shape
        place = [
            arith.MulIOp(one, at.index(extent)).result
            for one, extent in ((down, fragments.rows * m), (right, fragments.columns * n))
        ]
        self.lane = gpu.lane_id()
        # Where the fragment of each subgroup goes when the sum is done.
        count = at.threads // fragments.subgroup * m * n // GROUP
        self.element = nest.statements[0].element_types[0]
        self.finished = at.shared(mlir.VectorType.get([GROUP], self.element), count)
        self.own = arith.MulIOp(number, at.index(m * n // GROUP)).result
        super().__init__(memory, nest, rows, columns, depth, corner, (place[0], place[1]))

    def _stage(self, operand: Operand, corner: mlir.Value) -> Stage:
        return MatrixStage(self, operand, corner)

    def run(self, block: Block) -> None:
        statement = self.nest.statements[0]
        sums = self._sums(statement, block)
        m, n, _ = self.fragments.shape
        points = m * n // self.fragments.subgroup
        first = arith.MulIOp(self.lane, self.at.index(points)).result
        row = arith.DivUIOp(first, self.at.index(n)).result
        column = arith.RemUIOp(first, self.at.index(n)).result
        vectors = arith.AddIOp(self.own, arith.DivUIOp(first, self.at.index(GROUP)).result).result
        for number, fragment in enumerate(sums):
            i, j = divmod(number, self.fragments.columns)
            gpu.SubgroupMmaStoreMatrixOp(fragment, self.finished, [self.own], n // GROUP)
            gpu.BarrierOp()
            values: list[mlir.Value] = []
            for at in range(points // GROUP):
                index = self.memory.add(vectors, self.at.index(at))
                whole = memref.LoadOp(self.finished, [index]).result
                values += [vector.ExtractOp(whole, [], [lane]).result for lane in range(GROUP)]
            indices = block.indices
            for stage, place, inside, start in zip(self.stages, self.place, (row, column), (i * m, j * n), strict=True):
                position = self.memory.add(arith.AddIOp(stage.corner, place).result, inside)
                position = self.memory.add(position, self.at.index(start))
                indices = with_index(indices, stage.operand.loop, position)
            part = Block(indices, 1, points, None)
            self._finish_inside(part, [[values]])
            gpu.BarrierOp()

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

    def _sums(self, statement: Statement, block: Block) -> list[mlir.Value]:
        """The subgroup's fragments, row by row."""
        m, n, k = self.fragments.shape
        type_ = mlir.Type.parse(f'!gpu.mma_matrix<{m}x{n}x{self.element}, "COp">')
        zero = gpu.SubgroupMmaConstantMatrixOp(type_, self.at.constant(self.element, 0)).result
        zeros = [zero] * (self.fragments.rows * self.fragments.columns)
        *outer, inner = statement.reductions
        high = self.memory.size(self.nest.loops[inner])
        last = arith.SubIOp(high, self.at.index(self.depth)).result

        def run(around: Block, carried: list[mlir.Value]) -> list[mlir.Value]:
            ahead = [stage.load(around.indices, self.at.index(0)) for stage in self.stages]
            count = len(ahead[0])

            def step(index: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
                sums, rest = values[: len(carried)], values[len(carried) :]
                self.stages[0].store(rest[:count])
                self.stages[1].store(rest[count:])
                gpu.BarrierOp()
                following = arith.AddIOp(index, self.at.index(self.depth)).result
                start = arith.MinUIOp(following, last).result
                rest = [value for stage in self.stages for value in stage.load(around.indices, start)]
                for slice_ in range(self.depth // k):
                    sums = self._multiply_fragments(slice_, sums)
                gpu.BarrierOp()
                return [*sums, *rest]

            values = self._carry(self.at.index(0), high, self.depth, [*carried, *ahead[0], *ahead[1]], step)
            return values[: len(carried)]

        return self._run_reductions(outer, block, zeros, run)

    def _multiply_fragments(self, slice_: int, sums: list[mlir.Value]) -> list[mlir.Value]:
        m, n, k = self.fragments.shape
        rows, columns = self.stages
        assert isinstance(rows, MatrixStage) and isinstance(columns, MatrixStage)
        left = [rows.fragment((m, k), i * m, slice_ * k) for i in range(self.fragments.rows)]
        right = [columns.fragment((k, n), j * n, slice_ * k) for j in range(self.fragments.columns)]
        products = [(one, other) for one in left for other in right]
        return [
            gpu.SubgroupMmaComputeOp(one, other, sum_).result for (one, other), sum_ in zip(products, sums, strict=True)
        ]


class MatrixStage(Stage):
    """The part of an operand that a workgroup has in shared memory, in lines of neighbours that are such in memory too:
    vectors are copied as they are, and fragments are read along rows or along columns."""

    tile: MatrixTile

    def __init__(self, tile: MatrixTile, operand: Operand, corner: mlir.Value):
        super().__init__(tile, operand, corner)
        self._share(GROUP)
        self.is_deep = self.along == tile.sum
        length, lines = (tile.depth, operand.extent) if self.is_deep else (operand.extent, tile.depth)
        self.line = length + PAD_BYTES // element_bytes(operand.access.storage.element)
        # Otherwise the last group would reach beyond the end.
        self.is_together = self.is_deep or tile.nest.loops[operand.loop].factor % GROUP == 0
        self.is_left = operand.loop == tile.context.row_loop
        type_ = mlir.VectorType.get([GROUP], operand.access.storage.element)
        self.shared = tile.at.shared(type_, lines * self.line // GROUP)

    def load(self, indices: Indices, start: mlir.Value) -> list[mlir.Value]:
        """This thread's share of the elements from `start` on in the sum, in vectors."""
        type_ = mlir.VectorType.get([GROUP], self.operand.access.storage.element)
        return [
            vector.FromElementsOp(type_, self._elements(indices, start, *self._position(number))).result
            for number in range(self.rounds)
        ]

    def _elements(self, indices: Indices, start: mlir.Value, line: mlir.Value, column: mlir.Value) -> list[mlir.Value]:
        memory, access = self.tile.memory, self.operand.access
        if self.is_together:
            block = Block(self._global(indices, start, line, column), 1, GROUP, None)
            loads = ThreadLoads(TileContext(memory, None, self.along), block, None, None)
            return [loads.get(access, 0, lane) for lane in range(GROUP)]
        found = []
        for lane in range(GROUP):
            at = self._global(indices, start, line, memory.add(column, memory.at.index(lane)))
            found.append(
                ThreadLoads(TileContext(memory, None, None), Block(at, 1, 1, None), None, None).get(access, 0, 0)
            )
        return found

    def store(self, values: list[mlir.Value]) -> None:
        memory = self.tile.memory
        for number, value in enumerate(values):
            line, column = self._position(number)
            slow, fast = (column, line) if self.is_deep else (line, column)
            address = memory.add(arith.MulIOp(slow, memory.at.index(self.line)).result, fast)

            def put(value: mlir.Value = value, address: mlir.Value = address) -> None:
                index = arith.DivUIOp(address, memory.at.index(GROUP)).result
                memref.StoreOp(value, self.shared, [index])

            self._if_mine(number, put)

    @property
    def _last(self) -> int:
        return GROUP if self.is_together and not self.is_deep else 1

    def fragment(self, shape: tuple[int, int], first: int, step: int) -> mlir.Value:
        """The fragment of the subgroup from its row or column `first` and from step `step` on."""
        at = self.tile.at
        place = self.tile.memory.add(self.tile.place[0 if self.is_left else 1], at.index(first))
        if self.is_deep:
            address = self.tile.memory.add(arith.MulIOp(place, at.index(self.line)).result, at.index(step))
        else:
            address = self.tile.memory.add(place, at.index(step * self.line))
        index = arith.DivUIOp(address, at.index(GROUP)).result
        is_turned = self.is_left != self.is_deep
        element = self.operand.access.storage.element
        sign = "s" if isinstance(element, mlir.IntegerType) else ""
        type_ = f'{shape[0]}x{shape[1]}x{sign}{element}, "{"A" if self.is_left else "B"}Op"'
        return gpu.SubgroupMmaLoadMatrixOp(
            mlir.Type.parse(f"!gpu.mma_matrix<{type_}>"),
            self.shared,
            [index],
            self.line // GROUP,
            transpose=True if is_turned else None,
        ).result
