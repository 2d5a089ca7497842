"""`note-alignment`: each executable is told which of its bindings may begin anywhere in their buffer."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.dialects import codegen, flow
from eyas.ir.walk import constant_int, find_ops, functions, is_private
from eyas.passes.schedule.packing import ALIGNMENT
from eyas.passes.targeted import TargetedPass


@dataclass(frozen=True)
class NoteAlignment(TargetedPass):
    """Devices of some targets take only offsets that are multiples of `limits.offset_alignment`. Memory is planned so,
    but a view, and a row that a step of a loop is given, may begin anywhere: kernels are told where the rest of the
    offset matters, and read such bindings element by element.

        hal.dispatch(..., %c12, ...) {callee = @add, slots = [0]}
      gives
        func.func private @add(...) attributes {codegen.unaligned = array<i64: 0>}
    """

    name: ClassVar[str] = "note-alignment"

    def run(self, module: mlir.Module) -> None:
        alignment = self.target.limits.offset_alignment
        if alignment == 1:
            return
        found: dict[str, set[int]] = defaultdict(set)
        for function in functions(module):
            if flow.is_executable(function):
                continue
            for dispatch in find_ops(function, "hal.dispatch"):
                callee = mlir.FlatSymbolRefAttr(dispatch.operation.attributes["callee"]).value
                found[callee] |= set(_unaligned(dispatch, is_private(function), alignment))
        for function in [op for op in module.body.operations if flow.is_executable(op)]:
            if numbers := sorted(found[function.attributes["sym_name"].value]):
                function.attributes[codegen.UNALIGNED] = mlir.DenseI64ArrayAttr.get(numbers)


def _unaligned(dispatch: mlir.OpView, is_body: bool, alignment: int) -> list[int]:
    """Bindings of a dispatch that may begin anywhere. What the body of a loop or a branch is given by slots may be a
    part of something, and weights lie in one buffer."""
    found = []
    for number, (offset, slot) in enumerate(zip(dispatch.offsets, dispatch.slots, strict=True)):
        is_part = alignment > ALIGNMENT if slot < 0 else is_body
        if is_part or not _is_multiple(offset, alignment):
            found.append(number)
    return found


def _is_multiple(value: mlir.Value, alignment: int) -> bool:
    known = constant_int(value)
    if known is not None:
        return known % alignment == 0
    if isinstance(value.owner, mlir.Block):
        return False
    if value.owner.name == "hal.pack":  # places in an arena
        return ALIGNMENT % alignment == 0
    joined = {"arith.addi": all, "arith.muli": any}.get(value.owner.name)
    return joined is not None and joined(_is_multiple(operand, alignment) for operand in set(value.owner.operands))
