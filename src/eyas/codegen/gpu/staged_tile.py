"""Products whose operands pass through shared memory: a workgroup loads each element once for all of its threads.

A step takes `depth` points of the innermost sum. The workgroup copies what its rows and columns need of both operands,
rows side by side and columns side by side, and each thread then reads its own few of them. While it computes, the
elements of the next step are on their way to its registers.

    for k in steps of depth:
        shared <- registers; barrier
        registers <- memory at k + depth
        depth times: sums += rows of shared * columns of shared
        barrier
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.common.emission.tile_body import unflatten, with_index
from eyas.codegen.common.emission.tile_loads import Block, Indices, TileContext
from eyas.codegen.common.kernel import Access, Nest, Statement, Storage
from eyas.codegen.common.sizes import ONE, ZERO, Size
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.thread_tile import VECTORS, ThreadLoads, ThreadTile, vector_of

# Elements between the end of a line of shared memory and the next, so that lines do not begin in the same bank.
_PAD = 4


@dataclass(frozen=True)
class Operand:
    """One factor: the input that it is, the loop that it moves along with, and how much of that a workgroup has."""

    access: Access
    loop: int
    extent: int


class StagedTile(ThreadTile):
    """A tile of a thread whose workgroup begins at `corner` (row, column)."""

    def __init__(
        self,
        memory: Memory,
        nest: Nest,
        rows: Operand,
        columns: Operand,
        depth: int,
        corner: tuple[mlir.Value, mlir.Value],
        place: tuple[mlir.Value, mlir.Value],
    ):
        super().__init__(memory, nest, rows.loop, columns.loop)
        self.depth, self.corner, self.place = depth, corner, place
        self.sum = nest.statements[0].reductions[-1]
        self.stages = [self._stage(operand, corner[at]) for at, operand in enumerate((rows, columns))]

    def _stage(self, operand: Operand, corner: mlir.Value) -> Stage:
        return Stage(self, operand, corner)

    def run(self, block: Block) -> None:
        """All threads sum up whole tiles; of those that stick out, what lies inside goes on."""
        self._finish_inside(block, self._reduce(self.nest.statements[0], block, {}))

    def _finish_inside(self, block: Block, tiles: list) -> None:
        (rows, row), (columns, column) = self._axes(block)
        inside = self._fits(rows, row, block.rows), self._fits(columns, column, block.vectors)
        conditions = [one for one in inside if one is not None]
        whole = arith.AndIOp(*conditions).result if len(conditions) == 2 else next(iter(conditions), None)
        if whole is None:
            self._finish(block, tiles, range(block.rows), range(block.vectors))
            return
        branch = scf.IfOp(whole, has_else=True)
        with mlir.InsertionPoint(branch.then_block):
            self._finish(block, tiles, range(block.rows), range(block.vectors))
            scf.YieldOp([])
        with mlir.InsertionPoint(branch.else_block):
            for number in range(block.rows):
                self._finish_row(block, tiles, number)
            scf.YieldOp([])

    def _axes(self, block: Block) -> list[tuple[Operand, mlir.Value]]:
        found = []
        for stage in self.stages:
            index = block.indices[stage.operand.loop]
            assert index is not None
            found.append((stage.operand, index))
        return found

    def _fits(self, operand: Operand, first: mlir.Value, points: int) -> mlir.Value | None:
        """Whether all points of a thread lie inside; None where they surely do."""
        extent = self.nest.loops[operand.loop]
        if extent.static is not None and extent.static % operand.extent == 0:
            return None
        return self._below(first, points - 1, extent)

    def _below(self, first: mlir.Value, number: int, extent: Size) -> mlir.Value:
        position = self.memory.add(first, self.at.index(number))
        return arith.CmpIOp(arith.CmpIPredicate.ult, position, self.memory.size(extent)).result

    def _finish_row(self, block: Block, tiles: list, row: int) -> None:
        """What lies inside of one row of a tile that sticks out."""
        (rows, first_row), (columns, first_column) = self._axes(block)
        row_inside = self._below(first_row, row, self.nest.loops[rows.loop])
        extent = self.nest.loops[columns.loop]
        together = extent.static is not None and extent.static % block.vectors == 0
        for column in range(0, block.vectors, block.vectors if together else 1):
            column_inside = self._below(first_column, column, extent)
            branch = scf.IfOp(arith.AndIOp(row_inside, column_inside).result)
            with mlir.InsertionPoint(branch.then_block):
                across = range(block.vectors) if together else range(column, column + 1)
                self._finish(block, tiles, range(row, row + 1), across)
                scf.YieldOp([])

    def _finish(self, block: Block, tiles: list, rows: range, columns: range) -> None:
        """Runs what follows the sum for a part of the tile."""
        indices = block.indices
        for (operand, first), part in zip(self._axes(block), (rows, columns), strict=True):
            indices = with_index(indices, operand.loop, self.memory.add(first, self.at.index(part.start)))
        part = Block(indices, len(rows), len(columns), None)
        sums = [[[tile[row][column] for column in columns] for row in rows] for tile in tiles]
        made: dict = {}
        self._keep(0, self.nest.statements[0], part, sums, made)
        for position, statement in list(enumerate(self.nest.statements))[1:]:
            loads = self._loads(part)
            found = self._apply(statement, part, loads, made, self._initial(statement, part, loads))
            self._keep(position, statement, part, found, made)

    def _reduce(self, statement: Statement, block: Block, made: dict) -> list:
        types = statement.element_types
        first = self._first_values(statement, block, self._loads(block))
        near = replace(statement, inputs=tuple(map(self._near, statement.inputs)))
        *outer, inner = statement.reductions
        high = self.memory.size(self.nest.loops[inner])
        last = arith.SubIOp(high, self.at.index(self.depth)).result

        def run(around: Block, carried: list[mlir.Value]) -> list[mlir.Value]:
            ahead = [stage.load(around.indices, self.at.index(0)) for stage in self.stages]
            counts = [len(one) for one in ahead]

            def step(index: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
                sums, rest = values[: len(carried)], values[len(carried) :]
                self.stages[0].store(rest[: counts[0]])
                self.stages[1].store(rest[counts[0] :])
                gpu.BarrierOp()
                following = arith.AddIOp(index, self.at.index(self.depth)).result
                start = arith.MinUIOp(following, last).result
                rest = [value for stage in self.stages for value in stage.load(around.indices, start)]
                for at in range(self.depth):
                    sums = self._flatten(self._multiply(near, block, at, sums, made), types)
                gpu.BarrierOp()
                return [*sums, *rest]

            values = self._carry(self.at.index(0), high, self.depth, [*carried, *ahead[0], *ahead[1]], step)
            return values[: len(carried)]

        final = self._run_reductions(outer, block, first, run)
        return unflatten(final, len(types), block.rows, block.vectors)

    def _near(self, source: object) -> object:
        return next((stage.near for stage in self.stages if stage.operand.access is source), source)

    def _multiply(self, near: Statement, block: Block, step: int, sums: list[mlir.Value], made: dict) -> list:
        """One step of the sum, from shared memory: indices are those inside of the workgroup's tile."""
        indices: Indices = [None] * len(block.indices)
        indices[self.stages[0].operand.loop], indices[self.stages[1].operand.loop] = self.place
        indices[self.sum] = self.at.index(step)
        inner = Block(indices, block.rows, block.vectors, None)
        olds = unflatten(sums, len(near.element_types), block.rows, block.vectors)
        return self._apply(near, inner, self._loads(inner), made, olds)


