"""`convert-reshapes-to-flow`: reshapes and contiguous slices become views that cost nothing."""

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
    """A reshape between dispatches keeps the elements where they are, so it is a `flow.reshape`; a slice that is one
    piece of memory is a `flow.slice`.

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
                elif op.operation.name == "tensor.extract_slice":
                    _convert_slice(op)


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


def _convert_slice(op: mlir.OpView) -> None:
    offset = _contiguous_offset(op)
    if offset is None:
        return
    attribute = mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), offset)
    with mlir.InsertionPoint(op), op.operation.location:
        new = flow.SliceOp(op.operands[0], attribute, op.result.type)
    op.result.replace_all_uses_with(new.result)
    op.operation.erase()


def _contiguous_offset(op: mlir.OpView) -> int | None:
    """Elements before a static slice that is one piece of memory: units, then a part, then whole dimensions."""
    type_ = mlir.RankedTensorType(op.operands[0].type)
    offsets, sizes, strides = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    dynamic = mlir.ShapedType.get_dynamic_size()
    if len(op.operands) != 1 or not type_.has_static_shape or dynamic in offsets or set(strides) - {1}:
        return None
    partial = [dim for dim, size in enumerate(sizes) if size != type_.shape[dim]]
    if partial and any(size != 1 for size in sizes[: partial[-1]]):
        return None
    offset = 0
    for dim, size in enumerate(type_.shape):
        offset = offset * size + offsets[dim]
    return offset
