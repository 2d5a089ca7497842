"""Loads and stores of tiles: accesses of a kernel's loops as addresses, strides and boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Access, Guard, Kernel, Storage, Unsupported
from eyas.codegen.common.sizes import ONE, ZERO, Size, product
from eyas.codegen.vmvx.body import constant_bits, run_op
from eyas.codegen.vmvx.builder import Builder, Scalar, Tile, extent_of
from eyas.codegen.vmvx.types import element_bytes, is_bool, memory_type, tile_type
from eyas.module.vmvx_isa import TYPE_BYTES, Type, modes
from eyas.module.vmvx_isa import Memory as Stored


@dataclass(frozen=True)
class View:
    """The tile that instructions work on: a row loop and a lane loop with their extents, and the indices of all loops,
    those of the two being where the tile begins. Without an extent a loop of the tile is not (or no longer) in it."""

    indices: tuple[Scalar | None, ...]
    row: int | None = None
    lane: int | None = None
    rows: Scalar | None = None
    columns: Scalar | None = None

    def at(self, loop: int, index: Scalar) -> View:
        indices = list(self.indices)
        indices[loop] = index
        return replace(self, indices=tuple(indices))

    def with_rows(self, loop: int, index: Scalar, count: Scalar) -> View:
        return replace(self.at(loop, index), row=loop, rows=None if count.constant == 1 else count)

    def with_columns(self, loop: int, index: Scalar, count: Scalar) -> View:
        return replace(self.at(loop, index), lane=loop, columns=None if count.constant == 1 else count)


class Memory:
    def __init__(self, kernel: Kernel, builder: Builder):
        self.kernel, self.builder = kernel, builder
        self.bases: dict[int, Scalar] = {}
        self.kept: list[Storage] = []
        """Storages that emitters made; they are known by their identity."""
        self.scalars: dict[mlir.Value, Tile] = {}
        self.step: tuple[mlir.Value, Scalar] | None = None
        """The value that counts steps in the dispatch function, and here."""
        self.block_start: tuple[int, Scalar] | None = None
        """The loop that runs in blocks, and where the block begins that locals hold."""
        self.written = {
            id(output.storage)
            for nest in kernel.nests
            for statement in nest.statements
            for output in statement.outputs
            if output is not None
        }

    # Numbers of the dispatch.

    def size(self, size: Size) -> Scalar:
        """A symbolic size."""
        value = self.builder.const(size.factor)
        for symbol in size.symbols:
            value = self.builder.mul(value, self.builder.scalar("constant", symbol))
        return value

    def scalar(self, value: mlir.Value) -> Tile:
        """A scalar of the dispatch function, as a tile of one element."""
        if value not in self.scalars:
            self.scalars[value] = self._scalar(value)
        return self.scalars[value]

    def _scalar(self, value: mlir.Value) -> Tile:
        if value in self.kernel.scalar_arguments:
            ordinal = list(self.kernel.scalar_arguments).index(value)
            return self.builder.fill(self.builder.scalar("constant", ordinal), tile_type(value.type))
        if self.step is not None and value == self.step[0]:
            return self.builder.fill(self.step[1], tile_type(value.type))
        owner = value.owner
        if isinstance(owner, mlir.Block):
            raise Unsupported("a body reads an argument that is not a number")
        if owner.name == "arith.constant":
            return self.builder.fill(
                constant_bits(self.builder, owner.attributes["value"], value.type), tile_type(value.type)
            )
        return run_op(owner.operation, [self.scalar(operand) for operand in owner.operands], self.builder)

    def scalar_bits(self, value: mlir.Value) -> Scalar:
        """A scalar of the dispatch function, in a scalar register."""
        owner = value.owner
        if not isinstance(owner, mlir.Block) and owner.name == "arith.constant":
            return constant_bits(self.builder, owner.attributes["value"], value.type)
        tile = self.scalar(value)
        return self.builder.scalar("textract", tile, self.builder.const(0), int(tile.type))  # type: ignore[arg-type]

    # Addresses.

    def base(self, storage: Storage) -> Scalar:
        if storage.binding is not None:
            return self.builder.scalar("binding", storage.binding)
        if id(storage) not in self.bases:
            count = product(storage.shape) * element_bytes(storage.element)
            self.bases[id(storage)] = self.builder.local(self.builder.max(self.size(count), self.builder.const(64)))
        return self.bases[id(storage)]

    def address(self, access: Access, view: View) -> Scalar:
        """Where the tile's first element is."""
        builder, each = self.builder, element_bytes(access.storage.element)
        result = self.base(access.storage)
        for offset in (*access.offset, *access.storage.start):
            result = builder.add(result, self.size(offset * each))
        terms: list[tuple[Scalar, Scalar]] = []
        if access.storage.step != ZERO:
            assert self.step is not None, "rows of steps outside of them"
            terms.append((self.step[1], self.size(access.storage.step * each)))
        for loop, stride in enumerate(access.strides):
            index = view.indices[loop] if loop < len(view.indices) else None
            if stride == ZERO or index is None:
                continue
            terms.append((self.index_in(access.storage, loop, index), self.size(stride * each)))
        # What changes least is added first, so that it need not be added again.
        for index, step in sorted(terms, key=lambda term: max(term[0].scope.depth, term[1].scope.depth)):
            if index.constant is not None or step.constant == 1:
                result = builder.add(result, builder.mul(index, step))
            else:
                result = builder.scalar("madd", index, step, result)
        return result

    def index_in(self, storage: Storage, loop: int, index: Scalar) -> Scalar:
        """A loop's index as a storage counts it: locals begin with the block."""
        if self.block_start is None or self.block_start[0] != loop or not storage.in_blocks:
            return index
        return self.builder.sub(index, self.block_start[1])

    def steps(self, access: Access, view: View) -> tuple[Scalar, Scalar]:
        """Bytes from row to row and from column to column."""
        each, zero = element_bytes(access.storage.element), self.builder.const(0)
        rows = zero if view.row is None else self.size(access.strides[view.row] * each)
        columns = zero if view.lane is None else self.size(access.stride_of_lanes(view.lane) * each)
        return rows, columns

    # Loads and stores.

    def load(self, access: Access, view: View, again: bool = False) -> Tile:
        """The tile's elements; `again` where they are not to be kept since they were loaded before."""
        value = self._load(access, view, again)
        if not is_bool(access.storage.element):
            return value
        zero = self.builder.fill(self.builder.const(0), Type.I8)
        return self.builder.tile("ticmp_ne_i8", Type.I8, value, zero)

    def _load(self, access: Access, view: View, again: bool = False) -> Tile:
        if access.storage.values is not None:
            raise Unsupported("a constant matrix is read")
        element = access.storage.element
        rows, columns = _dims(access, view)
        row_bytes, column_bytes = self.steps(access, view)
        if access.guards:
            return self._load_guarded(access, view, rows, columns, again)
        stays = again or id(access.storage) in self.written
        operands = (
            self.address(access, view),
            row_bytes if rows is not None else self.builder.const(0),
            column_bytes if columns is not None else self.builder.const(0),
            int(memory_type(element)),
            modes(extent_of(rows, columns)),
        )
        return self.builder.pure("tload", tile_type(element), rows, columns, operands, stays=stays)

    def _load_guarded(
        self, access: Access, view: View, rows: Scalar | None, columns: Scalar | None, again: bool = False
    ) -> Tile:
        builder, element = self.builder, access.storage.element
        one = builder.const(1)
        shape = (rows or one, columns or one)
        box = self.box(access.guards, view, *shape)
        other = access.otherwise
        outside = self.scalar_bits(other) if isinstance(other, mlir.Value) else builder.const(0)
        row_bytes, column_bytes = self.steps(access, view)
        stays = again or id(access.storage) in self.written
        inside = builder.pure(
            "tload_inside", tile_type(element), rows, columns,
            (self.address(access, view), row_bytes, column_bytes, *box, outside, int(memory_type(element))),
            shape, stays,
        )  # fmt: skip
        if not isinstance(other, Access):
            return inside
        ones, zero = builder.data(b"\x01" * 64), builder.const(0)
        mask = builder.pure(
            "tload_inside", Type.I8, rows, columns, (ones, zero, zero, *box, zero, int(Stored.I8)), shape
        )
        return builder.tile(
            "tpick", inside.type, mask, inside, self._load(other, view), extra=(TYPE_BYTES[inside.type],)
        )

    def box(
        self, guards: tuple[Guard, ...], view: View, rows: Scalar, columns: Scalar
    ) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """The rows and columns of a tile that are inside of all guards: from and to, each."""
        builder, zero = self.builder, self.builder.const(0)
        first, end = [zero, zero], [rows, columns]
        for guard in guards:
            base = builder.const(guard.shift)
            terms = [
                (index, coefficient)
                for loop, coefficient in enumerate(guard.coefficients)
                if coefficient and (index := view.indices[loop]) is not None
            ]
            for index, coefficient in sorted(terms, key=lambda term: term[0].scope.depth):
                base = builder.add(base, builder.mul(index, builder.const(coefficient)))
            extent = self.size(guard.extent)
            along = [
                guard.coefficients[loop] if loop is not None and count is not None else 0
                for loop, count in ((view.row, view.rows), (view.lane, view.columns))
            ]
            if all(along) or min(along) < 0:
                raise Unsupported("a guard that changes along rows and columns at once")
            if not any(along):
                inside = builder.scalar("ltu", base, extent)
                end[0] = builder.scalar("select", inside, end[0], zero)
                continue
            axis = 0 if along[0] else 1
            low = builder.ceil_div(builder.sub(zero, base), along[axis])
            high = builder.ceil_div(builder.sub(extent, base), along[axis])
            first[axis] = builder.max(first[axis], low)
            end[axis] = builder.min(end[axis], high)
        return first[0], end[0], first[1], end[1]

    def store(self, access: Access, tile: Tile, view: View, loops: Sequence[Size]) -> None:
        """Writes a tile, repeated to the whole view. `loops` are the extents of the nest's loops."""
        target = extent_of(view.rows, view.columns)
        row_bytes, column_bytes = self.steps(access, view)
        memory, distinct = int(memory_type(access.storage.element)), int(is_distinct(access, view, loops))
        address = self.address(access, view)
        operands = (tile, address, row_bytes, column_bytes, memory, modes(target, tile.extent), distinct)
        self.builder.effect("tstore", operands, (view.rows, view.columns))

    # Positions.

    def index(self, loop: int | None, view: View) -> Tile:
        """The index of a loop at each element."""
        builder, zero, one = self.builder, self.builder.const(0), self.builder.const(1)
        start = zero if loop is None else view.indices[loop]
        assert start is not None
        along_rows = loop is not None and loop == view.row and view.rows is not None
        along_columns = loop is not None and loop == view.lane and view.columns is not None
        if not along_rows and not along_columns:
            return builder.fill(start, Type.I64)
        rows, columns = (view.rows, None) if along_rows else (None, view.columns)
        operands = (start, one if along_rows else zero, one if along_columns else zero, modes(extent_of(rows, columns)))
        made = builder.pure("tindex", Type.I64, rows, columns, operands)
        made.counts_from = start if along_columns else None
        return made

    def gather(self, op: mlir.Operation, indices: list[Tile], within: Callable[[mlir.Value, Size], bool]) -> Tile:
        """A tensor's elements at computed positions, each clamped into its dimension unless it is known to be `within`.

        Where the last position counts along the columns and no other one does, rows are loaded as they are.
        """
        builder = self.builder
        storage = self.kernel.tensors[op.operands[0]]
        total: Tile | None = None
        neighbours: Tile | None = None
        for position, (index, size, stride) in enumerate(zip(indices, storage.shape, storage.strides, strict=True)):
            if size == ONE:
                continue
            is_within = within(op.operands[1 + position], size)
            if is_within and stride == ONE and index.counts_from is not None and (total is None or not total.columns):
                neighbours = index
                continue
            if not is_within:
                last = self._splat(builder.sub(self.size(size), builder.const(1)))
                index = builder.tile("timins_i64", Type.I64, index, last)
                index = builder.tile("timaxs_i64", Type.I64, index, self._splat(builder.const(0)))
            if stride != ONE:
                index = builder.tile("timul_i64", Type.I64, index, self._splat(self.size(stride)))
            total = index if total is None else builder.tile("tiadd_i64", Type.I64, total, index)
        total = total or self._splat(builder.const(0))
        element, memory = tile_type(storage.element), int(memory_type(storage.element))
        if neighbours is None:
            operands = (self.base(storage), total, memory, modes(total.extent, total.extent))
            value = builder.pure("tgather", element, total.rows, total.columns, operands)
        else:
            assert neighbours.counts_from is not None
            each = builder.const(element_bytes(storage.element))
            start = builder.add(self.base(storage), builder.mul(neighbours.counts_from, each))
            shape = (total.rows or builder.const(1), neighbours.columns)
            value = builder.pure("tload_rows", element, total.rows, neighbours.columns, (start, total, memory), shape)
        if is_bool(storage.element):
            value = builder.tile("ticmp_ne_i8", Type.I8, value, builder.fill(builder.const(0), Type.I8))
        return value

    def _splat(self, value: Scalar) -> Tile:
        return self.builder.fill(value, Type.I64)


