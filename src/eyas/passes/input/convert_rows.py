"""`convert-rows`: rows that a loop writes by the number of its step become slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.passes.input.torch_values import find_operators, replace_by_tensor, to_tensor

OPERATOR = "eyas.setrow"


@dataclass(frozen=True)
class ConvertRows(Pass):
    """Replaces `eyas.setrow`, which the ONNX frontend writes for what `Scan` and `Loop` give in each step. A slice is
    what passes on loops look for; a scatter computes an index for each element. The place is the number of a step, and
    there are at least as many rows as steps.

        %y = torch.operator "eyas.setrow"(%ys, %i, %row)    %y = tensor.insert_slice %row into %ys[%i, 0] [1, 8] [1, 1]
    """

    name: ClassVar[str] = "convert-rows"

    def run(self, module: mlir.Module) -> None:
        for op in find_operators(module, OPERATOR):
            with mlir.InsertionPoint(op), op.location:
                rows, number, row = (to_tensor(operand) for operand in op.operands)
                place = arith.index_cast(mlir.IndexType.get(), tensor.extract(number, []))
                replace_by_tensor(op, _written(rows, row, place))


def _size(value: mlir.Value, dim: int) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    return tensor.dim(value, index_constant(dim)) if type_.is_dynamic_dim(dim) else index_constant(type_.shape[dim])


def _written(rows: mlir.Value, row: mlir.Value, place: mlir.Value) -> mlir.Value:
    """`row` has a first dimension of one element."""
    type_ = mlir.RankedTensorType(row.type)
    dynamic, rest = mlir.ShapedType.get_dynamic_stride_or_offset(), list(type_.shape)[1:]
    sizes = [_size(row, dim) for dim in range(1, type_.rank) if type_.is_dynamic_dim(dim)]
    return mlir.Operation.create(
        "tensor.insert_slice",
        results=[rows.type],
        operands=[row, rows, place, *sizes],
        attributes={
            "static_offsets": mlir.DenseI64ArrayAttr.get([dynamic, *(0 for _ in rest)]),
            "static_sizes": mlir.DenseI64ArrayAttr.get([1, *rest]),
            "static_strides": mlir.DenseI64ArrayAttr.get([1] * type_.rank),
            "operandSegmentSizes": mlir.DenseI32ArrayAttr.get([1, 1, 1, len(sizes), 0]),
        },
    ).results[0]
