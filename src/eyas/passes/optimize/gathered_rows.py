"""Rows that a step of a loop gathers by one number, rewritten as slices: the form that passes on loops read."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, tensor

from eyas.ir.structured import index_constant, is_elementwise, split_operands
from eyas.ir.walk import constant_int, defining_op


def slice_gathers(block: mlir.Block) -> bool:
    """Turns gathers of a block into slices where one number says which row it is; says whether there was one.

      %r = linalg.generic ins(from_elements %i) { tensor.extract %x[%in, linalg.index 1] }
    becomes
      %r = tensor.extract_slice %x[clamp(%i), 0] [1, 20] [1, 1]
    """
    found = False
    for view in list(block.operations):
        if view.operation.name == "linalg.generic" and is_elementwise(view.operation):
            found |= _convert(view.operation)
    return found


def _convert(op: mlir.Operation) -> bool:
    body = op.regions[0].blocks[0]
    extract = defining_op(list(body.operations)[-1].operands[0])
    if extract is None or extract.name != "tensor.extract" or extract.block != body:
        return False
    source, result = extract.operands[0], mlir.RankedTensorType(op.results[0].type)
    whole = mlir.RankedTensorType(source.type)
    if whole.rank != result.rank or source.owner == body:
        return False
    row = None
    for dim, index in enumerate(list(extract.operands)[1:]):
        owner = defining_op(index)
        if owner is not None and owner.name == "linalg.index":
            if mlir.IntegerAttr(owner.attributes["dim"]).value != dim or not _is_whole(op, source, dim):
                return False
        elif row is None and result.shape[dim] == 1 and (number := _number(op, index)) is not None:
            row = (dim, number)
        else:
            return False
    if row is None:
        return False
    with mlir.InsertionPoint(op), op.location:
        op.results[0].replace_all_uses_with(_slice(source, result, *row))
    op.erase()
    return True


def _is_whole(op: mlir.Operation, source: mlir.Value, dim: int) -> bool:
    """Whether the result is as large as what is gathered from."""
    whole, result = (mlir.RankedTensorType(value.type) for value in (source, op.results[0]))
    if not result.is_dynamic_dim(dim):
        return whole.shape[dim] == result.shape[dim]
    empty = defining_op(op.operands[len(op.operands) - 1])
    if empty is None or empty.name != "tensor.empty" or not whole.is_dynamic_dim(dim):
        return False
    size = defining_op(empty.operands[sum(result.is_dynamic_dim(one) for one in range(dim))])
    return (
        size is not None
        and size.name == "tensor.dim"
        and list(size.operands)[0] == source
        and (constant_int(size.operands[1]) == dim)
    )


def _number(op: mlir.Operation, index: mlir.Value) -> mlir.Value | None:
    """The scalar outside of a gather that an index in it is."""
    body = op.regions[0].blocks[0]
    owner = defining_op(index)
    if owner is not None and owner.block == body:
        if owner.name != "arith.index_cast":
            return None
        index = owner.operands[0]
        owner = defining_op(index)
    if index.owner != body:
        return None if owner is not None and owner.block == body else index
    inputs, _ = split_operands(op)
    at = list(body.arguments).index(index)
    made = defining_op(inputs[at]) if at < len(inputs) else None
    if made is None or made.name != "tensor.from_elements" or len(made.operands) != 1:
        return None
    return made.operands[0]


def _slice(source: mlir.Value, result: mlir.RankedTensorType, dim: int, number: mlir.Value) -> mlir.Value:
    whole, index = mlir.RankedTensorType(source.type), mlir.IndexType.get()
    place = number if number.type == index else arith.index_cast(index, number)
    sizes = [
        tensor.dim(source, index_constant(one)) if whole.is_dynamic_dim(one) else index_constant(whole.shape[one])
        for one in range(whole.rank)
    ]
    # Reads at computed positions stay inside.
    last = arith.subi(sizes[dim], index_constant(1))
    place = arith.maxsi(arith.minsi(place, last), index_constant(0))
    dynamic = mlir.ShapedType.get_dynamic_stride_or_offset()
    given = [size for one, size in enumerate(sizes) if one != dim and whole.is_dynamic_dim(one)]
    return mlir.Operation.create(
        "tensor.extract_slice",
        results=[result],
        operands=[source, place, *given],
        attributes={
            "static_offsets": mlir.DenseI64ArrayAttr.get([dynamic if one == dim else 0 for one in range(whole.rank)]),
            "static_sizes": mlir.DenseI64ArrayAttr.get([1 if one == dim else n for one, n in enumerate(whole.shape)]),
            "static_strides": mlir.DenseI64ArrayAttr.get([1] * whole.rank),
            "operandSegmentSizes": mlir.DenseI32ArrayAttr.get([1, 1, len(given), 0]),
        },
    ).results[0]
