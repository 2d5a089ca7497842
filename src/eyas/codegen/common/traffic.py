"""How many bytes a dispatch has to move at least: each operand read once, each result written once."""

from __future__ import annotations

from math import prod

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg

from eyas.dialects import flow
from eyas.ir.values import element_bytes
from eyas.ir.walk import entry_block, find_ops, is_tensor

_LANE_BYTES = 4


def count_bytes(function: mlir.OpView) -> int | None:
    """Bytes of all operands and results of a dispatch function; None when a size is known only at run time.

    Of an operand that is read at computed positions only, as an embedding is, no more than the positions count; of one
    that is cut, the slices; of a result that is written in place, the parts that are.
    """
    arguments = [argument for argument in entry_block(function).arguments if is_tensor(argument)]
    results = list(mlir.FunctionType(mlir.TypeAttr(function.attributes["function_type"]).value).results)
    sizes: list[int | None] = []
    if flow.IN_PLACE in function.attributes:
        pairs = list(mlir.DenseI64ArrayAttr(function.attributes[flow.IN_PLACE]))
        arguments = [argument for index, argument in enumerate(arguments) if index not in pairs[::2]]
        results = [type_ for index, type_ in enumerate(results) if index not in pairs[1::2]]
        sizes += [bytes_of(op.operands[0].type) for op in find_ops(function, "tensor.insert_slice")]
    sizes += [_bytes_read(argument) for argument in arguments]
    sizes += [bytes_of(type_) for type_ in results]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def bytes_of(type_: mlir.Type) -> int | None:
    """The bytes of a tensor; None when its shape is dynamic."""
    tensor = mlir.RankedTensorType(type_)
    if not tensor.has_static_shape:
        return None
    return prod(tensor.shape) * element_bytes(tensor.element_type)


def held_bytes(elements: int, type_: mlir.Type) -> int:
    """What so many elements take of a core's near memory while it works on them.

    Those that are narrower than a lane count as one: they are widened to be computed with.
    """
    return elements * max(_LANE_BYTES, element_bytes(type_))


def _bytes_read(argument: mlir.Value) -> int | None:
    whole = bytes_of(argument.type)
    parts = [_bytes_of_use(use.owner.operation) for use in argument.uses]
    if whole is None or any(part is None for part in parts):
        return whole
    return min(whole, sum(part for part in parts if part is not None))


def _bytes_of_use(op: mlir.Operation) -> int | None:
    """What one op reads of a tensor; None for all of it, or when that is not known."""
    if op.name == "tensor.extract_slice":
        return bytes_of(op.results[0].type)
    if op.name != "tensor.extract":
        return None
    each = element_bytes(op.results[0].type)
    around = op.parent
    while around is not None and not around.name.startswith("linalg.") and around.name != "func.func":
        if around.name.startswith("scf."):
            return None
        around = around.operation.parent
    if around is None or around.name == "func.func":
        return each
    points = loop_points(around.operation)
    return None if points is None else each * points


def loop_points(op: mlir.Operation) -> int | None:
    """Iterations of a linalg op, when its sizes are static."""
    maps = [mlir.AffineMapAttr(one).value for one in linalg.get_indexing_maps(op.opview)]
    sizes: dict[int, int] = {}
    for map_, operand in zip(maps, op.operands, strict=True):
        if not is_tensor(operand):
            continue
        tensor = mlir.RankedTensorType(operand.type)
        for dim, expr in enumerate(map_.results):
            if isinstance(expr, mlir.AffineDimExpr) and not tensor.is_dynamic_dim(dim):
                sizes[expr.position] = tensor.get_dim_size(dim)
    return prod(sizes.values()) if len(sizes) == maps[0].n_dims else None
