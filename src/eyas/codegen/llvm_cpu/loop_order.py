"""The order of plain loops: LLVM makes vectors of the innermost one, so memory should be contiguous along it."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Unsupported, generic_iterators, generic_maps, linear_expr
from eyas.ir import run_upstream
from eyas.ir.walk import find_ops

# Shorter loops fill no vector.
_LONG = 8


def order_loops(module: mlir.Module) -> None:
    """Puts a long loop along which all operands are contiguous innermost, where an op has one. What is innermost and
    added up may be added in any order, as in other strategies.

        c[i, j] += a[i, k] * b[k, j]    runs as    for i, for k, for j
    """
    run_upstream(module, "linalg-generalize-named-ops")
    for op in find_ops(module, "linalg.generic"):
        kinds = generic_iterators(op)
        inner = _innermost(op, kinds)
        if inner is None:
            continue
        if inner != len(kinds) - 1:
            _move_inside(op, inner)
        if kinds[inner] == "reduction":
            _reassociate(op)


def _innermost(op: mlir.OpView, kinds: list[str]) -> int | None:
    """The loop to put inside: one of the result rather than a sum, the last of several."""
    lengths = _lengths(op, len(kinds))
    for kind in ("parallel", "reduction"):
        for loop in reversed(range(len(kinds))):
            length = lengths[loop]
            if kinds[loop] != kind or length is None or 0 <= length < _LONG:
                continue
            if all(_is_even(operand, map_, loop) for operand, map_ in zip(op.operands, generic_maps(op), strict=True)):
                return loop
    return None


def _lengths(op: mlir.OpView, count: int) -> list[int | None]:
    """Steps of each loop, negative where they are known at run time only; None where no operand tells."""
    lengths: list[int | None] = [None] * count
    for operand, map_ in zip(op.operands, generic_maps(op), strict=True):
        for position, expr in enumerate(map_.results):
            if isinstance(expr, mlir.AffineDimExpr):
                type_ = mlir.RankedTensorType(operand.type)
                lengths[expr.position] = -1 if type_.is_dynamic_dim(position) else type_.get_dim_size(position)
    return lengths


def _is_even(operand: mlir.Value, map_: mlir.AffineMap, loop: int) -> bool:
    """Whether neighbours along a loop are the same element, or neighbours in memory."""
    try:
        steps = [linear_expr(expr).coefficients.get(loop, 0) for expr in map_.results]
    except Unsupported:
        return False
    while steps and not steps[-1] and mlir.RankedTensorType(operand.type).shape[len(steps) - 1] == 1:
        steps.pop()
    return not any(steps) or (steps[-1] == 1 and not any(steps[:-1]))


def _move_inside(op: mlir.OpView, loop: int) -> None:
    maps, kinds = generic_maps(op), list(mlir.ArrayAttr(op.attributes["iterator_types"]))
    order = [other for other in range(len(kinds)) if other != loop] + [loop]
    places = [mlir.AffineDimExpr.get(order.index(old)) for old in range(len(kinds))]
    moved = mlir.AffineMap.get(len(kinds), 0, places)
    changed = [mlir.AffineMap.get(len(kinds), 0, [expr.compose(moved) for expr in map_.results]) for map_ in maps]
    op.attributes["indexing_maps"] = mlir.ArrayAttr.get([mlir.AffineMapAttr.get(map_) for map_ in changed])
    op.attributes["iterator_types"] = mlir.ArrayAttr.get([kinds[old] for old in order])
    for index in find_ops(op, "linalg.index"):
        dim = index.attributes["dim"]
        index.attributes["dim"] = mlir.IntegerAttr.get(dim.type, order.index(dim.value))


def _reassociate(op: mlir.OpView) -> None:
    """Lets sums that a body yields be added in another order."""
    yielded = list(op.regions[0].blocks[0].operations)[-1]
    for value in yielded.operands:
        owner = value.owner
        if not isinstance(owner, mlir.Block) and owner.name == "arith.addf":
            owner.attributes["fastmath"] = mlir.Attribute.parse("#arith.fastmath<reassoc>")
