"""Functions that the host program runs: steps of loops, branches. Their instructions become part of the caller's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from torch_mlir import ir as mlir
from torch_mlir.dialects import cf

from eyas.dialects import hal, stream, vm
from eyas.ir.dialect import integers
from eyas.ir.walk import entry_block, nested_operands
from eyas.module.isa import Element
from eyas.passes.schedule.plan_memory import ARENA_BYTES, LOWER_BOUND_BYTES
from eyas.passes.vm.loop_steps import Emitter, LoopSteps, part_of

# What a step does: the rest of it is done once.
_IN_EACH_STEP = ("hal.argument", "hal.result", "hal.submit", "hal.load", "hal.loop", "hal.branch", "hal.while")
_IN_EACH_STEP += ("cf.assert", "func.return")


class Caller(Emitter, Protocol):
    """The function into which instructions are written, at the end of `block`."""

    block: mlir.Block
    new: mlir.OpView
    by_name: Mapping[str, mlir.OpView]

    def convert(self, op: mlir.OpView) -> None: ...
    def integer(self, value: int) -> mlir.IntegerAttr: ...
    def registers(self, values: Iterable[mlir.Value]) -> list[mlir.Value]: ...


class HostCalls:
    """Writes what `hal.loop`, `hal.branch` and `hal.while` do."""

    def __init__(self, caller: Caller):
        self.at = caller

    def loop(self, op: hal.LoopOp) -> None:
        function = self.at.by_name[op.body.value]
        self._add_memory([function])
        hoisted = self._hoist(function)
        with mlir.InsertionPoint(self.at.block):
            steps = LoopSteps(self.at, op)
            head, done = self._open_blocks(2)
            first = steps.initial
            for value in first:
                head.add_argument(value.type, op.operation.location)
            cf.BranchOp(first, head)
        self.at.block = head
        with mlir.InsertionPoint(head):
            given, made, following = steps.one(list(head.arguments))
        self._inline(function, given, made, {}, hoisted)
        with mlir.InsertionPoint(self.at.block):
            more = self.at.emit("lts", following[0], self.at.constant(op.trips.value))
            cf.CondBranchOp(self._is_true(more), following, [], head, done)
        self.at.block = done

    def branch(self, op: hal.BranchOp) -> None:
        parts = [part_of(self.at, *one) for one in zip(op.buffers, op.offsets, op.lengths, strict=True)]
        given, made = parts[: len(parts) - op.made.value], parts[len(parts) - op.made.value :]
        called = [self.at.by_name[one.value] for one in (op.then, op.otherwise)]
        self._add_memory(called)
        *blocks, done = self._open_blocks(3)
        cf.CondBranchOp(self._is_true(self.at.values[op.condition]), [], [], *blocks)
        for block, function in zip(blocks, called, strict=True):
            self.at.block = block
            self._inline(function, given, dict(enumerate(made)), self._dims(op))
            with mlir.InsertionPoint(self.at.block):
                cf.BranchOp([], done)
        self.at.block = done

    def while_(self, op: hal.WhileOp) -> None:
        """Each state has a buffer that a step reads, one that it writes, and one for the step after that. The first
        one reads the initial value."""
        function = self.at.by_name[op.body.value]
        self._add_memory([function])
        count, dims = op.states.value, self._dims(op)
        parts = [part_of(self.at, *one) for one in zip(op.buffers, op.offsets, op.lengths, strict=True)]
        results = parts[len(parts) - len(list(op.kept)) :]
        flag, *turns = parts[len(parts) - len(results) - 2 * count - 1 : len(parts) - len(results)]
        fixed = parts[count : len(parts) - len(results) - 2 * count - 1]
        hoisted = self._hoist(function, dims)
        head, body, done = self._open_blocks(3)
        first = [self.at.values[op.condition], *parts[:count], *turns[::2], *turns[1::2]]
        with mlir.InsertionPoint(self.at.block):
            for value in first:
                head.add_argument(value.type, op.operation.location)
            cf.BranchOp(first, head)
        go, *registers = head.arguments
        now, target, spare = registers[:count], registers[count : 2 * count], registers[2 * count :]
        with mlir.InsertionPoint(head):
            cf.CondBranchOp(self._is_true(go), [], [], body, done)
        self.at.block = body
        self._inline(function, [*now, *fixed], dict(enumerate([flag, *target])), dims, hoisted)
        with mlir.InsertionPoint(self.at.block):
            more = self.at.emit("buffer_load", flag, self.at.constant(0), self.at.integer(Element.I1))
            cf.BranchOp([more, *target, *spare, *target], head)
        self.at.block = done
        with mlir.InsertionPoint(self.at.block):
            for number, result in zip(op.kept, results, strict=True):
                self._copy(now[number], result)

    def _open_blocks(self, count: int) -> list[mlir.Block]:
        """New blocks behind this one, in order."""
        last = mlir.Block.create_after(self.at.block)
        return [*(mlir.Block.create_before(last) for _ in range(count - 1)), last]

    def _is_true(self, register: mlir.Value) -> mlir.Value:
        return vm.IsNonzeroOp(register, mlir.IntegerType.get_signless(1)).result

    def _dims(self, op: mlir.OpView) -> dict[tuple[int, int], mlir.Value]:
        """Sizes of a function's arguments that vary."""
        numbers = list(op.places)
        return dict(zip(zip(numbers[::2], numbers[1::2], strict=True), self.at.registers(op.dims), strict=True))

    def _copy(self, source: mlir.Value, target: mlir.Value) -> None:
        command = self.at.emit("cmd_create", self.at.integer(2))
        whole = [self.at.constant(0), self.at.emit("buffer_bytes", target)]
        vm.OPS["cmd_copy"](
            command, [], whole, integers([0]), integers([stream.READ]),
            [], whole, integers([1]), integers([stream.WRITE]),
        )  # fmt: skip
        vm.OPS["cmd_end"](command)
        vm.OPS["submit"](command, [source, target])

    def _hoist(self, function: mlir.OpView, dims: Mapping[tuple[int, int], mlir.Value] | None = None) -> set:
        """Instructions of a function that are the same in every step: recordings, memory, sizes. What is left are
        submissions and what depends on data."""
        ops = list(entry_block(function).operations)
        results = {one.source for one in ops if one.operation.name == "hal.result"}
        hoisted, known = set(), set()
        for one in ops:
            op = one.operation
            if op.name in _IN_EACH_STEP or any(value in results for value in op.results):
                continue
            inside = {value for inner in _ops_inside(op) for value in inner.results}
            if not all(value in known or value in inside for value in nested_operands(op)):
                continue
            if op.name == "hal.argument_dim":
                self.at.values[one.result] = (dims or {})[one.attributes["index"].value, one.attributes["dim"].value]
            else:
                with mlir.InsertionPoint(self.at.block), op.location:
                    self.at.convert(one)
            hoisted.add(op)
            known.update(op.results)
        return hoisted

    def _inline(
        self,
        function: mlir.OpView,
        given: list[mlir.Value],
        made: Mapping[int, mlir.Value],
        dims: Mapping[tuple[int, int], mlir.Value],
        hoisted: Collection[mlir.Operation] = (),
    ) -> None:
        """The instructions of a function whose arguments and results are these buffers."""
        ops = list(entry_block(function).operations)
        results = {one.source: one.attributes["index"].value for one in ops if one.operation.name == "hal.result"}
        for one in ops:
            name = one.operation.name
            if name in ("hal.result", "func.return") or one.operation in hoisted:
                continue
            if name == "hal.argument":
                self.at.values[one.result] = given[one.attributes["index"].value]
            elif name == "hal.argument_dim":
                self.at.values[one.result] = dims[one.attributes["index"].value, one.attributes["dim"].value]
            elif name == "hal.allocate" and one.result in results:
                self.at.values[one.result] = made[results[one.result]]
            else:
                with mlir.InsertionPoint(self.at.block), one.operation.location:
                    self.at.convert(one)

    def _add_memory(self, bodies: list[mlir.OpView]) -> None:
        """What one of these functions needs is beside the program's arena."""
        for key in (ARENA_BYTES, LOWER_BOUND_BYTES):
            needed = [mlir.IntegerAttr(one.attributes[key]).value for one in bodies if key in one.attributes]
            if needed:
                before = self.at.new.attributes[key].value if key in self.at.new.attributes else 0
                self.at.new.attributes[key] = mlir.IntegerAttr.get(
                    mlir.IntegerType.get_signless(64), before + max(needed)
                )


def _ops_inside(op: mlir.Operation) -> Iterator[mlir.Operation]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _ops_inside(inner.operation)
