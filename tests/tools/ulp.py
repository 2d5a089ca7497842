"""Measures the error of expanded math functions in units in the last place. Run it for a dense sweep of all f32."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator

import native
import numpy as np
import scipy.special

from eyas.targets import Target

REFERENCES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": scipy.special.erf,
    "sin": np.sin,
    "cos": np.cos,
}
SUMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"erf": scipy.special.erf, "tanh": np.tanh}
"""Functions that have a formula of their own where 1 is added to the result."""

LANES = 16
_EDGES = np.array(
    [0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x3F800000, 0x3F000000, 0x40000000, 0x42B17218,
     0x42B17217, 0x42CFF1B5, 0x33000000, 0x477FFFFF, 0x47800001, 0x3F3504F3, 0x3FB504F3, 0x3F200000, 0x407CCCCD],
    dtype=np.uint32,
)  # fmt: skip
EDGE_VALUES = np.concatenate([_EDGES, _EDGES | np.uint32(0x80000000)])


def kernel_text(function: str, kind: str = "f32", lanes: int = LANES) -> str:
    """A loop that applies the function to vectors of `lanes` elements, or to scalars when `lanes` is 0. "1 + f" is the
    function f with 1 added."""
    if function.startswith("1 + "):
        vector = f"vector<{lanes}x{kind}>"
        body = f"""%v = vector.load %x[%i] : memref<?x{kind}>, {vector}
    %f = math.{function.removeprefix("1 + ")} %v : {vector}
    %one = arith.constant dense<1.0> : {vector}
    %r = arith.addf %f, %one : {vector}
    vector.store %r, %y[%i] : memref<?x{kind}>, {vector}"""
    elif lanes:
        vector = f"vector<{lanes}x{kind}>"
        body = f"""%v = vector.load %x[%i] : memref<?x{kind}>, {vector}
    %r = math.{function} %v : {vector}
    vector.store %r, %y[%i] : memref<?x{kind}>, {vector}"""
    else:
        body = f"""%v = memref.load %x[%i] : memref<?x{kind}>
    %r = math.{function} %v : {kind}
    memref.store %r, %y[%i] : memref<?x{kind}>"""
    return f"""func.func @kernel(%x: memref<?x{kind}>, %y: memref<?x{kind}>, %n: index) {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {lanes or 1} : index
  scf.for %i = %c0 to %n step %step {{
    {body}
  }}
  return
}}"""


class Kernel:
    """A math function, expanded and compiled, that maps arrays to arrays."""

    def __init__(self, function: str, kind: str = "f32", lanes: int = LANES, fma: bool = True) -> None:
        target = Target.host() if fma else Target.parse("llvm-cpu:x86_64")
        passes = "expand-math" if fma else "expand-math{fma=false}"
        self._library = native.build(kernel_text(function, kind, lanes), "kernel", passes=passes, target=target)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        padded = np.resize(x, -(-len(x) // LANES) * LANES)
        y = np.empty_like(padded)
        self._library.kernel(*native.memref(padded), *native.memref(y), ctypes.c_int64(len(padded)))
        return y[: len(x)]


def error_in_ulp(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Distance from `exact` (f64) in ULPs of its f32 neighbour; infinite where inf, NaN or the sign of zero differ."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        distance = np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(rounded)).astype(np.float64)
        same = (got == rounded) & (np.signbit(got) == np.signbit(rounded)) | (np.isnan(got) & np.isnan(rounded))
        must_match = ~np.isfinite(rounded) | ~np.isfinite(got) | (exact == 0)
    return np.where(must_match, np.where(same, 0.0, np.inf), distance)


def sweep(stride: int, chunk: int = 1 << 22) -> Iterator[np.ndarray]:
    """All f32 bit patterns by `stride`, in chunks, and edge values."""
    for start in range(0, 1 << 32, chunk * stride):
        stop = min(start + chunk * stride, 1 << 32)
        yield np.arange(start, stop, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
    yield EDGE_VALUES.view(np.float32)
    # Where sine and cosine lose most: the neighbours of multiples of pi/2.
    multiples = (np.arange(1, 42000) * (np.pi / 2)).astype(np.float32)
    yield np.concatenate([multiples, np.nextafter(multiples, np.float32(0)), -multiples])


def largest_error(function: str, stride: int, fma: bool = True) -> tuple[float, float]:
    """(largest error in ULP, the argument where it occurs)."""
    kernel, worst = Kernel(function, fma=fma), (0.0, 0.0)
    for x in sweep(stride):
        with np.errstate(all="ignore"):
            exact = REFERENCES[function](x.astype(np.float64))
        errors = error_in_ulp(kernel(x), exact)
        index = int(np.argmax(errors))
        worst = max(worst, (float(errors[index]), float(x[index])))
    return worst


def largest_error_of_sum(function: str, stride: int, fma: bool = True) -> tuple[float, float]:
    """The same for 1 + f(x), in units of the last place of 1. NaN must stay NaN."""
    kernel, worst = Kernel(f"1 + {function}", fma=fma), (0.0, 0.0)
    for x in sweep(stride):
        with np.errstate(all="ignore"):
            exact = 1 + SUMS[function](x.astype(np.float64))
        got = kernel(x)
        wrong = np.isnan(got) != np.isnan(exact)
        errors = np.where(wrong, np.inf, np.nan_to_num(np.abs(got - exact)) / np.spacing(np.float32(1)))
        index = int(np.argmax(errors))
        worst = max(worst, (float(errors[index]), float(x[index])))
    return worst


if __name__ == "__main__":
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 61
    for name in REFERENCES:
        fused, plain = largest_error(name, step), largest_error(name, step, fma=False)
        print(f"{name:8} fma {fused[0]:.2f} (at {fused[1]!r})  no fma {plain[0]:.2f} (at {plain[1]!r})", flush=True)
    for name in SUMS:
        fused, plain = largest_error_of_sum(name, step), largest_error_of_sum(name, step, fma=False)
        print(f"1 + {name:4} fma {fused[0]:.2f} (at {fused[1]!r})  no fma {plain[0]:.2f} (at {plain[1]!r})", flush=True)
