"""Numbers of 8 bits and fewer as arithmetic: no machine of ours computes with them, so programs convert.

A value is its bits in the low end of an i8. `decode` gives the number (f32 for floats, i8 for integers), `encode` the
bits nearest to one. The formats are those of OCP's OFP8 and MX and of ONNX; `fnuz` ones have no infinities, no negative
zero, and NaN where negative zero would be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith


@dataclass(frozen=True)
class FloatFormat:
    """Sign, exponent and mantissa; codes are without the sign. None where the format has no such value."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int
    infinity: int | None
    nan: int | None
    unsigned_zero: bool = False

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits


FLOATS = {
    "f8e4m3fn": FloatFormat(4, 3, 7, 0x7E, None, 0x7F),
    "f8e4m3fnuz": FloatFormat(4, 3, 8, 0x7F, None, 0x80, unsigned_zero=True),
    "f8e5m2": FloatFormat(5, 2, 15, 0x7B, 0x7C, 0x7E),
    "f8e5m2fnuz": FloatFormat(5, 2, 16, 0x7F, None, 0x80, unsigned_zero=True),
    # Without NaN and infinities: what is too large becomes the largest, NaN becomes zero.
    "f4e2m1": FloatFormat(2, 1, 1, 0x7, None, None),
}
HALF = FloatFormat(5, 10, 15, 0x7BFF, 0x7C00, 0x7E00)
"""f16, for devices that have none: `decode_float` and `encode_float` take it as they take any other."""
# Name -> (bits, signed).
INTEGERS = {"i4": (4, True), "u4": (4, False), "i2": (2, True), "u2": (2, False)}
# An exponent alone: 2^(code - 127), 0xFF is NaN.
SCALE = "f8e8m0"
NAMES = (*FLOATS, SCALE, *INTEGERS)


def decode(name: str, bits: mlir.Value) -> mlir.Value:
    """The number that an i8 stands for: an f32, or an i8 for integers. Bits above the type's width are ignored."""
    if name in INTEGERS:
        width, signed = INTEGERS[name]
        byte = _Integers(8)
        high = byte.shl(bits, 8 - width)
        return arith.shrsi(high, byte.of(8 - width)) if signed else byte.shr(high, 8 - width)
    i = _Integers(32)
    code = arith.extui(i.type, bits)
    if name == SCALE:
        # The smallest is below the normal f32.
        plain = i.select(i.compare("eq", code, 0), 0x00400000, i.shl(code, 23))
        return arith.bitcast(mlir.F32Type.get(), i.select(i.compare("eq", code, 0xFF), 0x7FC00000, plain))
    return decode_float(FLOATS[name], code)


def decode_float(kind: FloatFormat, code: mlir.Value) -> mlir.Value:
    """The f32 that an i32 stands for; bits above the type's width are ignored."""
    i = _Integers(32)
    mantissa, sign_place = kind.mantissa_bits, kind.width - 1
    code = i.and_(code, (1 << kind.width) - 1)
    magnitude = i.and_(code, (1 << sign_place) - 1)
    normal = i.add(i.shl(magnitude, 23 - mantissa), (127 - kind.bias) << 23)
    f32 = mlir.F32Type.get()
    quantum = arith.constant(f32, 2.0 ** (1 - kind.bias - mantissa))
    subnormal = arith.bitcast(i.type, arith.mulf(arith.uitofp(f32, magnitude), quantum))
    number = i.select(i.compare("ult", magnitude, 1 << mantissa), subnormal, normal)
    if kind.infinity is not None:
        number = i.select(i.compare("eq", magnitude, kind.infinity), 0x7F800000, number)
        number = i.select(i.compare("ugt", magnitude, kind.infinity), 0x7FC00000, number)
    elif kind.nan is not None and not kind.unsigned_zero:
        number = i.select(i.compare("eq", magnitude, kind.nan), 0x7FC00000, number)
    signed = i.or_(number, i.shl(i.shr(code, sign_place), 31))
    if kind.unsigned_zero:
        signed = i.select(i.compare("eq", code, kind.nan), 0x7FC00000, signed)
    return arith.bitcast(f32, signed)


def encode(name: str, value: mlir.Value, saturate: bool = False, rounding: str = "nearest") -> mlir.Value:
    """The i8 that stands for the number nearest to `value`, ties to even; integers are cut to their low bits.

    `value` is a float or a signed integer of any width; an f64 is rounded to f32 first, as all frameworks do. What is
    too large becomes infinity, or NaN where there is none; with `saturate` the largest number. `rounding` is for
    `f8e8m0`: `nearest`, `up` or `down`, of the magnitude.
    """
    if name in INTEGERS:
        return _encode_integer(value, INTEGERS[name][0])
    value = _as_f32(value)
    if name == SCALE:
        return _encode_scale(value, saturate, rounding)
    return arith.trunci(mlir.IntegerType.get_signless(8), encode_float(FLOATS[name], value, saturate))


