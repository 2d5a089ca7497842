"""`compose-copies`: what is moved several times is moved once, and filters that change lie as they are moved best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import linalg

from eyas.codegen.common.kernel import LinearExpr, Unsupported, linear_expr
from eyas.ir import Pass, run_upstream
from eyas.ir.structured import copy_body, empty_like, generic, is_elementwise
from eyas.ir.walk import constant_int, defining_op, find_ops, is_tensor
from eyas.passes.dispatch.grouping import indexing_maps, is_plain_copy

_CONV = "linalg.conv_2d_nhwc_hwcf"
_MOVES = ("linalg.transpose", "linalg.generic", "tensor.extract_slice")


@dataclass(frozen=True)
class ComposeCopies(Pass):
    """Makes one copy of a chain of transposes, flips and slices.

        %a = transpose %w [1, 0, 2, 3]
        %b = linalg.generic {extract %a[i, j, 2 - k, 2 - l]}   =>   %c = linalg.generic {copy of %w[l, k, 2 - i, 2 - j]}
        %c = transpose %b [2, 3, 0, 1]

    A convolution whose filter is made by such a copy in each call (in training) reads it as [channels, window,
    outputs]: an element of a filter [outputs, channels, window] then moves within a matrix [outputs, all else], and not
    from tap to tap through the whole of it.
    """

    name: ClassVar[str] = "compose-copies"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "linalg.generic"):
            _read_through_map(op.operation)
        run_upstream(module, "canonicalize,cse")
        for op in find_ops(module, *_MOVES):
            _compose(op.operation)
        for op in find_ops(module, _CONV):
            _order_filter(op)


@dataclass(frozen=True)
class _Copy:
    """A tensor of elements of `source`: at each index, the one at `exprs`."""

    source: mlir.Value
    exprs: list[mlir.AffineExpr]


def _copy_of(op: mlir.Operation | None) -> _Copy | None:
    """What an op copies, when its shape is known and it does nothing else."""
    if op is None or op.name not in _MOVES or len(op.results) != 1:
        return None
    if not mlir.RankedTensorType(op.results[0].type).has_static_shape:
        return None
    if op.name == "tensor.extract_slice":
        return _copy_of_slice(op)
    maps = indexing_maps(op)
    if maps is None or len(op.operands) != 2 or not is_tensor(op.operands[0]):
        return None
    if op.name == "linalg.generic" and not (is_elementwise(op) and is_plain_copy(op)):
        return None
    copy = _Copy(op.operands[0], list(maps[0].results))
    return copy if sorted(_walked(copy)) == list(range(maps[0].n_dims)) else None  # repetitions are read in place


def _copy_of_slice(op: mlir.Operation) -> _Copy | None:
    source, result = (mlir.RankedTensorType(value.type) for value in (op.operands[0], op.results[0]))
    if len(op.operands) != 1 or source.rank != result.rank:
        return None
    offsets, strides = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "strides")
    )
    dims = [mlir.AffineDimExpr.get(dim) for dim in range(result.rank)]
    exprs = [dim * stride + offset for dim, stride, offset in zip(dims, strides, offsets, strict=True)]
    # Through a map: a sum that is no sum any more, such as d0 + 0, still says that it is one, and asking for its parts
    # is the end of the process.
    return _Copy(op.operands[0], list(mlir.AffineMap.get(result.rank, 0, exprs).results))


def _compose(op: mlir.Operation) -> None:
    """Replaces a copy of copies by one. A slice alone, or of what others need as well, stays a view."""
    outer = _copy_of(op)
    if outer is None or not list(op.results[0].uses):
        return
    copy, depth = outer, 0
    while (inner := _copy_of(owner := defining_op(copy.source))) is not None:
        assert owner is not None
        if owner.name == "tensor.extract_slice" or len(list(owner.results[0].uses)) > 1:
            break
        rank = len(mlir.RankedTensorType(op.results[0].type).shape)
        inside = mlir.AffineMap.get(rank, 0, copy.exprs)
        copy, depth = _Copy(inner.source, [expr.compose(inside) for expr in inner.exprs]), depth + 1
    shape = list(mlir.RankedTensorType(op.results[0].type).shape)
    if depth and _covers(copy, shape):
        with mlir.InsertionPoint(op), op.location:
            made = _make(copy, shape)
        op.results[0].replace_all_uses_with(made)


def _covers(copy: _Copy, shape: Sequence[int]) -> bool:
    """Whether a generic op can make the copy: a loop that is by itself the index of a dimension has that dimension's
    size, so the first elements of a longer one are a slice's to take."""
    exprs = mlir.AffineMap.get(len(shape), 0, copy.exprs).results
    sizes = mlir.RankedTensorType(copy.source.type).shape
    plain = [(expr, size) for expr, size in zip(exprs, sizes, strict=True) if isinstance(expr, mlir.AffineDimExpr)]
    return all(shape[expr.position] == size for expr, size in plain)


