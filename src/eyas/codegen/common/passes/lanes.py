"""Arithmetic on float scalars or vectors as Python expressions, so that an approximation reads like its formula.

`Real` and `Integer` wrap one MLIR value each; operators build `arith` and `math` ops at the current insertion point.
The same formula serves `f32`, `vector<16xf32>` and scalable vectors: constants take the shape of the value at hand.
An f64 has integers of 64 bits beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math

_CONTRACT = arith.FastMathFlags.contract
_ORDERED_LESS, _ORDERED_GREATER, _ORDERED_EQUAL = (
    arith.CmpFPredicate.OLT,
    arith.CmpFPredicate.OGT,
    arith.CmpFPredicate.OEQ,
)


@dataclass(frozen=True)
class Real:
    """An f32 or f64 value or vector. `fused` says whether the target has a fused multiply-add."""

    value: mlir.Value
    fused: bool = True

    def of(self, number: float) -> Real:
        """A constant of the same shape."""
        return Real(splat(self.value.type, mlir.FloatAttr.get(element_type(self.value.type), number)), self.fused)

    def __add__(self, other: float | Real) -> Real:
        return self._make(arith.addf(self.value, self._lift(other).value))

    def __sub__(self, other: float | Real) -> Real:
        return self._make(arith.subf(self.value, self._lift(other).value))

    def __rsub__(self, other: float) -> Real:
        return self.of(other) - self

    def __mul__(self, other: float | Real) -> Real:
        return self._make(arith.mulf(self.value, self._lift(other).value))

    __rmul__ = __mul__
    __radd__ = __add__

    def __truediv__(self, other: float | Real) -> Real:
        return self._make(arith.divf(self.value, self._lift(other).value))

    def __rtruediv__(self, other: float) -> Real:
        return self.of(other) / self

    def __lt__(self, other: float | Real) -> mlir.Value:
        return arith.cmpf(_ORDERED_LESS, self.value, self._lift(other).value)

    def __gt__(self, other: float | Real) -> mlir.Value:
        return arith.cmpf(_ORDERED_GREATER, self.value, self._lift(other).value)

    def equals(self, other: float | Real) -> mlir.Value:
        return arith.cmpf(_ORDERED_EQUAL, self.value, self._lift(other).value)

    def __abs__(self) -> Real:
        return self._make(math.absf(self.value))

    def with_sign_of(self, other: Real) -> Real:
        return self._make(math.copysign(self.value, other.value))

    def times_plus(self, factor: float | Real, term: float | Real) -> Real:
        """self * factor + term, with one rounding where the target can."""
        factor, term = self._lift(factor), self._lift(term)
        if self.fused:
            return self._make(math.fma(self.value, factor.value, term.value))
        return self * factor + term

    def polynomial(self, coefficients: Sequence[float]) -> Real:
        """c0 + c1 x + c2 x^2 + ... by Horner's rule. One rounding or two make no difference to its use: where
        nobody knows whether the target has a fused multiply-add, it may use it."""
        result = self.of(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            if self.fused:
                result = result.times_plus(self, coefficient)
                continue
            product = arith.mulf(result.value, self.value, fastmath=_CONTRACT)
            result = self._make(arith.addf(product, self.of(coefficient).value, fastmath=_CONTRACT))
        return result

    # A comparison with NaN is false, so both keep NaN, and both become one instruction on x86.

    def at_most(self, bound: float) -> Real:
        return choose(self > bound, self.of(bound), self)

    def at_least(self, bound: float) -> Real:
        return choose(self < bound, self.of(bound), self)

    def as_bits(self) -> Integer:
        return Integer(arith.bitcast(with_element(self.value.type, _beside(self.value.type)), self.value), self.fused)

    def _make(self, value: mlir.Value) -> Real:
        return Real(value, self.fused)

    def _lift(self, number: float | Real) -> Real:
        return number if isinstance(number, Real) else self.of(number)


@dataclass(frozen=True)
class Integer:
    """An i32 or i64 value or vector."""

    value: mlir.Value
    fused: bool = True

    def of(self, number: int) -> Integer:
        """A constant of the same shape."""
        return self._make(self._lift(number))

    def __add__(self, other: int | Integer) -> Integer:
        return self._make(arith.addi(self.value, self._lift(other)))

    def __sub__(self, other: int | Integer) -> Integer:
        return self._make(arith.subi(self.value, self._lift(other)))

    def __rsub__(self, other: int) -> Integer:
        return self._make(arith.subi(self._lift(other), self.value))

    def __and__(self, other: int | Integer) -> Integer:
        return self._make(arith.andi(self.value, self._lift(other)))

    def __xor__(self, other: int | Integer) -> Integer:
        return self._make(arith.xori(self.value, self._lift(other)))

    def __lshift__(self, count: int) -> Integer:
        return self._make(arith.shli(self.value, self._lift(count)))

    def __rshift__(self, count: int) -> Integer:
        """Arithmetic shift: the sign is kept."""
        return self._make(arith.shrsi(self.value, self._lift(count)))

    def shifted_left(self, count: Integer) -> Integer:
        return self._make(arith.shli(self.value, count.value))

    def shifted_right(self, count: int | Integer) -> Integer:
        """Logical shift: zeros come in."""
        return self._make(arith.shrui(self.value, self._lift(count)))

    def times(self, factor: Integer) -> tuple[Integer, Integer]:
        """The lower and the upper half of the product, both unsigned."""
        low, high = arith.mului_extended(self.value, factor.value)
        return self._make(low), self._make(high)

    def complement(self) -> Integer:
        return self ^ -1

    def at_most(self, bound: int) -> Integer:
        return self._make(arith.minsi(self.value, self._lift(bound)))

    def is_nonzero(self) -> mlir.Value:
        return arith.cmpi(arith.CmpIPredicate.ne, self.value, self._lift(0))

    def is_negative(self) -> mlir.Value:
        return arith.cmpi(arith.CmpIPredicate.slt, self.value, self._lift(0))

    def is_below(self, other: Integer) -> Integer:
        """1 where it is the lesser of two unsigned numbers, which after an addition is the carry; else 0."""
        below = arith.cmpi(arith.CmpIPredicate.ult, self.value, other.value)
        return self._make(arith.extui(self.value.type, below))

    def as_real(self) -> Real:
        """The same bits, read as a float."""
        return Real(arith.bitcast(with_element(self.value.type, _beside(self.value.type)), self.value), self.fused)

    def to_real(self, signed: bool = True) -> Real:
        """The nearest float."""
        convert = arith.sitofp if signed else arith.uitofp
        return Real(convert(with_element(self.value.type, _beside(self.value.type)), self.value), self.fused)

    def _make(self, value: mlir.Value) -> Integer:
        return Integer(value, self.fused)

    def _lift(self, number: int | Integer) -> mlir.Value:
        if isinstance(number, Integer):
            return number.value
        return splat(self.value.type, _int_attr(element_type(self.value.type), number))


def choose(condition: mlir.Value, if_true: Real, if_false: Real) -> Real:
    """Lane by lane, without a branch."""
    return Real(arith.select(condition, if_true.value, if_false.value), if_true.fused)


def pick(condition: mlir.Value, if_true: Integer, if_false: Integer) -> Integer:
    """`choose` for integers."""
    return Integer(arith.select(condition, if_true.value, if_false.value), if_true.fused)


def element_type(kind: mlir.Type) -> mlir.Type:
    return mlir.VectorType(kind).element_type if isinstance(kind, mlir.VectorType) else kind


def with_element(kind: mlir.Type, element: mlir.Type) -> mlir.Type:
    """The type with another element type and the same shape."""
    if not isinstance(kind, mlir.VectorType):
        return element
    shaped = mlir.VectorType(kind)
    return mlir.VectorType.get(shaped.shape, element, scalable=shaped.scalable_dims if shaped.scalable else None)


def splat(kind: mlir.Type, attribute: mlir.Attribute) -> mlir.Value:
    """A constant of the type, each element of it the attribute."""
    if isinstance(kind, mlir.VectorType):
        attribute = mlir.DenseElementsAttr.get_splat(kind, attribute)
    return arith.constant(kind, attribute)


def _beside(kind: mlir.Type) -> mlir.Type:
    """The integer that is as wide as a float, and the float that is as wide as an integer."""
    element = element_type(kind)
    if isinstance(element, mlir.FloatType):
        return mlir.IntegerType.get_signless(element.width)
    return mlir.F64Type.get() if mlir.IntegerType(element).width == 64 else mlir.F32Type.get()


def _int_attr(type_: mlir.Type, number: int) -> mlir.Attribute:
    # MLIR wants the signed reading of the bits.
    sign = 1 << (mlir.IntegerType(type_).width - 1)
    return mlir.IntegerAttr.get(type_, (number + sign) % (2 * sign) - sign)
