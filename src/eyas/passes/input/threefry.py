"""Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"), on scalars of the IR.

Two words of a key and two of a counter give two words that look random; each counter by itself, so that elements of a
tensor are drawn in any order and the same on every machine.
"""

from __future__ import annotations

from torch_mlir.dialects import arith, math

from eyas.ir import mlir

Pair = tuple[mlir.Value, mlir.Value]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(key: Pair, counter: Pair) -> Pair:
    """The two words of one counter; all are i32."""
    keys = (*key, arith.xori(arith.xori(key[0], key[1]), word(_PARITY)))
    x, y = arith.addi(counter[0], keys[0]), arith.addi(counter[1], keys[1])
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = arith.addi(x, y)
            y = arith.xori(_rotated(y, rotation), x)
        x = arith.addi(x, keys[(group + 1) % 3])
        y = arith.addi(arith.addi(y, keys[(group + 2) % 3]), word(group + 1))
    return x, y


def word(value: int) -> mlir.Value:
    """A constant of 32 bits."""
    i32 = mlir.IntegerType.get_signless(32)
    return arith.ConstantOp(i32, mlir.IntegerAttr.get(i32, (value + 2**31) % 2**32 - 2**31)).result


def uniform(bits: Pair, wanted: mlir.Type) -> mlir.Value:
    """At least 0 and less than 1: as many digits as the type has."""
    if str(wanted) == "f32":
        return arith.mulf(arith.sitofp(wanted, arith.shrui(bits[0], word(8))), real(wanted, 2.0**-24))
    i64 = mlir.IntegerType.get_signless(64)
    high, low = (arith.extui(i64, bits[0]), arith.extui(i64, arith.shrui(bits[1], word(11))))
    digits = arith.ori(arith.shli(high, arith.ConstantOp(i64, mlir.IntegerAttr.get(i64, 21)).result), low)
    return arith.mulf(arith.sitofp(wanted, digits), real(wanted, 2.0**-53))


def normal(bits: Pair, wanted: mlir.Type) -> mlir.Value:
    """Mean 0 and variance 1, as Box and Muller have it. The logarithm is never that of 0."""
    half = arith.addf(arith.sitofp(wanted, arith.shrui(bits[0], word(1))), real(wanted, 0.5))
    radius = math.sqrt(arith.mulf(math.log(arith.mulf(half, real(wanted, 2.0**-31))), real(wanted, -2.0)))
    turns = arith.mulf(arith.sitofp(wanted, arith.shrui(bits[1], word(8))), real(wanted, 2.0**-24))
    return arith.mulf(radius, math.cos(arith.mulf(turns, real(wanted, 6.283185307179586))))


def real(type_: mlir.Type, value: float) -> mlir.Value:
    return arith.ConstantOp(type_, mlir.FloatAttr.get(type_, value)).result


def _rotated(value: mlir.Value, count: int) -> mlir.Value:
    return arith.ori(arith.shli(value, word(count)), arith.shrui(value, word(32 - count)))