def is_distinct(access: Access, view: View, loops: Sequence[Size]) -> bool:
    """Whether the elements of a tile are known to have places of their own: one loop of the tile steps over all that
    the other reaches."""
    along = [
        (access.strides[loop], loops[loop])
        for loop, count in ((view.row, view.rows), (view.lane, view.columns))
        if loop is not None and count is not None
    ]
    if any(stride == ZERO or stride.factor < 0 for stride, _ in along):
        return False
    if len(along) < 2:
        return True
    (row, rows), (lane, columns) = along
    return _steps_over(row, lane * columns) or _steps_over(lane, row * rows)


def _steps_over(stride: Size, reach: Size) -> bool:
    return stride == reach or (stride.is_static and reach.is_static and stride.factor >= reach.factor)


def _dims(access: Access, view: View) -> tuple[Scalar | None, Scalar | None]:
    """The extents of the tile along which an access changes."""
    found: list[Scalar | None] = []
    for loop, count in ((view.row, view.rows), (view.lane, view.columns)):
        found.append(
            count if loop is not None and count is not None and _changes(access, loop, loop == view.lane) else None
        )
    return found[0], found[1]


def _changes(access: Access, loop: int, is_lane: bool) -> bool:
    stride = access.stride_of_lanes(loop) if is_lane else access.strides[loop]
    if stride != ZERO or any(guard.coefficients[loop] for guard in access.guards):
        return True
    return isinstance(access.otherwise, Access) and _changes(access.otherwise, loop, is_lane)
