"""Without a math library every function is accurate, in f32 and f64, and has C's special values."""

from __future__ import annotations

import ctypes
import functools
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[4] / "tools"))
import native  # noqa: E402

PASSES = "expand-math{fma=false libm=false},expand-exact"
TYPES = {"f32": np.float32, "f64": np.float64}

# Largest errors that were measured, in units of the last place, rounded up: f32, f64.
LIMITS = {
    "exp": (1.2, 1.1), "exp2": (1.1, 1.1), "expm1": (1.5, 1.5), "log": (0.9, 1.0), "log2": (1.5, 1.5),
    "log10": (1.9, 1.5), "log1p": (1.5, 1.5), "tanh": (1.5, 2.6), "erf": (1.2, 1.2), "erfc": (4.0, 4.0),
    "sin": (2.5, 2.0), "cos": (2.5, 2.0), "tan": (4.0, 4.0), "asin": (3.5, 3.5), "acos": (3.0, 3.0),
    "atan": (2.5, 2.0), "sinh": (2.5, 2.5), "cosh": (2.0, 2.0), "asinh": (2.0, 2.0), "acosh": (2.5, 2.5),
    "atanh": (2.5, 2.5), "cbrt": (1.0, 1.0),
}  # fmt: skip
DOMAINS = {
    "asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1), "acosh": (1, 50), "log": (1e-3, 50), "log2": (1e-3, 50),
    "log10": (1e-3, 50), "log1p": (-0.9, 50), "erfc": (-3, 9), "sinh": (-80, 80), "cosh": (-80, 80),
    "exp": (-80, 80), "exp2": (-120, 120), "sin": (-1000, 1000), "cos": (-1000, 1000), "tan": (-100, 100),
}  # fmt: skip
REFERENCES = {
    "exp2": lambda x: mpmath.power(2, x),
    "log2": lambda x: mpmath.log(x, 2),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e-30, -1e-30, 1e30]


@functools.cache
def library(op: str, kind: str, arity: int) -> ctypes.CDLL:
    """The op on scalars, with nothing left to a library."""
    names = [f"%x{k}" for k in range(arity)]
    arguments = "".join(f"{name}m: memref<?x{kind}>, " for name in names)
    loads = "\n".join(f"{name} = memref.load {name}m[%i] : memref<?x{kind}>" for name in names)
    return native.build(
        f"""func.func @kernel({arguments}%y: memref<?x{kind}>, %n: index) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          scf.for %i = %c0 to %n step %c1 {{
            {loads}
            %r = {op} {", ".join(names)} : {kind}
            memref.store %r, %y[%i] : memref<?x{kind}>
          }}
          return
        }}""",
        "kernel",
        passes=PASSES,
    )


def apply(op: str, kind: str, *arrays: np.ndarray) -> np.ndarray:
    result = np.empty_like(arrays[0])
    memrefs = [part for array in (*arrays, result) for part in native.memref(array)]
    library(op, kind, len(arrays)).kernel(*memrefs, ctypes.c_int64(len(result)))
    return result


