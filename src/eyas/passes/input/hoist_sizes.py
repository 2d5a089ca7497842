"""`hoist-sizes`: sizes of tensors are asked for outside the bodies that use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops


@dataclass(frozen=True)
class HoistSizes(Pass):
    """Moves `tensor.dim` out of linalg bodies; a body works on elements, and a kernel gets sizes as numbers.

    %r = linalg.generic ... { %n = tensor.dim %x, %c0 ... }   =>   %n = tensor.dim %x, %c0
                                                                   %r = linalg.generic ... { ... }
    """

    name: ClassVar[str] = "hoist-sizes"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "tensor.dim"):
            op = view.operation
            parent = op.parent.operation if op.parent is not None else None
            while parent is not None and parent.name.startswith("linalg."):
                inside = parent.regions[0].blocks[0]
                owners = [value.owner for value in op.operands]
                blocks = [owner if isinstance(owner, mlir.Block) else owner.operation.block for owner in owners]
                if any(block == inside for block in blocks):
                    break
                op.move_before(parent)
                parent = parent.parent.operation if parent.parent is not None else None