def encode_float(kind: FloatFormat, value: mlir.Value, saturate: bool = False) -> mlir.Value:
    """The i32 that stands for the number nearest to an f32."""
    places, bias = 23, 127
    i = _Integers(32)
    mantissa = kind.mantissa_bits
    bits = arith.bitcast(i.type, value)
    magnitude = i.and_(bits, 0x7FFFFFFF)

    dropped = places - mantissa
    odd = i.and_(i.shr(magnitude, dropped), 1)
    rounded = i.shr(i.add(i.add(magnitude, (1 << (dropped - 1)) - 1), odd), dropped)
    normal = i.sub(rounded, (bias - kind.bias) << mantissa)

    # Below the smallest normal number the quantum is fixed: more bits go, up to all of them.
    whole = i.or_(i.and_(magnitude, (1 << places) - 1), 1 << places)
    more = i.sub(i.of(1 - kind.bias - mantissa + bias + places), i.shr(magnitude, places))
    more = arith.minsi(arith.maxsi(more, i.of(1)), i.of(places + 2))
    half = i.sub(i.shl(i.of(1), i.sub(more, 1)), 1)
    odd = i.and_(i.shr(whole, more), 1)
    subnormal = i.shr(i.add(i.add(whole, half), odd), more)

    code = i.select(i.compare("uge", magnitude, (1 - kind.bias + bias) << places), normal, subnormal)
    beyond = kind.largest if saturate or kind.nan is None else kind.nan if kind.infinity is None else kind.infinity
    code = i.select(i.compare("sgt", code, kind.largest), beyond, code)
    is_nan = i.compare("ugt", magnitude, 0x7F800000)
    sign = i.and_(i.shr(bits, 32 - kind.width), 1 << (kind.width - 1))
    if kind.nan is None:
        code = i.or_(i.select(is_nan, 0, code), i.select(is_nan, i.xor(sign, 1 << (kind.width - 1)), sign))
    elif kind.unsigned_zero:
        code = i.or_(code, i.select(i.compare("eq", code, 0), 0, sign))
        code = i.select(is_nan, kind.nan, code)
    else:
        code = i.or_(i.select(is_nan, kind.nan, code), sign)
    return code


def _as_f32(value: mlir.Value) -> mlir.Value:
    f32 = mlir.F32Type.get()
    if isinstance(value.type, mlir.IntegerType):
        return arith.sitofp(f32, value)
    if isinstance(value.type, mlir.F64Type):
        return arith.truncf(f32, value)
    return value if value.type == f32 else arith.extf(f32, value)


def _encode_integer(value: mlir.Value, width: int) -> mlir.Value:
    byte = _Integers(8)
    if not isinstance(value.type, mlir.IntegerType):
        # Whatever an i32 cannot hold becomes zero, as ml_dtypes has it; the conversion itself would be undefined.
        limit = arith.constant(value.type, math.inf if isinstance(value.type, mlir.F16Type) else 2.0**31)
        zero = arith.constant(value.type, 0.0)
        small = arith.andi(
            arith.cmpf(arith.CmpFPredicate.OLT, value, limit),
            arith.cmpf(arith.CmpFPredicate.OGT, value, arith.negf(limit)),
        )
        value = arith.fptosi(mlir.IntegerType.get_signless(32), arith.select(small, value, zero))
    held = mlir.IntegerType(value.type).width
    if held > 8:
        value = arith.trunci(byte.type, value)
    elif held < 8:
        value = arith.extui(byte.type, value)
    return byte.and_(value, (1 << width) - 1)


def _encode_scale(value: mlir.Value, saturate: bool, rounding: str) -> mlir.Value:
    """The sign is ignored, infinity is NaN; the standard's reference does the same."""
    i = _Integers(32)
    bits = arith.bitcast(i.type, value)
    exponent = i.and_(i.shr(bits, 23), 0xFF)
    fraction = i.and_(bits, 0x7FFFFF)
    if rounding == "down":
        code = exponent
    else:
        if rounding == "up":
            up = i.compare("ne", fraction, 0)
        else:
            # A tie goes up, except from the smallest.
            tie = arith.andi(i.compare("eq", fraction, 0x400000), i.compare("ne", exponent, 0))
            up = arith.ori(i.compare("ugt", fraction, 0x400000), tie)
        if saturate:
            up = arith.andi(up, i.compare("ne", exponent, 0xFE))
        code = i.add(exponent, arith.extui(i.type, up))
    code = i.select(i.compare("eq", exponent, 0xFF), 0xFF, code)
    return arith.trunci(mlir.IntegerType.get_signless(8), code)


class _Integers:
    """Arithmetic on signless integers of one width, with Python ints as constants."""

    def __init__(self, width: int):
        self.type = mlir.IntegerType.get_signless(width)
        self._width = width

    def of(self, value: mlir.Value | int) -> mlir.Value:
        if not isinstance(value, int):
            return value
        wrapped = value - (1 << self._width) if value >> (self._width - 1) > 0 else value
        return arith.constant(self.type, wrapped)

    def and_(self, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return arith.andi(a, self.of(b))

    def or_(self, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return arith.ori(a, self.of(b))

    def xor(self, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return arith.xori(a, self.of(b))

    def shl(self, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return arith.shli(a, self.of(b))

    def shr(self, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return arith.shrui(a, self.of(b))

    def add(self, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return arith.addi(a, self.of(b))

    def sub(self, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return arith.subi(a, self.of(b))

    def compare(self, predicate: str, a: mlir.Value, b: mlir.Value | int) -> mlir.Value:
        return arith.cmpi(getattr(arith.CmpIPredicate, predicate), a, self.of(b))

    def select(self, condition: mlir.Value, a: mlir.Value | int, b: mlir.Value | int) -> mlir.Value:
        return arith.select(condition, self.of(a), self.of(b))
