"""Emits a kernel as tile instructions, following a schedule.

As for machine code there is one mechanism for everything: loops outside, a tile inside. A tile has rows along one loop
and columns along another; its extents are numbers at run time, the least of what is left and of what the machine issues
at a time, so there are no masks and no code for what is left over. Either loop may be a reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir

from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.kernel import Access, Kernel, Nest, Statement, Unsupported
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.vmvx import body
from eyas.codegen.vmvx.builder import Builder, Scalar
from eyas.codegen.vmvx.builder import Tile as Value
from eyas.codegen.vmvx.memory import Memory, View
from eyas.codegen.vmvx.types import is_bool, rounding, tile_type
from eyas.ir.walk import defining_op
from eyas.module.vmvx_isa import MAX_ELEMENTS, UNIT_COLUMNS, UNIT_ROWS, Type, modes

UNIT = UNIT_ROWS * UNIT_COLUMNS
Bounds = dict[int, tuple[Scalar, Scalar]]


class KernelEmitter:
    """Writes the whole function; `emitters` say how each nest is written."""

    def __init__(self, kernel: Kernel, schedule: Schedule, builder: Builder, emitters: Sequence[type[NestEmitter]]):
        self.kernel, self.schedule, self.builder, self.emitters = kernel, schedule, builder, emitters
        self.memory = Memory(kernel, builder)
        self.capacity = builder.mul(builder.scalar("width"), builder.const(UNIT))

    def emit(self) -> None:
        kernel, builder = self.kernel, self.builder
        bounds = {axis.loop: self._grid_bounds(position) for position, axis in enumerate(self.schedule.grid)}
        loops = kernel.nests[-1].loops if kernel.nests else []
        work = list(zip(kernel.nests, self.schedule.tiles, self.emitters, strict=True))

        def bounds_of(loop: int) -> tuple[Scalar, Scalar]:
            return bounds.get(loop) or (builder.const(0), self.memory.size(loops[loop]))

        def run(numbers: range, indices: list[Scalar], inside: Bounds) -> None:
            for nest, tile, emitter in work[numbers.start : numbers.stop]:
                view = View(tuple([*indices, *[None] * (len(nest.loops) - len(indices))]))
                emitter(self, nest, tile, inside).emit(view)

        def run_steps(first: int, indices: list[Scalar], inside: Bounds) -> None:
            steps, end = kernel.steps, len(work)
            if steps is None:
                run(range(first, end), indices, inside)
                return
            run(range(first, steps.first), indices, inside)
            with builder.loop(builder.const(0), self.memory.size(steps.count), builder.const(1), False) as index:
                self.memory.step = (steps.index, index)
                run(range(steps.first, steps.last), indices, inside)
            self.memory.step = None
            run(range(steps.last, end), indices, inside)

        def enter(loop: int, indices: list[Scalar]) -> None:
            if loop < kernel.shared:
                low, high = bounds_of(loop)
                with builder.loop(low, high, builder.const(1), loop in bounds) as index:
                    enter(loop + 1, [*indices, index])
            elif not kernel.block:
                run_steps(0, indices, bounds)
            else:
                run(range(kernel.first), indices, {outer: bounds[outer] for outer in bounds if outer < loop})
                low, high = bounds_of(loop)
                block = builder.const(kernel.block)
                with builder.loop(low, high, block, loop in bounds) as start:
                    end = builder.min(builder.add(start, block), high)
                    self.memory.block_start = (loop, start)
                    run_steps(kernel.first, indices, {**bounds, loop: (start, end)})

        enter(0, [])

    def _grid_bounds(self, position: int) -> tuple[Scalar, Scalar]:
        axis, builder = self.schedule.grid[position], self.builder
        extent = self.kernel.nests[-1].loops[axis.loop]
        low = builder.mul(builder.scalar("workgroup", position), builder.const(axis.tile))
        end = builder.add(low, builder.const(axis.tile))
        if extent.static is not None and extent.static % axis.tile == 0:
            return low, end
        return low, builder.min(end, self.memory.size(extent))


class NestEmitter:
    """One nest: loops, a tile, the statements of the nest on it."""

    takes_guards = False
    """Whether it knows about tiles that stick out of their tensor."""

    def __init__(self, parent: KernelEmitter, nest: Nest, tile: Tile, bounds: Bounds):
        self.parent, self.nest, self.tile, self.bounds = parent, nest, tile, bounds
        self.builder, self.memory = parent.builder, parent.memory
        self.pieces = parent.schedule.pieces
        if parent.kernel.block:
            self.pieces[parent.kernel.shared] = parent.kernel.block
        if nest.guards and not self.takes_guards:
            raise Unsupported("tiles that stick out of their tensor")

    def emit(self, view: View) -> None:
        lane, row = self.tile.loop, self.tile.unroll_loop
        columns = lane if lane in self.nest.parallel else None
        rows = row if row in self.nest.parallel else None
        apart = (columns, rows, *self.tile.inside)
        plain = [loop for loop in self.nest.parallel if view.indices[loop] is None and loop not in apart]
        most_rows, most_columns = self._tile_sizes()

        def row_blocks(outer: View) -> None:
            self._blocks(rows, most_rows, outer, View.with_rows, self._block)

        def inside(outer: View) -> None:
            self._enter(self.tile.inside, outer, row_blocks)

        self._enter(plain, view, lambda outer: self._blocks(columns, most_columns, outer, View.with_columns, inside))

    def _enter(self, loops: Sequence[int], view: View, then: Callable[[View], None]) -> None:
        if not loops:
            then(view)
            return
        low, high = self._bounds(loops[0])
        with self.builder.loop(low, high, self.builder.const(1), loops[0] in self.bounds) as index:
            self._enter(loops[1:], view.at(loops[0], index), then)

    def _blocks(
        self, loop: int | None, most: Scalar, view: View, cut: Callable[[View, int, Scalar, Scalar], View],
        then: Callable[[View], None],
    ) -> None:  # fmt: skip
        """A loop in pieces of at most so many points."""
        if loop is None:
            then(view)
            return
        low, high = self._bounds(loop)
        with self.builder.loop(low, high, most, loop in self.bounds) as start:
            then(cut(view, loop, start, self._piece(loop, start, most, high)))

    def _piece(self, loop: int, start: Scalar, most: Scalar, high: Scalar) -> Scalar:
        """How many points there are from `start` on."""
        extent = self.nest.loops[loop].static
        if most.constant and extent is not None:
            piece = self.pieces.get(loop, extent)
            if extent % most.constant == 0 and piece % most.constant == 0:
                return most
        return self.builder.min(most, self.builder.sub(high, start))

    def _bounds(self, loop: int) -> tuple[Scalar, Scalar]:
        return self.bounds.get(loop) or (self.builder.const(0), self.memory.size(self.nest.loops[loop]))

    def _span(self, loop: int) -> Scalar:
        """How many points of a loop there are at most for one workgroup (or block)."""
        extent, piece = self.nest.loops[loop], self.pieces.get(loop)
        if piece is None:
            return self.memory.size(extent)
        return self.builder.const(piece if extent.static is None else min(piece, extent.static))

    def _tile_sizes(self) -> tuple[Scalar, Scalar]:
        """The most rows and columns of a tile: as many columns as fit beside the rows that are wanted, then as many
        rows as fit beside those columns, in pieces of one size."""
        builder, capacity = self.builder, self.parent.capacity
        lane, row = self.tile.loop, self.tile.unroll_loop
        columns = builder.const(1)
        if lane is not None:
            wanted = self.tile.unroll if row is not None else 1
            columns = self._span(lane)
            if columns.constant is None or columns.constant > UNIT // wanted:
                columns = builder.min(columns, builder.div(capacity, builder.const(wanted)))
        columns = builder.max(columns, builder.const(1))
        if row is None:
            return builder.const(1), columns
        return self._even_rows(self._span(row), columns), columns

    def _even_rows(self, rows: Scalar, columns: Scalar) -> Scalar:
        """Rows that fit beside the columns, so that tiles are few and of nearly one size."""
        builder, one = self.builder, self.builder.const(1)
        if rows.constant is not None and columns.constant is not None and rows.constant * columns.constant <= UNIT:
            return builder.max(rows, one)
        fitting = builder.max(builder.div(self.parent.capacity, columns), one)
        pieces = builder.max(builder.div(builder.sub(builder.add(rows, fitting), one), fitting), one)
        even = builder.div(builder.sub(builder.add(rows, pieces), one), pieces)
        return builder.max(builder.min(even, fitting), one)

    # Statements.

    def _block(self, view: View) -> None:
        """All statements of the nest for one tile."""
        made: dict[tuple[int, int], Value] = {}
        for position, statement in enumerate(self.nest.statements):
            if statement.reductions:
                values = self._reduce(statement, view, made)
            else:
                values = self._apply(statement, view, made, self._initial(statement, view))
            for output, access in enumerate(statement.outputs):
                made[position, output] = values[output]
                if access is not None:
                    self.memory.store(access, values[output], view, self.nest.loops)

    def _initial(self, statement: Statement, view: View) -> list[Value | None]:
        """Values of the output arguments before the body runs."""
        return [
            None
            if init is None
            else self.memory.load(init, view)
            if isinstance(init, Access)
            else self.memory.scalar(init)
            for init in statement.inits
        ]

    def _apply(
        self, statement: Statement, view: View, made: dict[tuple[int, int], Value], olds: list[Value | None],
        wanted: mlir.Value | None = None,
    ) -> list[Value]:  # fmt: skip
        """What the body yields for each element of the tile, or one value of it."""
        arguments: list[Value | None] = []
        for source in statement.inputs:
            if isinstance(source, Access):
                arguments.append(self.memory.load(source, view))
            elif isinstance(source, tuple):
                arguments.append(made[source])
            else:
                arguments.append(None if source is None else self.memory.scalar(source))

        def index(dim: int) -> Value:
            return self.memory.index(statement.loop_of_index[dim], view)

        def within(position: mlir.Value, size: Size) -> bool:
            """Whether a position is the index of a loop that stays below a size."""
            owner = defining_op(position)
            if owner is None or owner.name != "linalg.index":
                return False
            loop = statement.loop_of_index[owner.attributes["dim"].value]
            extent = Size(1) if loop is None else self.nest.loops[loop]
            return extent == size or (extent.is_static and size.is_static and extent.factor <= size.factor)

        def gather(op: mlir.Operation, indices: list[Value]) -> Value:
            return self.memory.gather(op, indices, within)

        place = body.Place(self.builder, index, self.memory.scalar, gather)
        return body.evaluate(statement.body, [*arguments, *olds], place, wanted)

    # Reductions.

    def _reduce(self, statement: Statement, view: View, made: dict[tuple[int, int], Value]) -> list[Value]:
        """Loops over the reductions around a tile; those that are in the tile are folded in it."""
        builder = self.builder
        inside = [loop for loop in (self.tile.unroll_loop, self.tile.loop) if loop in statement.reductions]
        outside = [loop for loop in statement.reductions if loop not in inside]
        combiner = combiner_of(statement.body, len(statement.inputs))
        if inside and combiner is None:
            raise Unsupported("a reduction whose parts cannot be combined")
        totals = []
        for old, type_ in zip(self._initial(statement, view), statement.element_types, strict=True):
            total = builder.variable(tile_type(type_), view.rows, view.columns)
            if old is not None:  # else the body does not read it: the last step is the result
                builder.assign(total, old)
            totals.append(total)

        def step(inner: View) -> None:
            if combiner is None:
                self._step(statement, inner, made, totals)
            else:
                self._combine(statement, inner, made, totals[0], bool(inside))

        def lanes(inner: View) -> None:
            if self.tile.loop in inside:
                self._blocks(self.tile.loop, most_columns, inner, View.with_columns, step)
            else:
                step(inner)

        def rows(inner: View) -> None:
            if self.tile.unroll_loop in inside:
                self._blocks(self.tile.unroll_loop, most_rows, inner, View.with_rows, lanes)
            else:
                lanes(inner)

        most_rows, most_columns = self._tile_sizes()
        self._enter(outside, view, rows)
        return totals

    def _step(self, statement: Statement, view: View, made: dict, totals: list[Value]) -> None:
        """Any body: the new values take the place of the old ones."""
        values = self._apply(statement, view, made, list(totals))
        taken = [
            body.full(self.builder, value, total.rows, total.columns)
            if value not in totals
            else self.builder.tile("tmov", value.type, value, extra=(int(value.type),))
            for value, total in zip(values, totals, strict=True)
        ]
        for total, value in zip(totals, taken, strict=True):
            self.builder.assign(total, value)

    def _combine(self, statement: Statement, view: View, made: dict, total: Value, folds: bool) -> None:
        """A body that combines something with the old value: that is made, folded in the tile, and combined."""
        builder = self.builder
        assert statement.body is not None
        old = list(statement.body.arguments)[len(statement.inputs)]
        combine = defining_op(list(statement.body.operations)[-1].operands[0])
        assert combine is not None
        (added,) = (operand for operand in combine.operands if operand != old)
        type_ = statement.element_types[0]
        text = total.type.name.lower()
        if not folds and combine.name == "arith.addf" and rounding(type_) is None:
            product = defining_op(added)
            if product is not None and product.name == "arith.mulf":
                left, right = (self._apply(statement, view, made, [total], one)[0] for one in product.operands)
                shape = modes(total.extent, left.extent, right.extent, total.extent)
                builder.change(total, f"tfma_{text}", (left, right, total, shape))
                return
        (value,) = self._apply(statement, view, made, [total], added)
        table = body.BINARY_OF_BOOLS if is_bool(type_) else body.BINARY
        name = table[combine.name]
        if folds:
            value = body.full(builder, value, view.rows, view.columns)
            for axis, (mine, whole) in ((1, (total.columns, view.columns)), (0, (total.rows, view.rows))):
                if mine is not whole:
                    value = body.reduce(builder, name, value, axis)
        kind = "f" if total.type in (Type.F32, Type.F64) else "i"
        shape = modes(total.extent, total.extent, value.extent)
        builder.change(total, f"t{kind}{name}_{text}", (total, value, shape))
        if (rounded := rounding(type_)) is not None:
            builder.change(total, rounded, (total, modes(total.extent, total.extent)))


def emit_kernel(
    kernel: Kernel, schedule: Schedule, builder: Builder, emitters: Sequence[type[NestEmitter]] | None = None
) -> None:
    """Writes a kernel; raises Unsupported with the reason where tiles cannot say it."""
    KernelEmitter(kernel, schedule, builder, emitters or [NestEmitter] * len(kernel.nests)).emit()


assert UNIT * 8 == MAX_ELEMENTS
