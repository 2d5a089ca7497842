"""From a dispatch function that is a loop over steps to a Kernel: the nests of one step, and what is before and after.

    %r:2 = scf.for %t = 0 to %n iter_args(%h = %h0, %ys = %empty) {
      %x = tensor.extract_slice %xs[%t, 0] [1, 64]         rows that a step reads: a storage with a step
      %new = linalg.generic ins(%x, %h, ...)               nests of a step
      %all = tensor.insert_slice %new into %ys[%t, 0]      rows that a step writes: the result's storage, with a step
      scf.yield %new, %all }                               states: locals; a nest copies what the next step reads

What else a tensor that is carried may be is `Unsupported`, and so is whatever no step of a loop nest can do.
"""

from __future__ import annotations

from dataclasses import replace

from torch_mlir import ir as mlir

from eyas.codegen.common.analyze import NestAnalysis
from eyas.codegen.common.kernel import Kernel, LinearExpr, Nest, Statement, Steps, Storage, Unsupported
from eyas.codegen.common.places import Guarded, Window, kept_dims, whole
from eyas.codegen.common.reshapes import collapse, expand
from eyas.codegen.common.sharing import shared_loops
from eyas.codegen.common.sizes import ONE, ZERO, Size
from eyas.ir.walk import constant_int, defining_op, ops_behind


