"""`split-concats`: concatenations of many tensors become a tree of smaller ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import tensor

from eyas.ir import Pass
from eyas.ir.structured import concat
from eyas.ir.walk import find_ops
from eyas.passes.dispatch.grouping import MAX_TENSORS


@dataclass(frozen=True)
class SplitConcats(Pass):
    """Concatenates in steps where there are more operands than one dispatch binds.

    A concatenation is one loop nest and one binding for each operand, so that the code of one of 300 operands is long
    too. Of a tree with 23 operands for each node everything but the last level is small or copied once more; most
    programs have no such concatenation at all.

        %r = tensor.concat dim(0) %0, ..., %299   =>   %a = tensor.concat dim(0) %0, ..., %22
                                                       ...
                                                       %r = tensor.concat dim(0) %a, ..., %n
    """

    name: ClassVar[str] = "split-concats"
    max_bindings: int = MAX_TENSORS

    def run(self, module: mlir.Module) -> None:
        most = max(2, min(self.max_bindings, MAX_TENSORS) - 1)
        for op in find_ops(module, "tensor.concat"):
            if len(op.operation.operands) > most:
                with mlir.InsertionPoint(op), op.operation.location:
                    _split(op.operation, most)


def _split(op: mlir.Operation, most: int) -> None:
    axis = mlir.IntegerAttr(op.attributes["dim"]).value
    parts = list(op.operands)
    while len(parts) > most:
        groups = [parts[first : first + most] for first in range(0, len(parts), most)]
        parts = [concat(group, axis) if len(group) > 1 else group[0] for group in groups]
    type_ = op.results[0].type
    op.results[0].replace_all_uses_with(tensor.ConcatOp(type_, axis, parts).result)
    op.erase()
