"""How much arithmetic a dispatch does: contractions and convolutions, two operations for each multiply and add."""

from __future__ import annotations

from math import prod

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg

_ADDS = {"arith.addf": 2, "arith.addi": 2, "complex.add": 8}
_MULTIPLIES = {"arith.mulf", "arith.muli", "complex.mul"}


def count_flops(function: mlir.OpView) -> int | None:
    """Operations of all multiply-add reductions below `function`; None when a size of one of them is known only at run
    time. Elementwise work is not counted."""
    total: int | None = 0

    def visit(op: mlir.Operation) -> mlir.WalkResult:
        nonlocal total
        if op.name.startswith("linalg.") and len(op.regions) == 1 and len(op.results) > 0:
            count = _flops_of(op)
            total = None if total is None or count is None else total + count
            return mlir.WalkResult.SKIP
        return mlir.WalkResult.ADVANCE

    function.operation.walk(visit)
    return total


def _flops_of(op: mlir.Operation) -> int | None:
    each = _flops_of_a_point(op.regions[0].blocks[0])
    if not each:
        return 0
    maps = [mlir.AffineMapAttr(one).value for one in linalg.get_indexing_maps(op.opview)]
    sizes: list[int | None] = [None] * maps[0].n_dims
    for map_, operand in zip(maps, op.operands, strict=True):
        if not isinstance(operand.type, mlir.ShapedType):
            continue
        shape = mlir.ShapedType(operand.type)
        for dim, expr in enumerate(map_.results):
            if isinstance(expr, mlir.AffineDimExpr) and not shape.is_dynamic_dim(dim):
                sizes[expr.position] = shape.get_dim_size(dim)
    written = {expr.position for expr in maps[-1].results if isinstance(expr, mlir.AffineDimExpr)}
    if len(written) == len(sizes):
        return 0  # nothing is summed
    return None if None in sizes else each * prod(size for size in sizes if size is not None)


def _flops_of_a_point(body: mlir.Block) -> int:
    """2 for a body that adds a product to the old value, 8 for complex numbers, else 0."""
    operations = [op.operation for op in body.operations]
    if not any(op.name in _MULTIPLIES for op in operations):
        return 0
    accumulators = set(body.arguments)
    counts = [_ADDS[op.name] for op in operations if op.name in _ADDS and accumulators & set(op.operands)]
    return max(counts, default=0)
