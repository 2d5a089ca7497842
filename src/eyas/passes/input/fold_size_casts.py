"""`fold-size-casts`: sizes that went through narrower integers are the sizes that they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir
from eyas.ir.walk import defining_op, find_ops

_CASTS = ("arith.index_cast", "arith.extsi", "arith.trunci")


@dataclass(frozen=True)
class FoldSizeCasts(Pass):
    """Removes casts of an index to an integer and back, for programs whose sizes fit into that integer by definition.

    StableHLO's sizes are i32. Upstream keeps the casts, because an index need not fit; then a size that was computed
    with differs from the one of the tensor that it is of, and what should be one loop nest is two.

        %d = tensor.dim %x, %c0
        %i = arith.index_cast %d : index to i32
        %n = arith.index_cast %i : i32 to index        =>      %d
        %e = tensor.empty(%n)                                  %e = tensor.empty(%d)
    """

    name: ClassVar[str] = "fold-size-casts"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "arith.index_cast"):
            op = view.operation
            if not isinstance(op.results[0].type, mlir.IndexType):
                continue
            source = _origin(op.operands[0])
            if source is not None:
                op.results[0].replace_all_uses_with(source)
                op.erase()


def _origin(value: mlir.Value) -> mlir.Value | None:
    """The index that an integer was cast from."""
    while not isinstance(value.type, mlir.IndexType):
        owner = defining_op(value)
        if owner is None or owner.name not in _CASTS:
            return None
        value = owner.operands[0]
    return value
