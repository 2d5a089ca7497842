"""`convert-reshapes-to-flow`: reshapes become views that cost nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.dialects import flow
from eyas.ir import Pass
from eyas.ir.walk import entry_block, functions
from eyas.passes.dispatch.shapes import dims_of

_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape", "tensor.cast")


@dataclass(frozen=True)
class ConvertReshapesToFlow(Pass):
    """Every reshape between dispatches keeps the elements where they are, so it is a `flow.reshape`.

      %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<1x128x384xf32> into tensor<128x384xf32>
    becomes
      %1 = flow.reshape %0 : tensor<1x128x384xf32> -> tensor<128x384xf32>
    """

    name: ClassVar[str] = "convert-reshapes-to-flow"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            for op in list(entry_block(function).operations):
                if op.operation.name in _RESHAPES:
                    _convert(op)


def _convert(op: mlir.OpView) -> None:
    source, result = op.operands[0], op.results[0]
    dims = dims_of(result)
    with mlir.InsertionPoint(op), op.operation.location:
        new = flow.ReshapeOp(source, dims, result.type)
    # A reshape of a reshape is one reshape.
    owner = source.owner
    if not isinstance(owner, mlir.Block) and isinstance(owner.opview, flow.ReshapeOp):
        new.operation.operands[0] = owner.opview.source
    result.replace_all_uses_with(new.result)
    op.operation.erase()
