"""Emits a kernel as loops and vectors, following a schedule.

The emitter is one mechanism for elementwise ops, reductions, contractions, convolutions and pooling: loops outside, a
register tile inside. What differs is only the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.emission.tile_body import TileBody, unflatten, with_index
from eyas.codegen.common.emission.tile_loads import Block, Indices, TileContext, TileLoads
from eyas.codegen.common.kernel import Access, Kernel, Nest, Statement
from eyas.codegen.common.panels import in_panels
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.llvm_cpu.dot import DotEmitter, dot_of
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.codegen.llvm_cpu.memory import Memory
from eyas.codegen.llvm_cpu.prefetch import PanelPrefetch
from eyas.codegen.llvm_cpu.staging import in_scratch, staged_loops


def emit_kernel(
    kernel: Kernel, schedule: Schedule, interface: Interface, emitter: type[NestEmitter] | None = None
) -> None:
    """Fills the entry function's body; `emitter` writes the nests in another way."""
    with interface.body:
        _KernelEmitter(kernel, schedule, interface, emitter or NestEmitter).emit()


class _KernelEmitter:
    def __init__(self, kernel: Kernel, schedule: Schedule, interface: Interface, emitter: type[NestEmitter]):
        self.kernel, self.schedule, self.at = kernel, schedule, interface
        self.emitter = emitter
        self.memory = Memory(kernel, interface)

    def emit(self) -> None:
        bounds = {axis.loop: self._grid_bounds(position) for position, axis in enumerate(self.schedule.grid)}
        loops = self.kernel.nests[-1].loops if self.kernel.nests else []

        def bounds_of(loop: int) -> tuple[mlir.Value, mlir.Value]:
            return bounds.get(loop) or (self.at.index(0), self.memory.size(loops[loop]))

        def run_nests(numbers: range, shared: Indices, bounds: dict[int, tuple]) -> None:
            for number in numbers:
                nest, tile = self.kernel.nests[number], self.schedule.tiles[number]
                indices = shared + [None] * (len(nest.loops) - len(shared))
                self.emitter(self, nest, tile, bounds).emit(indices)

        def run_steps(first: int, shared: Indices, bounds: dict[int, tuple]) -> None:
            steps, end = self.kernel.steps, len(self.kernel.nests)
            if steps is None:
                run_nests(range(first, end), shared, bounds)
                return
            run_nests(range(first, steps.first), shared, bounds)
            with self.loop(self.at.index(0), self.memory.size(steps.count), 1) as index:
                anchor = arith.ConstantOp(mlir.IndexType.get(), 0)  # scalars that a step needs come before it
                self.memory.step = (steps.index, index, mlir.InsertionPoint(anchor))
                run_nests(range(steps.first, steps.last), shared, bounds)
            self.memory.leave_steps()
            run_nests(range(steps.last, end), shared, bounds)

        def run_blocks(shared: Indices) -> None:
            block, loop, first = self.kernel.block, self.kernel.shared, self.kernel.first
            run_nests(range(first), shared, {outer: bounds[outer] for outer in bounds if outer < loop})
            low, high = bounds_of(loop)
            with self.loop(low, high, block) as start:
                end = arith.MinSIOp(arith.AddIOp(start, self.at.index(block)).result, high).result
                self.memory.block_start = (loop, start)
                run_steps(first, shared, {**bounds, loop: (start, end)})

        def enter(loop: int, shared: Indices) -> None:
            if loop == self.kernel.shared:
                if self.kernel.block:
                    run_blocks(shared)
                else:
                    run_steps(0, shared, bounds)
                return
            low, high = bounds_of(loop)
            with self.loop(low, high, 1) as index:
                enter(loop + 1, [*shared, index])

        enter(0, [])

    def _grid_bounds(self, position: int) -> tuple[mlir.Value, mlir.Value]:
        axis = self.schedule.grid[position]
        extent = self.kernel.nests[-1].loops[axis.loop]
        low = arith.MulIOp(self.at.ids[position], self.at.index(axis.tile)).result
        end = arith.AddIOp(low, self.at.index(axis.tile)).result
        if extent.static is not None and extent.static % axis.tile == 0:
            return low, end
        return low, arith.MinSIOp(end, self.memory.size(extent)).result

    @contextmanager
    def loop(self, low: mlir.Value, high: mlir.Value, step: int) -> Iterator[mlir.Value]:
        """A loop without carried values."""
        op = scf.ForOp(low, high, self.at.index(step))
        with mlir.InsertionPoint(op.body):
            yield op.induction_variable
            scf.YieldOp([])


