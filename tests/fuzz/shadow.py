"""Numbers with an error bound: what a result may be, and where rounding alone decides.

A shadow has the value that correct rounding after each op gives, computed in f64, and for each element a bound of the
error that a faithful implementation may have there. Bounds follow each op by running error analysis (Higham, Accuracy
and Stability of Numerical Algorithms, chapter 3). Where a discontinuity lies inside the bound (a comparison of nearly
equal values, a cast at .5, an overflow) the bound is infinite and the element is not compared. Integers and booleans
have the bound 0 or infinity.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "c64": np.dtype(np.complex64),
}
REALS = tuple(name for name in DTYPES if name != "c64")
FLOATS = ("f32", "f16", "bf16", "f64")
INTEGERS = ("i32", "i64", "i8", "u8", "i16", "u16", "u32", "u64")
NAMES = {dtype: name for name, dtype in DTYPES.items()}

UNIT = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Half a unit in the last place, relative."""
LARGEST = {name: float(ml_dtypes.finfo(DTYPES[name]).max) for name in FLOATS}
SMALLEST_NORMAL = {name: float(ml_dtypes.finfo(DTYPES[name]).smallest_normal) for name in FLOATS}
INFINITY = np.float64(np.inf)


@dataclass(frozen=True)
class Shadow:
    """`value` is f64 or c128 for floats and complex numbers, and the type itself otherwise; `error` has the same shape,
    or is the scalar 0."""

    value: np.ndarray
    error: np.ndarray
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def is_float(self) -> bool:
        return self.dtype in UNIT

    def errors(self) -> np.ndarray:
        """The bound with the full shape."""
        return np.broadcast_to(self.error, self.value.shape)


ZERO = np.zeros(())


def exact(array: np.ndarray) -> Shadow:
    """A value that is known bit for bit, such as an argument."""
    name = NAMES[array.dtype]
    wide = {"c64": np.complex128}.get(name, np.float64 if name in UNIT else array.dtype)
    return Shadow(array.astype(wide), ZERO, name)


def to_dtype(value: np.ndarray, dtype: str) -> np.ndarray:
    """One rounding from f64 to a float type, as f64. bf16 goes through its own cast, which rounds once."""
    with np.errstate(all="ignore"):
        return np.asarray(value, np.float64).astype(DTYPES[dtype]).astype(np.float64)


def rounded(value: np.ndarray, error: np.ndarray, dtype: str, units: float = 1.0, floor: float = 0.0) -> Shadow:
    """A computed float: rounds, and adds `units` half-ulps (and an absolute `floor`) to the bound."""
    value = np.asarray(value, np.float64)
    with np.errstate(all="ignore"):
        result = to_dtype(value, dtype)
        # AVX-512's conversion to bf16 takes what is not normal for zero.
        tiny = SMALLEST_NORMAL[dtype] * (1.0 if dtype == "bf16" else UNIT[dtype] * 2)
        # Two sides that start apart are both rounded.
        both = np.where(np.asarray(error) > 0, units + 1.0, units) if units else 0.0
        bound = error + both * UNIT[dtype] * np.abs(value) + (tiny if units else 0.0) + floor
        # Finite or infinite: the bound decides whether overflow is certain.
        edge = LARGEST[dtype] * (1 + UNIT[dtype])
        size = np.abs(value)
        unsure = np.isfinite(value) & (size + bound >= edge * (1 - 1e-15)) & (size - bound <= edge * (1 + 1e-15))
        # Inside of a dispatch half types are computed in wider ones, where this does not overflow.
        unsure |= np.isfinite(value) & ~np.isfinite(result) & (dtype in ("f16", "bf16"))
        bound = np.where(unsure, INFINITY, bound)
        settled = ~np.isfinite(result) & ~unsure & ~np.isinf(error)
        bound = np.where(settled, 0.0, bound)
        bound = np.where(np.isnan(bound), INFINITY, bound)
    return Shadow(result, bound, dtype)


def corners(function: Callable[..., np.ndarray], *args: Shadow) -> tuple[np.ndarray, np.ndarray]:
    """The function at the values, and how far it moves when each float argument moves by its bound."""
    with np.errstate(all="ignore"):
        centre = function(*(arg.value for arg in args))
        moved = np.zeros(np.shape(centre))
        unknown = np.zeros(np.shape(centre), bool)
        choices = []
        for arg in args:
            if arg.is_float and np.any(arg.error):
                bound = np.where(np.isinf(arg.error), 0.0, arg.error)
                choices.append((arg.value - bound, arg.value + bound))
            else:
                choices.append((arg.value,))
            unknown = unknown | np.isinf(arg.error)
        for point in itertools.product(*choices) if any(len(choice) > 1 for choice in choices) else ():
            there = function(*point)
            moved = np.maximum(moved, _distance(there, centre))
        return centre, np.where(unknown, INFINITY, moved)


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    if np.asarray(other).dtype.kind != "f":
        return np.where(one == other, 0.0, INFINITY)
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    apart = np.where(same, 0.0, np.abs(one - other))
    return np.where(np.isnan(apart), INFINITY, apart)


