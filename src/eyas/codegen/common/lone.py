"""A dispatch of one op that is no loop nest: a scan, a scatter or a sort of tensors that are bindings, slices or fills.

Targets that have a form of their own for such an op find it here; the others lower it through plain loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.analyze import NestAnalysis
from eyas.codegen.common.emission.values import Memory, clone_op
from eyas.codegen.common.kernel import Kernel, Storage, Unsupported
from eyas.codegen.common.places import Filled, Window
from eyas.codegen.common.sizes import ZERO

SCAN, SCATTER, SORT = "tm_tensor.scan", "tm_tensor.scatter", "tm_tensor.sort"


@dataclass(frozen=True, eq=False, kw_only=True)
class LoneOp(Kernel):
    """A kernel without nests, and the op that is all of it."""

    op: mlir.Operation
    operands: tuple[Window | Filled, ...]
    results: tuple[Storage | None, ...]
    """Where results go; None for one that nobody reads."""

    @property
    def body(self) -> mlir.Block:
        return self.op.regions[0].blocks[0]


def lone_op(function: mlir.OpView) -> LoneOp | None:
    """The only op of a dispatch function, if it is one of these."""
    try:
        return _LoneAnalysis(function).run()
    except Unsupported:
        return None


class _LoneAnalysis(NestAnalysis):
    """Reads the ops of a block in order; those beside the one must move no data."""

    def __init__(self, function: mlir.OpView):
        super().__init__(function)
        self.found: LoneOp | None = None

    def run(self) -> LoneOp:
        for op in self.block.operations:
            self._read(op)
        if self.found is None or self.nests or set(self.results) - set(self.found.op.results):
            raise Unsupported("other ops than one")
        return self.found

    def _read(self, op: mlir.OpView) -> None:
        one = op.operation
        if one.name not in (SCAN, SCATTER, SORT) or self.found is not None:
            super()._read(op)
            return
        places = [self.places.get(operand) for operand in one.operands]
        operands = tuple(place for place in places if isinstance(place, Window | Filled))
        if len(operands) != len(places) or any(len(inner.operation.regions) for inner in one.regions[0].blocks[0]):
            raise Unsupported("an operand is computed, or a body has branches")
        self.found = LoneOp(
            storages=tuple(self.storages),
            nests=(),
            shared=0,
            scalar_arguments=tuple(value for value in self.block.arguments if value in self.constants),
            tensors={},
            op=one,
            operands=operands,
            results=tuple(self.results.get(result) for result in one.results),
        )


def read_place(memory: Memory, place: Window | Filled, indices: Sequence[mlir.Value]) -> mlir.Value:
    """An element of a tensor."""
    if isinstance(place, Filled):
        assert place.scalar is not None, "an undefined tensor is read"
        return memory.scalar(place.scalar)
    address = memory.constant_index(0)
    for size in place.offset:
        address = memory.add(address, memory.size(size))
    for index, stride in zip(indices, place.strides, strict=True):
        if stride != ZERO:
            address = memory.add(address, memory.scaled(index, stride))
    return memory.load(place.storage, address, 1, ZERO, None)


def apply_body(memory: Memory, body: mlir.Block, arguments: Sequence[mlir.Value | None]) -> list[mlir.Value]:
    """What a body yields; arguments that it does not read may be None."""
    values = dict(zip(body.arguments, arguments, strict=True))

    def get(value: mlir.Value) -> mlir.Value:
        found = values[value] if value in values else memory.scalar(value)
        assert found is not None, "a body reads what it was not given"
        return found

    *ops, end = body.operations
    for op in ops:
        operands = [get(one) for one in op.operands]
        clone = clone_op(op.operation, operands, [one.type for one in op.operation.results])
        values.update(zip(op.operation.results, clone.results, strict=True))
    return [get(one) for one in end.operands]
