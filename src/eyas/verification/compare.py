"""How far an array is from what it should be, and how far it may be.

The error is the largest absolute difference over the largest expected magnitude: a layer's small elements are sums of
large ones, so their own size says nothing about the accuracy that can be asked of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Relative to the layer's scale: far above what other orders of summation do to deep networks, far below a wrong answer.
_RELATIVE = {"float64": 1e-9, "complex128": 1e-9, "float32": 1e-4, "complex64": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
_ABSOLUTE = {"float64": 1e-12, "complex128": 1e-12, "float32": 1e-6, "complex64": 1e-6, "float16": 1e-3}


_COMPUTED_IN = {"f16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Tolerance:
    """What is allowed; None means by element type. Integers and booleans are exact unless `atol` says otherwise. With
    a `precision` f32 is allowed what that type is: it was computed in it."""

    rtol: float | None = None
    atol: float | None = None
    precision: str | None = None

    def allowed(self, dtype: np.dtype, scale: float) -> float:
        """The largest absolute difference for values of a type and scale."""
        if dtype.kind in "iub":
            return self.atol or 0.0
        name = dtype.name
        if name == "float32" and self.precision is not None:
            name = _COMPUTED_IN[self.precision]
        relative = _RELATIVE.get(name, 1e-4) if self.rtol is None else self.rtol
        absolute = _ABSOLUTE.get(name, 1e-3) if self.atol is None else self.atol
        return absolute + relative * scale


@dataclass(frozen=True)
class Difference:
    """The comparison of one array. `error` is relative to `scale`; `reason` says what is wrong, empty when fine."""

    error: float
    absolute: float
    scale: float
    at: tuple[int, ...] = ()
    reason: str = ""

    @property
    def ok(self) -> bool:
        return not self.reason

    def to_json(self) -> dict[str, Any]:
        """Plain data; infinite errors become None, which JSON has."""
        finite = bool(np.isfinite(self.error))
        return {
            "error": self.error if finite else None,
            "absolute_error": self.absolute if np.isfinite(self.absolute) else None,
            "scale": self.scale,
            "at": list(self.at),
            "ok": self.ok,
            "reason": self.reason,
        }


def compare(actual: np.ndarray, expected: np.ndarray, tolerance: Tolerance) -> Difference:
    """Measures `actual` against `expected`; the type that tolerances follow is the expected one."""
    if actual.shape != expected.shape:
        reason = f"shape {list(actual.shape)}, expected {list(expected.shape)}"
        return Difference(np.inf, np.inf, 0.0, (), reason)
    if expected.size == 0:
        return Difference(0.0, 0.0, 0.0)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    # Integers are compared as such where f64 cannot hold them; the size of the difference needs no such care.
    unequal = actual.astype(expected.dtype, copy=False) != expected if expected.dtype.kind in "iub" else None
    with np.errstate(all="ignore"):
        left, right = actual.astype(wide), expected.astype(wide)
        finite = np.isfinite(right)
        scale = float(np.abs(right[finite]).max(initial=0.0))
        if odd := _non_finite(left, right, finite):
            at, reason = odd
            return Difference(np.inf, np.inf, scale, at, reason)
        distance = np.where(finite, np.abs(left - right), 0.0)
    if unequal is not None:
        distance = np.where(unequal, np.maximum(distance, 1.0), 0.0)
    place = np.unravel_index(int(distance.argmax()), distance.shape)
    at = tuple(int(index) for index in place)
    largest = float(distance[place])
    allowed = tolerance.allowed(expected.dtype, scale)
    reason = ""
    if largest > allowed:
        reason = f"{_show(actual[place])} at {list(at)}, expected {_show(expected[place])}"
        if expected.dtype.kind in "iub":
            reason = f"{int((distance > allowed).sum())} of {distance.size} differ; {reason}"
    relative = largest / scale if scale > 0 else (np.inf if largest > 0 else 0.0)
    return Difference(relative, largest, scale, at, reason)


def _non_finite(left: np.ndarray, right: np.ndarray, finite: np.ndarray) -> tuple[tuple[int, ...], str] | None:
    """The first place where NaN or infinity is not what was expected."""
    same = finite & np.isfinite(left) | np.isnan(left) & np.isnan(right) | (left == right)
    if same.all():
        return None
    at = tuple(int(index) for index in np.unravel_index(int(np.argmin(same)), same.shape))
    return at, f"{_show(left[at])} at {list(at)}, expected {_show(right[at])}; {int((~same).sum())} such elements"


def _show(value: Any) -> str:
    return str(value) if np.asarray(value).dtype.kind in "iubc" else f"{float(value):.7g}"
