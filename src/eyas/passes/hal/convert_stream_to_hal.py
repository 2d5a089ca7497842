"""`convert-stream-to-hal`: work in order becomes recorded command buffers and submissions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.dialects import flow, hal, stream
from eyas.ir import Pass
from eyas.ir.dialect import integers
from eyas.ir.values import i64_attribute, index_constant
from eyas.ir.walk import constant_int, entry_block, functions

_WORK = ("stream.dispatch", "stream.copy", "stream.barrier")


@dataclass(frozen=True)
class ConvertStreamToHal(Pass):
    """Records the work between two host reads into one command buffer.

    Arguments, results and the arena are slots of the submission's table; parameters and state are bound directly. When
    every offset, size and push constant is known at compile time, the recording is made once and replayed.

        stream.dispatch(%a, %b) {callee = @relu}       %c = hal.record {memo = 0} { hal.dispatch ... hal.end }
                                                       hal.submit %c, table(%a, %b)
    """

    name: ClassVar[str] = "convert-stream-to-hal"

    def run(self, module: mlir.Module) -> None:
        memo = 0
        for function in functions(module):
            if not flow.is_executable(function):
                memo = _Conversion(entry_block(function), memo).run()


@dataclass
class _Binding:
    """A resource as the HAL binds it: a base buffer and a range of it."""

    base: mlir.Value
    is_direct: bool
    offset: mlir.Value
    length: mlir.Value


class _Conversion:
    def __init__(self, block: mlir.Block, memo: int):
        self.block, self.memo = block, memo
        self.buffers: dict[mlir.Value, mlir.Value] = {}
        self.lengths: dict[mlir.Value, mlir.Value] = {}
        self.type = hal.BufferType.get()

    def run(self) -> int:
        ops = list(self.block.operations)
        pending: list[mlir.OpView] = []
        results: list[mlir.OpView] = []
        for op in ops:
            name = op.operation.name
            if name in _WORK:
                pending.append(op)
                continue
            if name == "stream.result":
                results.append(op)  # given at the end, so that it does not part the work before from that behind it
                continue
            with mlir.InsertionPoint(op), op.operation.location:
                if name in ("stream.load", *stream.HOST_CALLS, "func.return") and pending:
                    self._record(pending)
                    pending = []
                for result in results if name == "func.return" else ():
                    self._convert_host(result)
                self._convert_host(op)
        for op in reversed(ops):
            if op.operation.name.startswith("stream."):
                op.operation.erase()
        return self.memo

    def _convert_host(self, op: mlir.OpView) -> None:
        name = op.operation.name
        if name == "stream.argument":
            self.buffers[op.result] = hal.ArgumentOp(op.attributes["index"], self.type).result
        elif name == "stream.argument_dim":
            dim = hal.ArgumentDimOp(op.attributes["index"], op.dim, mlir.IndexType.get())
            op.result.replace_all_uses_with(dim.result)
        elif name == "stream.parameter":
            self.buffers[op.result] = hal.ParameterOp(op.key, self.type).result
        elif name == "stream.state":
            self.buffers[op.result] = hal.StateOp(op.key, self.type).result
            self.lengths[op.result] = op.bytes
        elif name == "stream.alloc":
            self.buffers[op.result] = hal.AllocateOp(op.bytes, op.kind, self.type).result
            self.lengths[op.result] = op.bytes
        elif name == "stream.pack":
            packed = hal.PackOp(
                list(op.sizes), op.lifetimes, op.max_bytes, [mlir.IndexType.get()] * len(op.operation.results)
            )
            for old, new in zip(op.operation.results, packed.operation.results, strict=True):
                old.replace_all_uses_with(new)
        elif name == "stream.load":
            binding = self._binding(op.source)
            offset = arith.AddIOp(binding.offset, index_constant(op.offset.value)).result
            loaded = hal.LoadOp(self.buffers[binding.base], offset, op.element, mlir.IntegerType.get_signless(64))
            op.result.replace_all_uses_with(loaded.result)
        elif name == "stream.loop":
            numbers = map(integers, (op.counts, op.reads, op.rows, op.states))
            hal.LoopOp(*self._ranges(op.resources), op.body, op.trips, *numbers)
        elif name == "stream.branch":
            attributes = (op.then, op.otherwise, op.made, integers(op.places))
            hal.BranchOp(op.condition, list(op.dims), *self._ranges(op.resources), *attributes)
        elif name == "stream.while":
            attributes = (op.body, op.states, integers(op.kept), integers(op.places))
            hal.WhileOp(op.condition, list(op.dims), *self._ranges(op.resources), *attributes)
        elif name == "stream.result":
            hal.ResultOp(self.buffers[op.source], list(op.dims), op.attributes["index"])

    def _ranges(self, resources: Iterable[mlir.Value]) -> tuple[list[mlir.Value], list[mlir.Value], list[mlir.Value]]:
        """Buffers, offsets and lengths."""
        bindings = [self._binding(resource) for resource in resources]
        ranges = [one.offset for one in bindings], [one.length for one in bindings]
        return [self.buffers[one.base] for one in bindings], *ranges

    def _binding(self, resource: mlir.Value) -> _Binding:
        offset, length = None, None
        owner = resource.owner
        while owner.name == "stream.view":
            length = length if length is not None else owner.operands[2]
            start = owner.operands[1]
            offset = start if offset is None else _sum(offset, start)
            resource = owner.operands[0]
            owner = resource.owner
        # A length of -1 means the rest of the buffer.
        offset = offset if offset is not None else index_constant(0)
        length = length if length is not None else self.lengths.get(resource)
        return _Binding(
            resource,
            owner.name in ("stream.parameter", "stream.state"),  # where they are does not change between calls
            offset,
            length if length is not None else index_constant(-1),
        )

    def _record(self, work: list[mlir.OpView]) -> None:
        bindings = [[self._binding(resource) for resource in _resources(op)] for op in work]
        slots: dict[mlir.Value, int] = {}
        for binding in (binding for group in bindings for binding in group):
            if not binding.is_direct:
                slots.setdefault(binding.base, len(slots))
        is_static = all(_is_static(op, group) for op, group in zip(work, bindings, strict=True))
        record = hal.RecordOp(
            i64_attribute(self.memo if is_static else -1), i64_attribute(len(slots)), hal.CommandBufferType.get()
        )
        self.memo += is_static
        with mlir.InsertionPoint(record.body.blocks.append()):
            for op, group in zip(work, bindings, strict=True):
                with op.operation.location:
                    self._record_one(op, group, slots)
            hal.EndOp()
        hal.SubmitOp(record.result, [self.buffers[base] for base in slots])

    def _record_one(self, op: mlir.OpView, group: list[_Binding], slots: dict[mlir.Value, int]) -> None:
        direct = [self.buffers[binding.base] for binding in group if binding.is_direct]
        offsets = [binding.offset for binding in group]
        lengths = [binding.length for binding in group]
        numbers = mlir.DenseI64ArrayAttr.get([-1 if b.is_direct else slots[b.base] for b in group])
        if op.operation.name == "stream.dispatch":
            hal.DispatchOp(list(op.constants), direct, offsets, lengths, op.callee, numbers, op.access)
        elif op.operation.name == "stream.copy":
            # Both ends have the target's length, which is known because the target was allocated here.
            hal.CopyOp(direct, offsets, [lengths[1]] * 2, numbers)
        else:
            hal.BarrierOp()


def _sum(one: mlir.Value, other: mlir.Value) -> mlir.Value:
    """Known offsets stay known, so that recordings of views are kept too."""
    known = [constant_int(value) for value in (one, other)]
    if None in known:
        return arith.AddIOp(one, other).result
    return index_constant(sum(number or 0 for number in known))


def _resources(op: mlir.OpView) -> list[mlir.Value]:
    if op.operation.name == "stream.dispatch":
        return list(op.resources)
    return [op.source, op.target] if op.operation.name == "stream.copy" else []


def _is_static(op: mlir.OpView, bindings: list[_Binding]) -> bool:
    values = [value for binding in bindings for value in (binding.offset, binding.length)]
    if op.operation.name == "stream.dispatch":
        values += list(op.constants)
    return all(not isinstance(value.owner, mlir.Block) and value.owner.name == "arith.constant" for value in values)