class NestEmitter(TileBody):
    takes_guards = False
    """Whether it knows about small tiles that stick out of their tensor."""

    def __init__(self, parent: _KernelEmitter, nest: Nest, tile: Tile, bounds: dict[int, tuple]):
        lane_loop = tile.loop if tile.loop in nest.parallel else None
        context = TileContext(parent.memory, tile.unroll_loop, lane_loop)
        super().__init__(parent.memory, nest, context, tile.width if lane_loop is not None else 1)
        self.memory: Memory = parent.memory
        self.parent, self.tile, self.bounds = parent, tile, bounds
        self.pieces = parent.schedule.pieces
        if parent.kernel.block:
            self.pieces[parent.kernel.shared] = parent.kernel.block
        self.whole = self.left = nest.statements
        self.prefetch: PanelPrefetch | None = None
        if parent.schedule.packed and self.lane_loop is not None:
            whole, left = in_panels(nest, parent.schedule.packed_bindings, self.lane_loop, tile.lanes)
            self.whole, self.left = whole.statements, left.statements
            self.prefetch = self._panel_prefetch()
        self.staged: tuple[Access, Access] | None = None
        if parent.schedule.staged:
            source, copy, self.whole = in_scratch(nest, parent.schedule.staged[0], tile)
            self.staged, self.left = (source, copy), self.whole

    def _panel_prefetch(self) -> PanelPrefetch | None:
        inputs = [one for one in self.whole[0].inputs if isinstance(one, Access) and one.lane_stride is not None]
        if len(inputs) != 1:
            return None
        return PanelPrefetch.of(self.nest, inputs[0], self.tile, self.pieces, self.parent.schedule.prefetch)

    def emit(self, indices: Indices) -> None:
        apart = (self.lane_loop, self.tile.unroll_loop, *self.tile.inside)
        plain = [loop for loop in self.nest.parallel if indices[loop] is None and loop not in apart]
        self._enter(plain, indices, self._vector_blocks)

    def _enter(self, plain: Sequence[int], indices: Indices, then: Callable[[Indices], None]) -> None:
        if not plain:
            then(indices)
            return
        low, high = self._bounds(plain[0])
        with self.parent.loop(low, high, 1) as index:
            self._enter(plain[1:], with_index(indices, plain[0], index), then)

    def _bounds(self, loop: int) -> tuple[mlir.Value, mlir.Value]:
        return self.bounds.get(loop) or (self.at.index(0), self.memory.size(self.nest.loops[loop]))

    def _divides(self, loop: int, step: int) -> bool:
        """Whether a loop is whole steps, in every piece of it that a workgroup or a block has."""
        extent = self.nest.loops[loop].static
        return extent is not None and extent % step == 0 and self.pieces.get(loop, step) % step == 0

    def _vector_blocks(self, indices: Indices) -> None:
        def run(inner: Indices, vectors: int, mask: mlir.Value | None, statements: Sequence[Statement]) -> None:
            if self.staged is not None:
                self._stage(*self.staged, Block(inner, 1, vectors, mask))
            self._enter(self.tile.inside, inner, lambda at: self._row_blocks(at, vectors, mask, statements))

        if self.lane_loop is None:
            run(indices, 1, None, self.whole)
            return
        loop, width, vectors = self.lane_loop, self.tile.width, self.tile.vectors
        low, high = self._bounds(loop)
        extent = self.nest.loops[loop].static
        step = width * vectors
        whole = self._divides(loop, step)
        middle = high if whole else self._round_down(low, high, step)
        if extent is None or extent >= step:
            with self.parent.loop(low, middle, step) as index:
                run(with_index(indices, loop, index), vectors, None, self.whole)
        if whole:
            return
        if extent is not None and self.pieces.get(loop, step) % step == 0:  # the last piece alone has something left
            left = extent % step
            mask = self.memory.mask(self.at.index(left % width), width) if left % width else None
            with self.parent.loop(middle, high, step) as index:
                run(with_index(indices, loop, index), -(-left // width), mask, self.left)
            return
        start = middle
        if vectors > 1:  # what is left in single full vectors
            middle = high if self._divides(loop, width) else self._round_down(start, high, width)
            with self.parent.loop(start, middle, width) as index:
                run(with_index(indices, loop, index), 1, None, self.left)
            start = middle
        if self._divides(loop, width):
            return
        with self.parent.loop(start, high, width) as index:
            left = arith.SubIOp(high, index).result
            mask = self.memory.mask(left, width)
            run(with_index(indices, loop, index), 1, mask, self.left)

    def _stage(self, source: Access, copy: Access, block: Block) -> None:
        """Copies the panel that a block of lanes will read for every row."""

        def move(indices: Indices) -> None:
            loads = TileLoads(self.context, replace(block, indices=indices), self.tile.width)
            for vector in range(block.vectors):
                value = loads.get(source, 0, vector)
                self.memory.store(copy.storage, loads.address(copy, 0, vector), value, self.tile.width, Size(1), None)

        self._enter(staged_loops(self.nest, source), block.indices, move)

    def _row_blocks(
        self, indices: Indices, vectors: int, mask: mlir.Value | None, statements: Sequence[Statement]
    ) -> None:
        loop, rows = self.tile.unroll_loop, self.tile.unroll
        if loop is None:
            self._block(Block(indices, 1, vectors, mask), statements)
            return
        low, high = self._bounds(loop)
        extent = self.nest.loops[loop].static
        # Where pieces are not whole blocks, each has a remainder of its own, for which blocks become smaller.
        left = None if extent is None or self.pieces.get(loop, rows) % rows else extent % rows
        middle = high if left == 0 else self._round_down(low, high, rows)
        if extent is None or extent >= rows:
            with self.parent.loop(low, middle, rows) as index:
                self._block(Block(with_index(indices, loop, index), rows, vectors, mask), statements)
        while left is None and rows > 1:
            rows //= 2
            start, middle = middle, self._round_down(middle, high, rows)
            with self.parent.loop(start, middle, rows) as index:
                self._block(Block(with_index(indices, loop, index), rows, vectors, mask), statements)
        if left:
            with self.parent.loop(middle, high, rows) as index:  # runs once, in the piece that has it
                self._block(Block(with_index(indices, loop, index), left, vectors, mask), statements)

    def _round_down(self, low: mlir.Value, high: mlir.Value, step: int) -> mlir.Value:
        """The greatest low + k*step that is not above high."""
        if step == 1:
            return high
        span = arith.SubIOp(high, low).result
        count = arith.DivUIOp(span, self.at.index(step)).result
        return arith.AddIOp(low, arith.MulIOp(count, self.at.index(step)).result).result

    def _reduce(self, statement: Statement, block: Block, made: dict) -> list:
        if self.tile.loop in statement.reductions:
            return self._reduce_across_lanes(statement, block, made)
        if self.tile.dot == 1:
            return super()._reduce(statement, block, made)
        dots, rows, vectors = self._dots(statement), block.rows, block.vectors
        outer = TileLoads(self.context, block, self.width)

        def step(inner: Block, carried: list[mlir.Value]) -> list[mlir.Value]:
            return dots.step(TileLoads(self.context, inner, self.width, outer), carried, rows, vectors)

        first = self._first_values(statement, block, outer) + dots.extras(vectors)
        final = self._run_reductions(statement.reductions, block, first, step, dots.reach)
        return unflatten(dots.finish(final, rows, vectors), len(statement.element_types), rows, vectors)

    def _before_step(self, statement: Statement, loads: TileLoads) -> None:
        if self.prefetch is not None and any(one is self.prefetch.weights for one in statement.inputs):
            first_row, _ = self._bounds(self.prefetch.row_loop)
            self.prefetch.emit(self.memory, loads, first_row)

    def _dots(self, statement: Statement) -> DotEmitter:
        """What multiplies groups of neighbours, as the schedule wants."""
        found = dot_of(statement, self.tile)
        assert not isinstance(found, str), found
        extent = self.nest.loops[found.along].static
        assert extent is not None, "the schedule was checked"
        return DotEmitter(self.memory, self.tile, found, extent)

    def _reduce_across_lanes(self, statement: Statement, block: Block, made: dict) -> list:
        """The vector loop is a reduction: lanes keep partial results that are combined at the end."""
        loop, width, vectors = self.tile.loop, self.tile.width, self.tile.vectors
        combiner = combiner_of(statement.body, len(statement.inputs))
        assert combiner is not None and loop is not None, "the strategy checked this"
        type_ = statement.element_types[0]
        identity = self.memory.splat(self.at.constant(type_, combiner.identity(type_)), width)
        extent = self.memory.size(self.nest.loops[loop])
        outer = [other for other in statement.reductions if other != loop]

        def step(indices: Indices, carried: list[mlir.Value], count: int, mask: mlir.Value | None) -> list[mlir.Value]:
            inner = Block(indices, block.rows, count, mask)
            olds = [[carried[row * vectors : row * vectors + count] for row in range(block.rows)]]
            tile = self._apply(statement, inner, TileLoads(self.context, inner, width, lanes=loop), made, olds)[0]
            updated = list(carried)
            for row in range(block.rows):
                for vector in range(count):
                    new = self.memory.as_width(tile[row][vector], type_, width)
                    old = carried[row * vectors + vector]
                    updated[row * vectors + vector] = new if mask is None else arith.SelectOp(mask, new, old).result
            return updated

        def run(indices: Indices, carried: list[mlir.Value]) -> list[mlir.Value]:
            zero = self.at.index(0)
            middle = self._round_down(zero, extent, width * vectors)
            carried = self._carry(
                zero,
                middle,
                width * vectors,
                carried,
                lambda i, c: step(with_index(indices, loop, i), c, vectors, None),
            )

            def tail(index: mlir.Value, inside: list[mlir.Value]) -> list[mlir.Value]:
                mask = self.memory.mask(arith.SubIOp(extent, index).result, width)
                return step(with_index(indices, loop, index), inside, 1, mask)

            static = self.nest.loops[loop].static
            if static is not None and static % (width * vectors) == 0:
                return carried
            return self._carry(middle, extent, width, carried, tail)

        def nest_loops(loops: list[int], indices: Indices, carried: list[mlir.Value]) -> list[mlir.Value]:
            if not loops:
                return run(indices, carried)
            high = self.memory.size(self.nest.loops[loops[0]])
            return self._carry(
                self.at.index(0),
                high,
                1,
                carried,
                lambda i, c: nest_loops(loops[1:], with_index(indices, loops[0], i), c),
            )

        partial = nest_loops(outer, block.indices, [identity] * (block.rows * vectors))
        olds = self._initial(statement, Block(block.indices, block.rows, 1, None), TileLoads(self.context, block, 1))
        rows = []
        for row in range(block.rows):
            total = combiner.horizontal([partial[row * vectors + v] for v in range(vectors)])
            rows.append([combiner.join(olds[0][row][0], total)])
        return [rows]