class Stage:
    """The part of an operand that a workgroup has in shared memory: `depth` lines, each along the operand's loop."""

    def __init__(self, tile: StagedTile, operand: Operand, corner: mlir.Value):
        self.tile, self.operand, self.corner = tile, operand, corner
        memory, nest, access = tile.memory, tile.nest, operand.access
        line = _line(operand.extent)
        shape = (Size(tile.depth), Size(line))
        self.storage = Storage(f"stage{operand.loop}", access.storage.element, shape)
        strides = [ZERO] * len(nest.loops)
        strides[operand.loop], strides[tile.sum] = ONE, Size(line)
        self.near = Access(self.storage, (), tuple(strides))
        # Along which loop neighbours lie, and how many of them one load brings.
        self.along = next((loop for loop in (tile.sum, operand.loop) if access.strides[loop] == ONE), operand.loop)
        most = tile.depth if self.along == tile.sum else operand.extent
        self.count = vector_of(access, self.along, next((n for n in VECTORS if most % n == 0), 1), memory)
        if self.along == operand.loop and nest.loops[operand.loop].factor % self.count:
            self.count = 1  # the last group would reach beyond the end
        self._share(self.count)

    def _share(self, count: int) -> None:
        """Settles how many groups of `count` elements each thread brings."""
        threads = self.tile.at.threads
        self.count, self.groups = count, self.operand.extent * self.tile.depth // count
        self.rounds = -(-self.groups // threads)
        self.is_whole = self.groups % threads == 0

    def load(self, indices: Indices, start: mlir.Value) -> list[mlir.Value]:
        """This thread's share of the elements from `start` on in the sum, in registers."""
        found: list[mlir.Value] = []
        for number in range(self.rounds):
            line, column = self._position(number)
            at = self._global(indices, start, line, column)
            loads = ThreadLoads(
                TileContext(self.tile.memory, None, self.along), Block(at, 1, self.count, None), None, None
            )
            found += [loads.get(self.operand.access, 0, lane) for lane in range(self.count)]
        return found

    def store(self, values: list[mlir.Value]) -> None:
        """Puts what `load` gave into shared memory."""
        memory = self.tile.memory
        for number in range(self.rounds):
            line, column = self._position(number)

            def put(line: mlir.Value = line, column: mlir.Value = column, number: int = number) -> None:
                step = self.near.strides[self.tile.sum].factor
                for lane in range(self.count):
                    index = memory.at.index(lane)
                    at = (
                        [memory.add(line, index), column]
                        if self.along == self.tile.sum
                        else [line, memory.add(column, index)]
                    )
                    address = memory.add(arith.MulIOp(at[0], memory.at.index(step)).result, at[1])
                    memory.store(self.storage, address, values[number * self.count + lane], 1, ZERO, None)

            self._if_mine(number, put)

    def _position(self, number: int) -> tuple[mlir.Value, mlir.Value]:
        """Line and place in it of the first element of this thread's group with a number."""
        at, tile = self.tile.at, self.tile
        group = arith.AddIOp(at.thread, at.index(number * at.threads)).result
        if not self.is_whole and number == self.rounds - 1:
            group = arith.MinUIOp(group, at.index(self.groups - 1)).result
        side = (tile.depth if self.along == tile.sum else self.operand.extent) // self.count
        fast = arith.MulIOp(arith.RemUIOp(group, at.index(side)).result, at.index(self.count)).result
        slow = arith.DivUIOp(group, at.index(side)).result
        return (fast, slow) if self.along == tile.sum else (slow, fast)

    def _global(self, indices: Indices, start: mlir.Value, line: mlir.Value, column: mlir.Value) -> Indices:
        """The indices of an element; what lies beyond the last row or column is read from there, and never stored."""
        tile, loop = self.tile, self.operand.loop
        position = arith.AddIOp(self.corner, column).result
        extent = tile.nest.loops[loop]
        if extent.static is None or extent.static % self.operand.extent:
            beyond = arith.SubIOp(tile.memory.size(extent), tile.at.index(self._last)).result
            position = arith.MinUIOp(position, beyond).result
        at = with_index(indices, loop, position)
        return with_index(at, tile.sum, arith.AddIOp(start, line).result)

    @property
    def _last(self) -> int:
        """How far from the end a group begins at the latest."""
        return self.count if self.along == self.operand.loop else 1

    def _if_mine(self, number: int, run: Callable[[], None]) -> None:
        at = self.tile.at
        if self.is_whole or number < self.rounds - 1:
            run()
            return
        group = arith.AddIOp(at.thread, at.index(number * at.threads)).result
        branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, group, at.index(self.groups)).result)
        with mlir.InsertionPoint(branch.then_block):
            run()
            scf.YieldOp([])


