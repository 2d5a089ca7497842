"""Where the values of dynamic dimensions come from, after `tie-shapes`."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, tensor

from eyas.dialects import flow
from eyas.errors import CompileError
from eyas.ir import describe_location
from eyas.ir.walk import defining_op


def dims_of(value: mlir.Value) -> list[mlir.Value]:
    """Values for the dynamic dimensions of a tensor, in order. May add `tensor.dim` of a function argument."""
    wanted = flow.dynamic_dims([value])
    if not wanted:
        return []
    owner = defining_op(value)
    if owner is None:
        return [_argument_dim(value, dim) for _, dim in wanted]
    opview = owner.opview
    if isinstance(opview, flow.ReshapeOp):
        return list(opview.dims)
    for use in value.uses:
        user = use.owner.opview if isinstance(use.owner, mlir.Operation) else use.owner
        if isinstance(user, flow.TieShapeOp):
            return list(user.dims)
    raise CompileError(f"the size of a tensor made at {describe_location(owner.location)} depends on its data")


def _argument_dim(value: mlir.Value, dim: int) -> mlir.Value:
    """`tensor.dim` of an argument, made once at the top of the function."""
    block = value.owner
    for use in value.uses:
        user = use.owner.operation
        if user.name == "tensor.dim" and user.block == block:
            index = defining_op(user.operands[1])
            if index is not None and index.name == "arith.constant" and index.attributes["value"].value == dim:
                first = next(iter(block.operations))
                if user != first.operation:
                    index.move_before(first.operation)
                    user.move_after(index)
                return user.results[0]
    with mlir.InsertionPoint.at_block_begin(block), mlir.Location.unknown():
        return tensor.DimOp(value, arith.ConstantOp(mlir.IndexType.get(), dim).result).result
