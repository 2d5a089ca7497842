"""`plan-memory`: all transient buffers become parts of one arena."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.dialects import flow, stream
from eyas.errors import CompileError
from eyas.ir import Pass
from eyas.ir.values import index_constant
from eyas.ir.walk import constant_int, entry_block, functions
from eyas.passes.schedule.packing import Interval, pack

ARENA_BYTES, LOWER_BOUND_BYTES = "stream.arena_bytes", "stream.arena_lower_bound_bytes"


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Computes lifetimes in program order and packs; the arena's size and its lower bound are noted on the function.

    With a dynamic size among them the offsets are computed at run time from the same lifetimes by `stream.pack`. A size
    that is read back from data during the call keeps an allocation of its own.

        %a = stream.alloc %c256 {kind = "transient"}        %arena = stream.alloc %c512 {kind = "transient"}
        %b = stream.alloc %c256 {kind = "transient"}   =>   %a = stream.view %arena, %c0, %c256
                                                            %b = stream.view %arena, %c256, %c256
    """

    name: ClassVar[str] = "plan-memory"
    max_arena_bytes: int = 0

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            if not flow.is_executable(function):
                self._plan(function)

    def _plan(self, function: mlir.OpView) -> None:
        block = entry_block(function)
        ordinals = {view.operation: ordinal for ordinal, view in enumerate(block.operations)}
        allocs = [op for op in block.operations if _is_transient(op) and _is_known_on_entry(op.bytes)]
        if not allocs:
            return
        lifetimes = [_lifetime(op, ordinals) for op in allocs]
        sizes = [size for op in allocs if (size := constant_int(op.bytes)) is not None]
        first = allocs[0]
        with mlir.InsertionPoint(first), first.operation.location:
            if len(sizes) == len(allocs):
                packing = pack([Interval(s, *life) for s, life in zip(sizes, lifetimes, strict=True)])
                self._check(packing.arena_bytes)
                i64 = mlir.IntegerType.get_signless(64)
                function.attributes[ARENA_BYTES] = mlir.IntegerAttr.get(i64, packing.arena_bytes)
                function.attributes[LOWER_BOUND_BYTES] = mlir.IntegerAttr.get(i64, packing.lower_bound_bytes)
                total = index_constant(packing.arena_bytes)
                offsets = [index_constant(offset) for offset in packing.offsets]
            else:
                total, offsets = _pack_at_run_time(allocs, lifetimes, self.max_arena_bytes)
            kind = mlir.StringAttr.get("transient")
            arena = stream.AllocOp(total, kind, stream.ResourceType.get()).result
        for op, offset in zip(allocs, offsets, strict=True):
            with mlir.InsertionPoint(op), op.operation.location:
                view = stream.ViewOp(arena, offset, op.bytes, stream.ResourceType.get())
            op.result.replace_all_uses_with(view.result)
            op.operation.erase()

    def _check(self, arena_bytes: int) -> None:
        if self.max_arena_bytes and arena_bytes > self.max_arena_bytes:
            raise CompileError(
                f"the program needs {arena_bytes} bytes for intermediate tensors, more than the cap of"
                f" {self.max_arena_bytes}; raise the cap, or compile for a smaller batch or image"
            )


def _is_transient(op: mlir.OpView) -> bool:
    return op.operation.name == "stream.alloc" and op.kind.value == "transient"


def _is_known_on_entry(size: mlir.Value) -> bool:
    """Whether a size follows from the arguments' shapes alone."""
    # Each op once: sizes share their operands, and there are exponentially many ways through them.
    waiting, seen = [size], {size}
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, mlir.Block) or owner.name == "stream.load":
            return False
        fresh = [operand for operand in owner.operands if operand not in seen]
        seen.update(fresh)
        waiting += fresh
    return True


def _lifetime(op: mlir.OpView, ordinals: dict[mlir.Operation, int]) -> tuple[int, int]:
    """First and last op that use the buffer, through views too."""
    users: list[int] = []
    values = [op.result]
    for value in values:
        for use in value.uses:
            user = use.owner.operation
            if user.name == "stream.view":
                values.append(user.results[0])
            else:
                users.append(ordinals[user])
    return (min(users), max(users)) if users else (ordinals[op.operation], ordinals[op.operation])


def _pack_at_run_time(
    allocs: list, lifetimes: list[tuple[int, int]], max_bytes: int
) -> tuple[mlir.Value, list[mlir.Value]]:
    """One `stream.pack` before the first dispatch; every size is computed before it."""
    sizes = [op.bytes for op in allocs]
    for size in sizes:
        _hoist(size, allocs[0].operation)
    flat = [ordinal for life in lifetimes for ordinal in life]
    index = mlir.IndexType.get()
    cap = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), max_bytes)
    packed = stream.PackOp(sizes, mlir.DenseI64ArrayAttr.get(flat), cap, [index] * (len(sizes) + 1))
    return packed.operation.results[0], list(packed.operation.results)[1:]


def _hoist(value: mlir.Value, before: mlir.Operation) -> None:
    """Moves the computation of a size up; it depends on arguments' dimensions only."""
    owner = value.owner
    if isinstance(owner, mlir.Block) or owner.operation.is_before_in_block(before):
        return
    for operand in owner.operands:
        _hoist(operand, before)
    owner.operation.move_before(before)