def _line(extent: Any) -> Any:
    return extent + _PAD


def staged_elements(depth: Any, extent: Any) -> Any:
    """Elements of shared memory for one operand."""
    return depth * _line(extent)


def operands_of(nest: Nest, row: int | None, column: int) -> tuple[Access, Access] | str:
    """The input that moves along the rows and the one that moves along the columns, or why there are no such two."""
    first = nest.statements[0]
    if row is None:
        return "no rows"
    if any(not isinstance(source, Access) for source in first.inputs) or len(first.inputs) != 2:
        return "other than two operands"
    if first.body is None or any(
        op.operation.name in ("linalg.index", "tensor.extract") for op in first.body.operations
    ):
        return "the sum asks for more than its operands"
    one, other = first.inputs
    assert isinstance(one, Access) and isinstance(other, Access)
    for rows, columns in ((one, other), (other, one)):
        if moves(rows, row) and not moves(rows, column) and moves(columns, column) and not moves(columns, row):
            return rows, columns
    return "an operand moves along rows and columns"


def moves(access: Access, loop: int) -> bool:
    """Whether what an access reads depends on a loop."""
    guards = any(guard.coefficients[loop] for guard in access.guards)
    deeper = isinstance(access.otherwise, Access) and moves(access.otherwise, loop)
    return access.strides[loop] != ZERO or guards or deeper
