"""`convert-products`: products along dimensions, of tensors whose sizes may vary, become linalg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, linalg

from eyas.ir import Pass, mlir
from eyas.ir.structured import empty_like, generic
from eyas.passes.input.torch_values import find_operators, replace_by_tensor, to_tensor

OPERATOR = "eyas.product"


@dataclass(frozen=True)
class ConvertProducts(Pass):
    """Replaces `eyas.product`, which the ONNX frontend writes for a ReduceProd of dynamic dimensions: the importer
    knows static ones only. The dimensions of `axes` disappear.

        %1 = torch.operator "eyas.product"(%0) {torch.onnx.axes = [0 : si64]} : (!torch.vtensor<[4,?],f32>)
            -> !torch.vtensor<[?],f32>
      becomes
        %b = torch_c.to_builtin_tensor %0
        %r = linalg.generic ["reduction", "parallel"] ... { %p = arith.mulf %in, %out; linalg.yield %p }
        %1 = torch_c.from_builtin_tensor %r
    """

    name: ClassVar[str] = "convert-products"

    def run(self, module: mlir.Module) -> None:
        for op in find_operators(module, OPERATOR):
            with mlir.InsertionPoint(op), op.location:
                _convert(op)


def _convert(op: mlir.Operation) -> None:
    value = to_tensor(op.operands[0])
    axes = {mlir.IntegerAttr(axis).value for axis in mlir.ArrayAttr(op.attributes["torch.onnx.axes"])}
    kept = [dim for dim in range(mlir.RankedTensorType(value.type).rank) if dim not in axes]
    replace_by_tensor(op, _multiply(value, kept))


def _multiply(value: mlir.Value, kept: list[int]) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    is_float = isinstance(type_.element_type, mlir.FloatType)
    one = arith.ConstantOp(type_.element_type, 1.0 if is_float else 1).result
    ones = linalg.fill(one, outs=[empty_like(value, [type_.shape[dim] for dim in kept], kept)])
    loops = [mlir.AffineExpr.get_dim(dim) for dim in range(type_.rank)]
    maps = [mlir.AffineMap.get(type_.rank, 0, exprs) for exprs in (loops, [loops[dim] for dim in kept])]
    iterators = ["parallel" if dim in kept else "reduction" for dim in range(type_.rank)]
    op = generic([value], [ones], maps, iterators)
    body = op.regions[0].blocks[0]
    with mlir.InsertionPoint(body):
        linalg.YieldOp([(arith.mulf if is_float else arith.muli)(*body.arguments)])
    return op.results[0]