def elementwise(
    function: Callable[..., np.ndarray], *args: Shadow, units: float = 1.0, floor: float = 0.0, dtype: str | None = None
) -> Shadow:
    """Any pointwise function. Floats are rounded; other results are known or not."""
    dtype = dtype or args[0].dtype
    with np.errstate(all="ignore"):
        value, moved = corners(function, *args)
    if dtype in UNIT:
        return rounded(value, moved, dtype, units, floor)
    return Shadow(np.asarray(value).astype(DTYPES[dtype]), unknown(moved), dtype)


def unknown(bound: np.ndarray) -> np.ndarray:
    """The bound of a discrete value: infinite where anything may move."""
    return np.where(bound > 0, INFINITY, 0.0)


def moved(function: Callable[..., np.ndarray], *args: Shadow) -> Shadow:
    """A function that only moves elements: the bounds move along."""
    value = function(*(arg.value for arg in args))
    if not any(np.any(arg.error) for arg in args):
        return Shadow(value, ZERO, args[0].dtype)
    return Shadow(value, function(*(np.array(arg.errors()) for arg in args)), args[0].dtype)


def total(
    function: Callable[..., np.ndarray], args: Sequence[Shadow], terms: int, accumulator: str | None = None
) -> Shadow:
    """A sum of `terms` products of the arguments' elements, such as a sum, a product of matrices, a convolution.

    `function` is linear in each argument, so that applied to absolute values and bounds it gives the bound.
    """
    dtype = args[0].dtype
    if dtype not in UNIT:
        with np.errstate(all="ignore"):
            value = function(*(arg.value for arg in args))
        error = ZERO
        if any(np.any(arg.error) for arg in args):
            reached = [np.ones(arg.shape) for arg in args]
            for index, arg in enumerate(args):
                reached_by = [*reached[:index], (arg.errors() > 0).astype(np.float64), *reached[index + 1 :]]
                error = error + function(*reached_by)
        return Shadow(np.asarray(value).astype(DTYPES[dtype]), unknown(error), dtype)
    unit = UNIT[accumulator or dtype]
    with np.errstate(all="ignore"):
        value = function(*(arg.value for arg in args))
        # Elements that are not finite decide the result by themselves; bounds must not become inf * 0.
        sizes = [np.where(np.isfinite(arg.value), np.abs(arg.value), 0.0) for arg in args]
        lost = [(~np.isfinite(arg.errors())).astype(np.float64) for arg in args]
        bounds = [np.where(np.isfinite(arg.errors()), arg.errors(), 0.0) for arg in args]
        magnitude = function(*sizes)
        error = (terms + 2) * unit * magnitude
        ones = [np.ones(arg.shape) for arg in args]
        reached = np.zeros(np.shape(magnitude), bool)
        for index in range(len(args)):
            # (a + da)(b + db) - ab = da b + a db + da db; the last is counted with the first argument's.
            others = [sizes[i] + (bounds[i] if i > index else 0.0) for i in range(len(args))]
            error = error + function(*others[:index], bounds[index], *others[index + 1 :])
            if lost[index].any():
                reached = reached | (function(*ones[:index], lost[index], *ones[index + 1 :]) > 0)
        # What may be zero, or of either sign, and meets an infinity.
        ends = [np.isinf(arg.value).astype(np.float64) for arg in args]
        doubts = [((arg.errors() > 0) & (np.abs(arg.value) <= arg.errors())).astype(np.float64) for arg in args]
        for one, other in itertools.permutations(range(len(args)), 2):
            if doubts[one].any() and ends[other].any():
                met = {one: doubts[one], other: ends[other]}
                reached = reached | (function(*[met.get(index, ones[index]) for index in range(len(args))]) > 0)
        error = np.where(reached, INFINITY, error)
        # A partial sum may overflow where the whole does not.
        overflow = magnitude + error >= LARGEST[accumulator or dtype]
        error = np.where(overflow, INFINITY, error)
        error = np.where(np.isinf(value) & ~overflow & ~reached, 0.0, error)
        # In f64 the reference itself may have overflowed.
        error = np.where(np.isnan(value) & ~reached & ((dtype != "f64") | ~overflow), 0.0, error)
    return rounded(value, error, dtype)


def compare(got: np.ndarray, want: Shadow) -> tuple[str, int]:
    """What is wrong with a result, or '', and how many elements could be compared."""
    if got.shape != want.shape or got.dtype != DTYPES[want.dtype]:
        return f"{got.dtype}{list(got.shape)} instead of {DTYPES[want.dtype]}{list(want.shape)}", 0
    error = want.errors()
    known = np.isfinite(error)
    if want.is_float or want.dtype == "c64":
        with np.errstate(all="ignore"):
            ours = got.astype(want.value.dtype)
            near = np.abs(ours - want.value) <= 1.5 * error
            near |= (ours == want.value) | (np.isnan(ours) & np.isnan(want.value))
    else:
        ours, near = got, got == want.value
    bad = known & ~near
    if not bad.any():
        return "", int(known.sum())
    where = tuple(int(axis[0]) for axis in np.nonzero(bad)) if bad.ndim else ()
    text = f"{int(bad.sum())} of {bad.size} differ, at {list(where)}: {ours[where]} instead of {want.value[where]}"
    return text + (f" +- {error[where]:.2g}" if error[where] else ""), int(known.sum())