class StepAnalysis(NestAnalysis):
    def __init__(self, function: mlir.OpView):
        super().__init__(function)
        loops = [op.operation for op in self.block.operations if op.operation.name == "scf.for"]
        if len(loops) != 1:
            raise Unsupported("more than one loop over steps")
        self.loop = loops[0]
        self.body = self.loop.regions[0].blocks[0]
        self.index, *self.carried = self.body.arguments
        self.end = list(self.body.operations)[-1].operation
        self.first = 0
        """The nest with which a step begins; none before it takes anything in."""
        self.returned = dict(self.results)
        self.states: dict[int, Storage] = {}

    def run(self) -> Kernel:
        count = self._count()
        for op in self.block.operations:
            if op.operation != self.loop:
                self._read(op)
                continue
            inserts = {}
            for position, argument in enumerate(self.carried):
                if not isinstance(argument.type, mlir.RankedTensorType):
                    raise Unsupported("a scalar is carried from step to step")
                insert = self._insert(position)
                if insert is None:
                    self._carry(position)
                else:
                    inserts[position] = insert
            self.first = len(self.nests)
            copied = self._place_rows(inserts, count)
            for inner in list(self.body.operations)[:-1]:
                if inner.operation not in inserts.values():
                    self._read(inner)
            for value, storage in copied:
                self._copy_out(value, storage)
            self._copy_states()
            last = len(self.nests)
        for value, storage in self.returned.items():
            if defining_op(value) == self.loop:
                position = list(self.loop.results).index(value)
                if position in self.states:
                    self._copy(whole(self.states[position]), storage)
            elif value not in self.made_by:
                self._copy_out(value, storage)
        scalars = tuple(argument for argument in self.block.arguments if argument in self.constants)
        nests = tuple(self.nests)
        steps = Steps(count, self.first, last, self.index)
        return Kernel(tuple(self.storages), nests, shared_loops(nests), scalars, self.extracted, steps=steps)

    def _count(self) -> Size:
        lower, upper, step = (self.loop.operands[position] for position in range(3))
        if constant_int(lower) != 0 or constant_int(step) != 1:
            raise Unsupported("a loop that does not count from 0 in steps of 1")
        return self._size(upper)

    def _insert(self, position: int) -> mlir.Operation | None:
        """The op that writes a row of a carried tensor, if nothing else is done with it."""
        uses = list(self.carried[position].uses)
        insert = uses[0].owner.operation if len(uses) == 1 else None
        if insert is None or insert.name != "tensor.insert_slice" or uses[0].operand_number != 1:
            return None
        only = list(insert.results[0].uses)
        is_carried = len(only) == 1 and only[0].owner.operation == self.end and only[0].operand_number == position
        return insert if is_carried and insert.block == self.body else None

    def _place_rows(self, inserts: dict[int, mlir.Operation], count: Size) -> list[tuple[mlir.Value, Storage]]:
        """Says where the rows go that a step makes; returns those that must be copied there."""
        copied = []
        for position, insert in inserts.items():
            value, result = insert.operands[0], self.loop.results[position]
            made = self.returned.get(result)
            if made is None:
                continue  # nobody reads them
            start, step = self._row(insert, made, first_dynamic=2)
            if abs(step) != 1 or made.shape[0] != count:
                raise Unsupported("steps that do not write every row of a result once")
            value = _unshaped(value)
            if len(made.shape) != value.type.rank + 1 and not value.type.has_static_shape:
                raise Unsupported("rows of a result that are no rows")
            stride = made.strides[0]
            shape = tuple(map(Size, value.type.shape)) if value.type.has_static_shape else made.shape[1:]
            row = replace(made, shape=shape, start=tuple(size * stride for size in start), step=stride * step)
            self.storages.append(row)
            owner = defining_op(value)
            is_made = owner is not None and owner.name == "linalg.generic" and owner.block == self.body
            if is_made and value not in self.results:
                self.results[value] = row
            else:
                copied.append((value, row))
        return copied

    def _row(self, op: mlir.Operation, storage: Storage, first_dynamic: int) -> tuple[tuple[Size, ...], int]:
        """Which row of a tensor a slice is: `start + step * index`."""
        dynamic = iter(list(op.operands)[first_dynamic:])
        unknown = mlir.ShapedType.get_dynamic_size()
        offsets, sizes, strides = (
            [
                next(dynamic) if one == unknown else one
                for one in mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])
            ]
            for name in ("offsets", "sizes", "strides")
        )
        lengths = [Size(one) if isinstance(one, int) else self._size(one) for one in sizes]
        if offsets[1:] != [0] * (len(offsets) - 1) or set(strides) != {1} or lengths != [ONE, *storage.shape[1:]]:
            raise Unsupported("a step writes something else than a row")
        return self._linear(offsets[0])

    def _linear(self, value: mlir.Value | int) -> tuple[tuple[Size, ...], int]:
        """An index as a sum of sizes, and how much it grows from step to step."""
        if value == self.index:
            return (), 1
        if isinstance(value, int):
            return (Size(value),), 0
        owner = defining_op(value)
        if owner is None or owner.block != self.body or constant_int(value) is not None:
            return self._outside(value), 0
        if owner.name in ("arith.addi", "arith.subi"):
            sign = 1 if owner.name == "arith.addi" else -1
            (left, grows), (right, shrinks) = (self._linear(operand) for operand in owner.operands)
            return (*left, *(size * sign for size in right)), grows + sign * shrinks
        raise Unsupported(f"rows that are chosen by {owner.name}")

    def _outside(self, value: mlir.Value) -> tuple[Size, ...]:
        """An index from outside of the loop as a sum of sizes."""
        owner = defining_op(value)
        if owner is None or value in self.constants or constant_int(value) is not None:
            return (self._size(value),)
        if owner.name in ("arith.addi", "arith.subi"):
            left, right = (self._outside(operand) for operand in owner.operands)
            return (*left, *(size * (1 if owner.name == "arith.addi" else -1) for size in right))
        return (self._size(value),)

    def _carry(self, position: int) -> None:
        """A state is a local, which holds its first value before the first step."""
        argument, start = self.carried[position], self.loop.operands[3 + position]
        if start not in self.places:
            raise Unsupported("a state begins as a computed tensor")
        storage = Storage(f"state{position}", argument.type.element_type, self.shape_of_place(start))
        self.states[position] = storage
        self.places[argument] = whole(storage)
        self._copy_out(start, storage)

    def _copy_states(self) -> None:
        """After everything else of a step, so that no nest reads a state of the next one. What is a state already, or a
        part of one, is kept elsewhere until all of them have been read."""
        kept: dict[int, Storage] = {}
        following = {position: self.end.operands[position] for position in self.states}
        for position, value in following.items():
            if value != self.carried[position] and self._reads_states(self.places.get(value)):
                kept[position] = replace(self.states[position], name=f"kept{position}")
                self._copy_out(value, kept[position])
        for position, value in following.items():
            if position in kept:
                self._copy(whole(kept[position]), self.states[position])
            elif value != self.carried[position]:
                self._copy_out(value, self.states[position])

    def _reads_states(self, place: object) -> bool:
        """Whether what is in a place is in a state."""
        if isinstance(place, Guarded):
            return self._reads_states(place.inner) or self._reads_states(place.otherwise)
        return isinstance(place, Window) and any(place.storage is state for state in self.states.values())

    def _copy(self, source: Window, storage: Storage) -> None:
        order = list(range(len(storage.shape)))
        expr = [LinearExpr({dim: 1}, 0) for dim in order]
        read, written = (self.access_window(window, expr, order) for window in (source, whole(storage)))
        loops = {dim: dim for dim in order}
        self.nests.append(Nest(storage.shape, (Statement(None, (read,), (written,), (None,), (), loops),)))

    def visit(self, op: mlir.OpView) -> bool:
        if op.operation.name not in ("tensor.collapse_shape", "tensor.expand_shape"):
            return super().visit(op)
        source, type_ = self.places.get(op.operands[0]), op.result.type
        groups = [[mlir.IntegerAttr(dim).value for dim in group] for group in op.attributes["reassociation"]]
        if source is None:
            raise Unsupported("a computed tensor has another shape")
        if op.operation.name == "tensor.collapse_shape":
            self.places[op.result] = collapse(source, groups)
        else:
            self.places[op.result] = expand(source, groups, self._shape_from(type_, list(op.operands)[1:]))
        return True

    def _visit_extract_slice(self, op: mlir.OpView) -> None:
        """Rows that the step chooses are another storage in the same place; other slices are windows."""
        place = self.places.get(op.operands[0])
        dynamic = [value for value in list(op.operands)[1:] if self._grows(value)]
        if not dynamic:
            super()._visit_extract_slice(op)
            return
        if not isinstance(place, Window) or place.storage.binding is None or place.storage.step != ZERO:
            raise Unsupported("rows of a computed tensor")
        operands = iter(list(op.operands)[1:])
        unknown = mlir.ShapedType.get_dynamic_size()
        offsets, sizes, strides = (
            [
                next(operands) if one == unknown else one
                for one in mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])
            ]
            for name in ("offsets", "sizes", "strides")
        )
        start, step = [], ZERO
        for offset, stride in zip(offsets, place.strides, strict=True):
            terms, grows = self._linear(offset)
            start += [stride * term for term in terms if term != ZERO]
            moved = step.plus(stride * grows)
            if moved is None:
                raise Unsupported("a step moves through two dynamic dimensions at once")
            step = moved
        storage = replace(place.storage, start=tuple(start), step=step)
        self.storages.append(storage)
        lengths = [Size(one) if isinstance(one, int) else self._size(one) for one in sizes]
        steps = [
            stride * (Size(one) if isinstance(one, int) else self._size(one))
            for one, stride in zip(strides, place.strides, strict=True)
        ]
        kept = kept_dims(op.operands[0].type, op.result.type, lengths)
        self.places[op.result] = Window(
            storage, tuple(lengths[dim] for dim in kept), place.offset, tuple(steps[dim] for dim in kept)
        )

    def _grows(self, value: mlir.Value) -> bool:
        """Whether an index depends on the number of the step."""
        behind = ops_behind(value, lambda op: op.block == self.body)
        return value == self.index or any(op.block == self.body and self.index in op.operands for op in behind)

    def _fuse_into_registers(self, *arguments: object) -> bool:
        return len(self.nests) > self.first and super()._fuse_into_registers(*arguments)  # type: ignore[arg-type]


def _unshaped(value: mlir.Value) -> mlir.Value:
    """What a tensor of static shape is before it was given another one: in memory they are the same."""
    owner = defining_op(value)
    while owner is not None and owner.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        if not mlir.RankedTensorType(owner.operands[0].type).has_static_shape:
            break
        value = owner.operands[0]
        owner = defining_op(value)
    return value
