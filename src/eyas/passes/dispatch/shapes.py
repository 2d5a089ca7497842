"""Where the values of dynamic dimensions come from, after `tie-shapes`."""

from __future__ import annotations

import ast
import functools

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, tensor

from eyas.dialects import flow
from eyas.errors import CompileError
from eyas.ir import describe_location
from eyas.ir.walk import defining_op

SIGNATURE = "flow.signature"
"""On an entry function: its arguments and results as the runtime checks them, a Python literal."""


def dims_of(value: mlir.Value) -> list[mlir.Value]:
    """Values for the dynamic dimensions of a tensor, in order. May add `tensor.dim` of a function argument."""
    wanted = flow.dynamic_dims([value]) if isinstance(value.type, mlir.ShapedType) else []
    if not wanted:
        return []
    owner = defining_op(value)
    if owner is None:
        return [argument_dim(value, dim) for _, dim in wanted]
    opview = owner.opview
    if isinstance(opview, flow.ReshapeOp):
        return list(opview.dims)
    for use in value.uses:
        user = use.owner.opview if isinstance(use.owner, mlir.Operation) else use.owner
        if isinstance(user, flow.TieShapeOp):
            return list(user.dims)
    raise CompileError(f"the size of a tensor made at {describe_location(owner.location)} depends on its data")


def argument_dim(value: mlir.Value, dim: int) -> mlir.Value:
    """`tensor.dim` of an argument, made once at the top of the function."""
    value, dim = first_with_same_symbol(value, dim)
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


def first_with_same_symbol(argument: mlir.Value, dim: int) -> tuple[mlir.Value, int]:
    """The first argument and dimension that the signature gives the same symbol; the runtime checks that they agree."""
    block = argument.owner
    function = block.owner.operation
    if SIGNATURE not in function.attributes:
        return argument, dim
    arguments = _dims_by_argument(function.attributes[SIGNATURE].value)
    number = mlir.BlockArgument(argument).arg_number
    symbol = arguments[number][dim] if number < len(arguments) and dim < len(arguments[number]) else None
    if not isinstance(symbol, str) or not symbol.isidentifier():
        return argument, dim
    for position, dims in enumerate(arguments):
        if symbol in dims:
            return block.arguments[position], dims.index(symbol)
    raise AssertionError("the symbol is at least where it was found")


@functools.lru_cache(maxsize=8)
def _dims_by_argument(signature: str) -> tuple[tuple[int | str, ...], ...]:
    return tuple(tuple(dims) for _, _, dims in ast.literal_eval(signature)["arguments"])
