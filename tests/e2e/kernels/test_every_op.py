"""Every op of elements on every type at its edges, where instruction sets differ: the same numbers on every CPU.

Element types are narrower than a lane, or wider; no width of x86 has shifts of bytes, or conversions of all pairs; and
what LLVM calls poison (a shift by the width, a float that is no integer of the type) is another number with each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import programs as p
import pytest
from elementwise import WIDTHS, check, edges, unsigned

INTEGERS = [dtype for dtype in WIDTHS if dtype != "i1"]
FLOATS = ["f16", "bf16", "f32", "f64"]
LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308}
TINIEST = {"f16": 6e-8, "bf16": 9.2e-41, "f32": 1.4e-45, "f64": 5e-324}


def pairs(*values: np.ndarray) -> tuple[np.ndarray, ...]:
    """All combinations of the values, one array each."""
    return tuple(np.ascontiguousarray(one.reshape(-1)) for one in np.meshgrid(*values, indexing="ij"))


def floats(dtype: str) -> np.ndarray:
    """Values at the edges of a float type, of both signs."""
    numbers = [0.0, TINIEST[dtype], 1e-3, 0.5, 0.99, 1.0, 1.5, 2.0, 2.5, 3.0, 77.7, LARGEST[dtype], np.inf]
    return np.array([*numbers, *(-one for one in numbers), np.nan], p.NUMPY[dtype])


def wide(array: np.ndarray) -> np.ndarray:
    """In the type in which elements are computed with: narrow floats are f32 then."""
    return array if array.dtype == np.float64 else array.astype(np.float32)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_any_amount(dtype):
    bits = WIDTHS[dtype]
    half = 1 << (bits - 1)
    amounts = [*range(bits + 2), 2 * bits, bits + 8, half - 1, -half, -1, -bits]
    amounts = sorted({(one + half) % (2 * half) - half for one in amounts})
    a, b = pairs(np.array([-half, -half + 1, -7, -1, 0, 1, 3, 100, half - 1], p.NUMPY[dtype]),
                 np.array(amounts, p.NUMPY[dtype]))  # fmt: skip

    def expected(shift: Callable[[int, int], int], source: np.ndarray, beyond: Callable[[int], int]) -> np.ndarray:
        by = unsigned(b).tolist()
        made = [shift(x, n) if n < bits else beyond(x) for x, n in zip(source.tolist(), by, strict=True)]
        return np.array([(one + half) % (2 * half) - half for one in made], a.dtype)

    table = {
        "shli": expected(lambda x, n: x << n, a, lambda x: 0),
        "shrui": expected(lambda x, n: x >> n, unsigned(a), lambda x: 0),
        "shrsi": expected(lambda x, n: x >> n, a, lambda x: -1 if x < 0 else 0),
    }
    check([dtype] * 2, [a, b], [(dtype, f"%r = arith.{op} %i0, %i1 : {dtype}", want) for op, want in table.items()])


@pytest.mark.parametrize("dtype", ["i1", *INTEGERS])
def test_shifts_by_constants(dtype):
    """What is known is not guarded, and what is too much is nothing."""
    a, bits = edges(dtype)[0], WIDTHS[dtype]
    cases = []
    for by in (0, 1, bits - 1):
        if by >= bits:
            continue
        constant = f"%low = arith.constant {by} : {dtype}\n" if dtype != "i1" else "%low = arith.constant false\n"
        source = a.astype(object) if dtype != "i1" else a.astype(int).astype(object)
        left = (source * (1 << by)) % (1 << bits)
        made = np.array([int(x) - (1 << bits) if dtype != "i1" and x >> (bits - 1) else int(x) for x in left])
        cases.append((dtype, f"{constant}%r = arith.shli %i0, %low : {dtype}", made.astype(p.NUMPY[dtype])))
    check([dtype], [a], cases)


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_become_integers_whatever_they_are(source, target):
    bits = WIDTHS[target]
    ends = [float(1 << n) for n in (bits - 1, bits)]
    near = [one + step for one in ends for step in (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 300.0)]
    near += [np.nextafter(one, way) for one in ends for way in (0.0, np.inf)]
    with np.errstate(over="ignore"):
        a = np.concatenate([floats(source), np.array([*near, *(-one for one in near)]).astype(p.NUMPY[source])])
    cases = []
    for op in ("fptosi", "fptoui"):
        wide_bits = max(bits, 32)  # of which the lower are kept
        low, high = -(1 << (wide_bits - 1)), (1 << (wide_bits - 1)) - 1
        if op == "fptoui" and bits >= 32:
            low, high = 0, (1 << bits) - 1
        made = [0 if math.isnan(x) else int(min(max(x, low), high)) for x in a.astype(float).tolist()]
        half = 1 << (bits - 1)
        numbers = np.array([(one + half) % (2 * half) - half for one in made], p.NUMPY[target])
        cases.append((target, f"%r = arith.{op} %i0 : {source} to {target}", numbers))
    check([source], [a], cases)


@pytest.mark.parametrize("source", ["i1", *INTEGERS])
def test_integers_become_floats_of_every_type(source):
    a = edges(source)[0]
    signed = -a.astype(np.int8) if source == "i1" else a
    cases = []
    for target in FLOATS:
        for op, values in (("sitofp", signed), ("uitofp", unsigned(a))):
            with np.errstate(over="ignore"):
                want = values.astype(np.float64 if target == "f64" else np.float32).astype(p.NUMPY[target])
            cases.append((target, f"%r = arith.{op} %i0 : {source} to {target}", want))
    check([source], [a], cases)


@pytest.mark.parametrize("source", FLOATS)
def test_floats_become_other_floats(source):
    a = floats(source)
    cases = []
    for target in FLOATS:
        order = ("f16", "f32", "f64") if "bf16" not in (source, target) else ("bf16", "f32", "f64")
        if source == target or {source, target} == {"f16", "bf16"}:
            continue
        op = "extf" if order.index(source) < order.index(target) else "truncf"
        if (source, target) == ("f64", "bf16"):
            continue  # what is rounded twice is documented for f32 only
        with np.errstate(over="ignore"):
            cases.append((target, f"%r = arith.{op} %i0 : {source} to {target}", a.astype(p.NUMPY[target])))
    check([source], [a], cases)


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_of_floats(dtype):
    a, b = pairs(floats(dtype), floats(dtype))
    table = {
        "addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide, "remf": np.fmod,
        "maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin,
    }  # fmt: skip
    with np.errstate(all="ignore"):
        cases = [
            (dtype, f"%r = arith.{op} %i0, %i1 : {dtype}", function(wide(a), wide(b)).astype(a.dtype))
            for op, function in table.items()
        ]
        cases.append((dtype, f"%r = arith.negf %i0 : {dtype}", -a))
        cases.append((dtype, f"%r = math.copysign %i0, %i1 : {dtype}", np.copysign(wide(a), wide(b)).astype(a.dtype)))
    check([dtype] * 2, [a, b], cases)


ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "roundeven": np.rint, "absf": np.abs}
FUNCTIONS = {
    "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "erf": np.vectorize(math.erf),
}  # fmt: skip
TOLERANCE = {"f16": 1e-3, "bf16": 8e-3, "f32": 6e-7, "f64": 1e-14}


@pytest.mark.parametrize("dtype", FLOATS)
def test_roundings_of_floats(dtype):
    a = floats(dtype)
    cases = [(dtype, f"%r = math.{op} %i0 : {dtype}", f(wide(a)).astype(a.dtype)) for op, f in ROUNDINGS.items()]
    # Halves away from zero; the sum is exact near them, and large numbers are whole.
    away = np.trunc(wide(a) + np.copysign(np.full_like(wide(a), 0.5), wide(a)))
    rounded = np.where(np.abs(wide(a)) < 1e4, away, wide(a)).astype(a.dtype)
    cases.append((dtype, f"%r = math.round %i0 : {dtype}", rounded))
    check([dtype], [a], cases)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_floats(function, dtype):
    a = floats(dtype)
    if function in ("sin", "cos", "tan"):
        a = a[np.abs(a.astype(float)) < 1e4]  # the rest depends on how many bits of pi there are
    with np.errstate(all="ignore"):
        want = np.asarray(FUNCTIONS[function](a.astype(np.float64))).astype(a.dtype)
    tiny = float(TINIEST[dtype])
    check([dtype], [a], [(dtype, f"%r = math.{function} %i0 : {dtype}", want)], rtol=TOLERANCE[dtype], atol=2 * tiny)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_powers_of_any_exponent(dtype):
    """A negative one gives what is left of a fraction: of zero it is zero, and nothing traps."""
    bases, exponents = [-3, -2, -1, 0, 1, 2, 3, 7], [-8, -3, -2, -1, 0, 1, 2, 3, 9]
    a, b = pairs(np.array(bases, p.NUMPY[dtype]), np.array(exponents, p.NUMPY[dtype]))
    half = 1 << (WIDTHS[dtype] - 1)

    def power(x: int, n: int) -> int:
        made = x**n if n >= 0 else (x ** (n % 2) if x in (1, -1) else 0)
        return (made + half) % (2 * half) - half

    want = np.array([power(x, n) for x, n in zip(a.tolist(), b.tolist(), strict=True)], a.dtype)
    check([dtype] * 2, [a, b], [(dtype, f"%r = math.ipowi %i0, %i1 : {dtype}", want)])
