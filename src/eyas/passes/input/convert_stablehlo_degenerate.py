"""`convert-stablehlo-degenerate`: empty slices, reductions over nothing and barriers go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import tensor

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops


@dataclass(frozen=True)
class ConvertStablehloDegenerate(Pass):
    """Replaces what upstream has no lowering for because there is nothing to do.

    `tensor.extract_slice` may not begin at the end, so an empty slice is an empty tensor; a reduction over no
    dimension is its input, and a barrier against XLA's own rewrites is what it holds.

        %a = stablehlo.slice %x [4:4] : (tensor<4xf32>) -> tensor<0xf32>
        %b = stablehlo.reduce(%x init: %c) applies stablehlo.or across dimensions = []
    becomes
        %a = tensor.empty() : tensor<0xf32>
        %b = %x
    """

    name: ClassVar[str] = "convert-stablehlo-degenerate"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "stablehlo.slice", "stablehlo.reduce", "stablehlo.optimization_barrier"):
            op = view.operation
            with mlir.InsertionPoint(op), op.location:
                values = _replacement(op)
            if values is None:
                continue
            for old, new in zip(op.results, values, strict=True):
                old.replace_all_uses_with(new)
            op.erase()


def _replacement(op: mlir.Operation) -> list[mlir.Value] | None:
    if op.name == "stablehlo.optimization_barrier":
        return list(op.operands)
    if op.name == "stablehlo.reduce":
        over = mlir.DenseI64ArrayAttr(op.attributes["dimensions"])
        return list(op.operands)[: len(op.results)] if len(over) == 0 else None
    type_ = mlir.RankedTensorType(op.results[0].type)
    if type_.has_static_shape and 0 in type_.shape:
        return [tensor.empty(list(type_.shape), type_.element_type)]
    return None
