"""Rows of a softmax of which some scores were seen: maxima, sums and weighted values, and how two such are joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math

from eyas.codegen.gpu.held_tile import Tile

_SAME_ZEROS = arith.FastMathFlags.nsz  # which of two zeros a maximum is, nobody asks


@dataclass(frozen=True)
class SoftmaxState:
    """For each row: the maximum, the sum of exp(score - maximum), and the sums of values with these as weights."""

    maxima: list[mlir.Value]
    sums: list[mlir.Value]
    values: Tile

    @property
    def flat(self) -> list[mlir.Value]:
        """All of it in a row, as loops carry it."""
        return [*self.maxima, *self.sums, *chain.from_iterable(self.values)]

    @staticmethod
    def of(values: list[mlir.Value], rows: int) -> SoftmaxState:
        """The inverse of `flat`."""
        return SoftmaxState(values[:rows], values[rows : 2 * rows], in_rows(values[2 * rows :], rows))

    def joined(self, other: SoftmaxState) -> SoftmaxState:
        """The state after the scores of both were seen."""
        maxima = [maximum(*pair) for pair in zip(self.maxima, other.maxima, strict=True)]
        mine, its = self.scaled(maxima), other.scaled(maxima)
        sums = [add(*pair) for pair in zip(mine.sums, its.sums, strict=True)]
        rows = zip(mine.values, its.values, strict=True)
        return SoftmaxState(maxima, sums, [[add(*pair) for pair in zip(*row, strict=True)] for row in rows])

    def scaled(self, maxima: list[mlir.Value]) -> SoftmaxState:
        """The same with other maxima, which are not smaller."""
        factors = [exp_of_difference(old, finite(new)) for old, new in zip(self.maxima, maxima, strict=True)]
        sums = [arith.MulFOp(*pair).result for pair in zip(self.sums, factors, strict=True)]
        values = [_times(row, factor) for row, factor in zip(self.values, factors, strict=True)]
        return SoftmaxState(maxima, sums, values)


def in_rows(values: list[mlir.Value], rows: int) -> Tile:
    """A tile of what lies in a row."""
    width = len(values) // rows
    return [values[row * width : (row + 1) * width] for row in range(rows)]


def _times(values: list[mlir.Value], factor: mlir.Value) -> list[mlir.Value]:
    """Values times a factor, in their own type."""
    by = converted(factor, values[0].type)
    return [arith.MulFOp(value, by).result for value in values]


def finite(highest: mlir.Value) -> mlir.Value:
    """0 for the maximum of nothing, so that what is subtracted from -inf gives -inf and not NaN."""
    lowest, zero = (
        arith.ConstantOp(highest.type, mlir.FloatAttr.get(highest.type, number)).result
        for number in (float("-inf"), 0.0)
    )
    is_lowest = arith.CmpFOp(arith.CmpFPredicate.OEQ, highest, lowest).result
    return arith.SelectOp(is_lowest, zero, highest).result


def folded(join: Callable[[mlir.Value, mlir.Value], mlir.Value], values: list[mlir.Value]) -> mlir.Value:
    total = values[0]
    for value in values[1:]:
        total = join(total, value)
    return total


def maximum(one: mlir.Value, other: mlir.Value) -> mlir.Value:
    return arith.MaximumFOp(one, other, fastmath=_SAME_ZEROS).result


def add(one: mlir.Value, other: mlir.Value) -> mlir.Value:
    return arith.AddFOp(one, other).result


def exp_of_difference(value: mlir.Value, shift: mlir.Value) -> mlir.Value:
    return math.ExpOp(arith.SubFOp(value, shift).result).result


def converted(value: mlir.Value, type_: mlir.Type) -> mlir.Value:
    """The same number as another float."""
    if value.type == type_:
        return value
    wider = mlir.FloatType(type_).width > mlir.FloatType(value.type).width
    return (arith.ExtFOp if wider else arith.TruncFOp)(type_, value).result