def units(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    spacing = np.spacing(np.abs(exact.astype(got.dtype))).astype(np.longdouble)
    return np.abs(got.astype(np.longdouble) - exact) / spacing


def precisely(function: str, x: np.ndarray) -> np.ndarray:
    reference = REFERENCES.get(function) or getattr(mpmath, function)
    with mpmath.workprec(1300):  # the largest f64 has so many bits before its sine begins
        return np.array([np.longdouble(mpmath.nstr(reference(mpmath.mpf(float(one))), 30)) for one in x])


def same(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    equal = (got == expected) & (np.signbit(got) == np.signbit(expected)) | (np.isnan(got) & np.isnan(expected))
    return equal | (np.abs(got - expected) <= 4 * np.spacing(np.abs(expected)))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("function", LIMITS)
def test_accuracy(function: str, kind: str) -> None:
    low, high = DOMAINS.get(function, (-5, 5))
    rng = np.random.default_rng(0)
    near = rng.uniform(low, high, 100) * 1e-3 if low < 0 else rng.uniform(low, 2, 100)
    x = np.concatenate([rng.uniform(low, high, 300), near]).astype(TYPES[kind])
    errors = units(apply(f"math.{function}", kind, x), precisely(function, x))
    assert errors.max() <= LIMITS[function][kind == "f64"], x[errors.argmax()]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("function", LIMITS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_values(function: str, kind: str) -> None:
    import scipy.special

    x = np.array([*SPECIAL, 700.0, -700.0, 1e5, -1e5, 20.0, -20.0], TYPES[kind])
    inverse = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
    name = {**inverse, "atanh": "arctanh"}.get(function, function)
    reference = getattr(np, name, None) or getattr(scipy.special, name)
    expected = reference(x.astype(np.float64)).astype(TYPES[kind])
    got = apply(f"math.{function}", kind, x)
    assert same(got, expected).all(), (x[~same(got, expected)], got[~same(got, expected)])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("function", ["sin", "cos"])
def test_large_arguments_of_circular_functions(function: str, kind: str) -> None:
    rng = np.random.default_rng(0)
    x = (10.0 ** rng.uniform(3, 38 if kind == "f32" else 308, 200) * rng.choice([-1, 1], 200)).astype(TYPES[kind])
    errors = units(apply(f"math.{function}", kind, x), precisely(function, x))
    assert errors.max() <= 3, x[errors.argmax()]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("op", "reference"), [("math.powf", np.power), ("math.atan2", np.arctan2)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_two(op: str, reference: np.ufunc, kind: str) -> None:
    rng = np.random.default_rng(0)
    near_one, large = 1 + rng.uniform(-1e-5, 1e-5, 50), rng.uniform(-1e6, 1e6, 50)
    x = np.concatenate([rng.uniform(0.01, 10, 500), rng.uniform(-5, 5, 300), near_one]).astype(TYPES[kind])
    y = np.concatenate([rng.uniform(-20, 20, 500), rng.integers(-9, 9, 300), large]).astype(TYPES[kind])
    got, expected = apply(op, kind, x, y), reference(x.astype(np.longdouble), y.astype(np.longdouble))
    regular = np.isfinite(expected.astype(TYPES[kind])) & (expected.astype(TYPES[kind]) != 0)
    errors = units(got[regular], expected[regular])
    assert errors.max() <= 3, (x[regular][errors.argmax()], y[regular][errors.argmax()])
    x, y = (grid.reshape(-1).astype(TYPES[kind]) for grid in np.meshgrid(SPECIAL, SPECIAL))
    got, expected = apply(op, kind, x, y), reference(x.astype(np.float64), y.astype(np.float64)).astype(TYPES[kind])
    wrong = ~same(got, expected)
    assert not wrong.any(), list(zip(x[wrong], y[wrong], got[wrong], expected[wrong], strict=True))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_remainders_are_exact(kind: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (10.0 ** rng.uniform(-44, 38, (2, 300)) * rng.choice([-1, 1], (2, 300))).astype(TYPES[kind])
    special = [grid.reshape(-1).astype(TYPES[kind]) for grid in np.meshgrid(SPECIAL, SPECIAL)]
    x, y = np.concatenate([x, special[0]]), np.concatenate([y, special[1]])
    np.testing.assert_array_equal(apply("arith.remf", kind, x, y), np.fmod(x, y))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_counts_and_powers_of_integers(bits: int) -> None:
    kind, type_ = f"i{bits}", np.dtype(f"int{bits}").type
    rng = np.random.default_rng(0)
    x = rng.integers(np.iinfo(type_).min, np.iinfo(type_).max, 100, type_)
    x[:4] = [0, 1, -1, np.iinfo(type_).min]
    words = [int(one) & ((1 << bits) - 1) for one in x]
    assert apply("math.ctpop", kind, x).tolist() == [word.bit_count() for word in words]
    assert apply("math.ctlz", kind, x).tolist() == [bits - word.bit_length() for word in words]
    assert apply("math.cttz", kind, x).tolist() == [(word & -word).bit_length() - 1 if word else bits for word in words]
    base, exponent = rng.integers(-4, 5, 100, type_), rng.integers(0, 4, 100, type_)
    np.testing.assert_array_equal(apply("math.ipowi", kind, base, exponent), base**exponent)
    inverse = [1 if one == 1 else -1 if one == -1 else 0 for one in base]
    assert (
        apply("math.ipowi", kind, base, np.full_like(base, -3))[base != 0].tolist()
        == np.array(inverse)[base != 0].tolist()
    )
