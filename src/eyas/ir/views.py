"""Where the elements of a tensor are in the tensor that it is a view of.

The index of each dimension is written in digits, as the time of day is: a digit is a loop, or a constant, with a size.
Reshapes only regroup digits, transposes permute dimensions, and slices add offsets, so that any chain of them is one
linear map from loops to the tensor at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.ir.structured import permutation_of
from eyas.ir.walk import defining_op


@dataclass(frozen=True)
class Digit:
    """A loop that counts to `size`, or (`loop` is None) a constant."""

    loop: int | None
    size: int
    value: int = 0


@dataclass(frozen=True)
class Dim:
    """The index of one dimension: its digits, most significant first, plus an offset. No digits: always the offset."""

    digits: tuple[Digit, ...] = ()
    offset: int = 0


Index = tuple[Dim, ...]


_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape", "flow.reshape")


def is_view(op: mlir.Operation) -> bool:
    """Whether `trace` may see through an op."""
    return op.name in (*_RESHAPES, "linalg.transpose", "tensor.extract_slice")


def digits_of(index: Index) -> list[Digit] | None:
    """All digits in order, or None when an offset keeps dimensions from being joined."""
    if any(dim.offset for dim in index):
        return None
    return [digit for dim in index for digit in dim.digits]


def regroup(index: Index, shape: Sequence[int]) -> Index | None:
    """The index of the same elements in another shape, or None when a digit would have to be split."""
    digits = digits_of(index)
    if digits is None:
        return None
    dims: list[Dim] = []
    for size in reversed(shape):
        taken: list[Digit] = []
        reached = 1
        while reached < size and digits:
            taken.insert(0, digits.pop())
            reached *= taken[0].size
        if reached != size:
            return None
        dims.insert(0, Dim(tuple(taken)))
    return None if digits else tuple(dims)


def trace(
    value: mlir.Value, index: Index, through: Callable[[mlir.Operation], bool] = lambda op: False
) -> tuple[mlir.Value, Index]:
    """Follows a value through reshapes, transposes and slices to the tensor that holds its elements.

    `through` may accept other ops with one operand of the same shape. It ends before a tensor of which a loop would
    read the first elements of a longer dimension: linalg takes the length of such a dimension for the loop's."""
    while True:
        op = defining_op(value)
        above = None if op is None or not op.operands else _above(op, index, through)
        if op is None or above is None or not _fits(above, mlir.RankedTensorType(op.operands[0].type).shape):
            return value, index
        value, index = op.operands[0], above


def _fits(index: Index, shape: Sequence[int]) -> bool:
    """Whether each dimension whose index is a loop alone is as long as the loop."""
    for dim, size in zip(index, shape, strict=True):
        start = dim.offset
        loops, stride = [], 1
        for digit in reversed(dim.digits):
            if digit.loop is None:
                start += digit.value * stride
            else:
                loops.append((digit, stride))
            stride *= digit.size
        if len(loops) == 1 and not start and loops[0][1] == 1 and loops[0][0].size != size:
            return False
    return True


def _above(op: mlir.Operation, index: Index, through: Callable[[mlir.Operation], bool]) -> Index | None:
    if not isinstance(op.operands[0].type, mlir.RankedTensorType):
        return None
    source = mlir.RankedTensorType(op.operands[0].type)
    if not source.has_static_shape:
        return None
    if op.name in _RESHAPES:
        return regroup(index, source.shape)
    if op.name == "linalg.transpose":
        permutation = permutation_of(op)
        return tuple(index[permutation.index(dim)] for dim in range(source.rank))
    if op.name == "tensor.extract_slice":
        return _above_slice(op, index, source)
    return index if through(op) else None


def _above_slice(op: mlir.Operation, index: Index, source: mlir.RankedTensorType) -> Index | None:
    offsets, sizes, strides = (
        list(mlir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
    )
    if len(op.operands) != 1 or set(strides) != {1} or mlir.RankedTensorType(op.results[0].type).rank != source.rank:
        return None
    dims: list[Dim] = []
    for dim, offset, size, whole in zip(index, offsets, sizes, source.shape, strict=True):
        if size == whole:
            dims.append(dim)
        elif size == 1:
            dims.append(Dim((Digit(None, whole, offset),)))
        else:
            dims.append(Dim(dim.digits, dim.offset + offset))
    return tuple(dims)


def linear_map(index: Index, loops: int) -> mlir.AffineMap:
    """The affine map from loops to the index."""
    results = []
    for dim in index:
        expr, stride = mlir.AffineConstantExpr.get(dim.offset), 1
        for digit in reversed(dim.digits):
            if digit.loop is None:
                expr = expr + digit.value * stride
            else:
                expr = mlir.AffineDimExpr.get(digit.loop) * stride + expr
            stride *= digit.size
        results.append(expr)
    return mlir.AffineMap.get(loops, 0, results)


def is_contiguous_along(index: Index, loop: int) -> bool:
    """Whether neighbours along a loop are neighbours in memory."""
    return bool(index) and bool(index[-1].digits) and index[-1].digits[-1].loop == loop
