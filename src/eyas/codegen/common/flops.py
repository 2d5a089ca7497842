"""How much arithmetic a dispatch does: contractions and convolutions, two operations for each multiply and add."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg

from eyas.codegen.common.places import DIM_ARGS
from eyas.codegen.common.sizes import ONE, ZERO, Size, product
from eyas.ir.transforms import is_transform
from eyas.ir.walk import constant_int, defining_op, entry_block, is_tensor

_ADDS = {"arith.addf": 2, "arith.addi": 2, "complex.add": 8}
_MULTIPLIES = {"arith.mulf", "arith.muli", "complex.mul"}


def count_flops(function: mlir.OpView) -> int | None:
    """Operations of all multiply-add reductions below `function`; None when a size of one of them is known only at run
    time. Elementwise work is not counted."""
    terms = flop_terms(function)
    if terms is None or not all(term.is_static for term in terms):
        return None
    return sum(term.factor for term in terms)


def flop_terms(function: mlir.OpView) -> list[Size] | None:
    """The same as a sum of products of push constants, one for each op that counts; None when one is none."""
    terms: list[Size | None] = []

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        if op.name.startswith("linalg.") and len(op.regions) == 1 and len(op.results) > 0:
            each, often = _flops_of(op, function), _times(op, function)
            terms.append(each if each == ZERO else None if each is None or often is None else each * often)
            return mlir.WalkResult.SKIP
        return mlir.WalkResult.ADVANCE

    function.operation.walk(visit)
    known = [term for term in terms if term is not None]
    return [term for term in known if term != ZERO] if len(known) == len(terms) else None


def _times(op: mlir.Operation, function: mlir.OpView) -> Size | None:
    """How often an op runs: once, unless it is in a loop that counts; None when that is not known."""
    often, around = ONE, op.parent
    while around is not None and around.name != "func.func":
        loop = around.operation
        if loop.name == "scf.for":
            count = _scalar_size(loop.operands[1], function)
            if count is None or constant_int(loop.operands[0]) != 0 or constant_int(loop.operands[2]) != 1:
                return None
            often = often * count
        around = loop.parent
    return often


def _flops_of(op: mlir.Operation, function: mlir.OpView) -> Size | None:
    each = _flops_of_a_point(op.regions[0].blocks[0])
    if not each or is_transform(op):  # the matrices of a transform are written out as a few additions
        return ZERO
    maps = [mlir.AffineMapAttr(one).value for one in linalg.get_indexing_maps(op.opview)]
    sizes: list[Size | None] = [None] * maps[0].n_dims
    for map_, operand in zip(maps, op.operands, strict=True):
        if not is_tensor(operand):
            continue
        for dim, expr in enumerate(map_.results):
            if isinstance(expr, mlir.AffineDimExpr):
                size, known = _size_of(operand, dim, function), sizes[expr.position]
                # Operands agree; a static size is the simplest way to say it.
                if known is None or (size is not None and size.is_static):
                    sizes[expr.position] = size
    written = {expr.position for expr in maps[-1].results if isinstance(expr, mlir.AffineDimExpr)}
    if len(written) == len(sizes):
        return ZERO  # nothing is summed
    known = [size for size in sizes if size is not None]
    return product(known) * each if len(known) == len(sizes) else None


def _size_of(value: mlir.Value, dim: int, function: mlir.OpView) -> Size | None:
    """A tensor's dimension as a product of push constants; None when it is not known to be one."""
    type_ = mlir.RankedTensorType(value.type)
    if not type_.is_dynamic_dim(dim):
        return Size(type_.get_dim_size(dim))
    before = sum(type_.is_dynamic_dim(other) for other in range(dim))  # dynamic dimensions of it before this one
    op = defining_op(value)
    if op is None:
        if DIM_ARGS not in function.attributes or value.owner != entry_block(function):
            return None
        for argument in entry_block(function).arguments:
            if argument == value:
                break
            before += _dynamic_dims(argument)
        return Size(1, (list(mlir.DenseI64ArrayAttr(function.attributes[DIM_ARGS]))[before],))
    if op.name == "tensor.empty":
        return _scalar_size(op.operands[before], function)
    if op.name.startswith("linalg."):
        return _size_of(op.operands[len(op.operands) - len(op.results) + list(op.results).index(value)], dim, function)
    return None


def _dynamic_dims(value: mlir.Value) -> int:
    if not is_tensor(value):
        return 0
    type_ = mlir.RankedTensorType(value.type)
    return sum(type_.is_dynamic_dim(dim) for dim in range(type_.rank))


def _scalar_size(value: mlir.Value, function: mlir.OpView) -> Size | None:
    if defining_op(value) is not None:
        constant = constant_int(value)
        return None if constant is None else Size(constant)
    scalars = [argument for argument in entry_block(function).arguments if not is_tensor(argument)]
    return Size(1, (scalars.index(value),)) if value in scalars else None


def _flops_of_a_point(body: mlir.Block) -> int:
    """2 for a body that adds a product to the old value, 8 for complex numbers, else 0."""
    operations = [op.operation for op in body.operations]
    if not any(op.name in _MULTIPLIES for op in operations):
        return 0
    accumulators = set(body.arguments)
    counts = [_ADDS[op.name] for op in operations if op.name in _ADDS and accumulators & set(op.operands)]
    return max(counts, default=0)