def _make(copy: _Copy, shape: Sequence[int]) -> mlir.Value:
    identity = mlir.AffineMap.get_identity(len(shape))
    output = empty_like(copy.source, list(shape), range(len(shape)))
    new = generic(
        [copy.source],
        [output],
        [mlir.AffineMap.get(len(shape), 0, copy.exprs), identity],
        ["parallel"] * len(shape),
    )
    block = new.regions[0].blocks[0]
    with mlir.InsertionPoint(block):
        linalg.YieldOp([block.arguments[0]])
    return new.results[0]


def _read_through_map(op: mlir.Operation) -> None:
    """A body that does nothing but extract an element at a place that is linear in the indices: a copy."""
    if not is_elementwise(op) or not mlir.RankedTensorType(op.results[0].type).has_static_shape:
        return
    *before, last = (view.operation for view in op.regions[0].blocks[0].operations)
    extract = defining_op(last.operands[0])
    if extract is None or extract.name != "tensor.extract" or extract.block != op.regions[0].blocks[0]:
        return
    places = [_linear(value, op.regions[0].blocks[0]) for value in list(extract.operands)[1:]]
    shape = list(mlir.RankedTensorType(op.results[0].type).shape)
    source = mlir.RankedTensorType(extract.operands[0].type)
    if not source.has_static_shape or any(inner.name.startswith("cf.") for inner in before):
        return
    if any(place is None for place in places):
        return
    exprs = []
    for place, size in zip(places, source.shape, strict=True):
        assert place is not None
        ends = [sorted((0, factor * (shape[loop] - 1))) for loop, factor in place.coefficients.items()]
        if place.constant + sum(low for low, _ in ends) < 0 or place.constant + sum(high for _, high in ends) >= size:
            return  # clamped, or never reached
        expr: mlir.AffineExpr = mlir.AffineConstantExpr.get(place.constant)
        for loop, factor in place.coefficients.items():
            expr = expr + mlir.AffineDimExpr.get(loop) * factor
        exprs.append(expr)
    copy = _Copy(extract.operands[0], exprs)
    if not _covers(copy, shape):
        return
    with mlir.InsertionPoint(op), op.location:
        made = _make(copy, shape)
    op.results[0].replace_all_uses_with(made)


def _linear(value: mlir.Value, body: mlir.Block) -> LinearExpr | None:
    """An index as a sum of multiples of the loops' indices."""
    number = constant_int(value)
    if number is not None:
        return LinearExpr({}, number)
    op = defining_op(value)
    if op is None or op.block != body:
        return None
    if op.name == "linalg.index":
        return LinearExpr({int(op.attributes["dim"].value): 1}, 0)
    if op.name not in ("arith.addi", "arith.subi"):
        return None
    left, right = (_linear(operand, body) for operand in op.operands)
    if left is None or right is None:
        return None
    sign = 1 if op.name == "arith.addi" else -1
    coefficients = dict(left.coefficients)
    for loop, factor in right.coefficients.items():
        coefficients[loop] = coefficients.get(loop, 0) + sign * factor
    return LinearExpr(coefficients, left.constant + sign * right.constant)


def _order_filter(op: mlir.OpView) -> None:
    """The convolution as a generic op on a filter [channels, window, outputs]."""
    filter_ = op.operands[1]
    copy = _copy_of(defining_op(filter_))
    maps = indexing_maps(op.operation)
    if copy is None or maps is None or not _moves_data(copy):
        return
    order = [2, 0, 1, 3]
    shape = [mlir.RankedTensorType(filter_.type).shape[p] for p in order]
    # Dimension order[i] of the old filter is dimension i of the new one.
    place = mlir.AffineMap.get(4, 0, [mlir.AffineDimExpr.get(order.index(dim)) for dim in range(4)])
    with mlir.InsertionPoint(op), op.operation.location:
        moved = _make(_Copy(copy.source, [expr.compose(place) for expr in copy.exprs]), shape)
        read = mlir.AffineMap.get(maps[1].n_dims, 0, [list(maps[1].results)[p] for p in order])
        written = {expr.position for expr in maps[2].results if isinstance(expr, mlir.AffineDimExpr)}
        kinds = ["parallel" if loop in written else "reduction" for loop in range(maps[2].n_dims)]
        new = generic([op.operands[0], moved], [op.operands[2]], [maps[0], read, maps[2]], kinds)
        copy_body(op, new)
    op.results[0].replace_all_uses_with(new.results[0])
    op.operation.erase()


def _moves_data(copy: _Copy) -> bool:
    """Not only a slice of a filter that has the convolution's order."""
    return _walked(copy) != list(range(4))


def _walked(copy: _Copy) -> list[int]:
    """The loops of a copy in the order of the source's dimensions; none when it is not linear."""
    try:
        return [loop for expr in copy.exprs for loop in linear_expr(expr).coefficients]
    except Unsupported:
        return []
