"""Evaluates the fits of `tables` on tensors, and what all special functions share.

A fit is kept as a Chebyshev series, because such a series can be cut where a type's precision ends: f32 takes about
half of the terms of f64. It is evaluated as a polynomial of a variable between -1 and 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from eyas.frontends.torch.special.tables import FITS

Tensor = torch.Tensor

# What a series may leave out, as a part of its first term.
_REST = {torch.float32: 2.0**-27, torch.float64: 2.0**-56}


def fit(name: str, z: Tensor) -> Tensor:
    """The function of that name at z, which must be in its interval to mean anything."""
    low, high, _ = FITS[name]
    scale, shift = 2.0 / (high - low), -(high + low) / (high - low)
    return polynomial(z * scale + shift, _coefficients(name, z.dtype))


def polynomial(t: Tensor, coefficients: Sequence[float]) -> Tensor:
    """c0 + c1 t + ..., by Horner's rule."""
    result = t * coefficients[-1] + coefficients[-2]
    for one in coefficients[-3::-1]:
        result = result * t + one
    return result


@functools.cache
def _coefficients(name: str, dtype: torch.dtype) -> list[float]:
    """Of powers of t, computed exactly from the terms of the series that the type can see."""
    series = list(FITS[name][2])
    while abs(series[-1]) < _REST[dtype] * abs(series[0]):
        series.pop()
    # Chebyshev's polynomials T(k+1) = 2 t T(k) - T(k-1), as coefficients.
    before, now = [Fraction(1)], [Fraction(0), Fraction(1)]
    total = [Fraction(0)] * len(series)
    for factor in series:
        for power, one in enumerate(before):
            total[power] += Fraction(factor) * one
        after = [Fraction(0), *(2 * one for one in now)]
        for power, one in enumerate(before):
            after[power] -= one
        before, now = now, after
    return [float(one) for one in total]


def real(x: Tensor) -> Tensor:
    """In the type to compute in: halves and integers in f32. Results are rounded to the type that is promised."""
    if x.dtype in (torch.float32, torch.float64):
        return x
    return x.to(torch.get_default_dtype() if not x.is_floating_point() else torch.float32)


def unary(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A function of one real number as a decomposition."""

    @functools.wraps(function)
    def decomposition(x: Tensor) -> Tensor:
        if x.is_complex():
            return NotImplemented
        return function(real(x))

    return decomposition


def binary(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    """A function of two real numbers, of which one may be a Python number, as a decomposition."""

    @functools.wraps(function)
    def decomposition(x: Any, y: Any) -> Tensor:
        dtype = torch.result_type(x, y)
        if dtype.is_complex:
            return NotImplemented
        dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        return function(*(_tensor(one, wide) for one in (x, y)))

    return decomposition


def _tensor(value: Any, dtype: torch.dtype) -> Tensor:
    return value.to(dtype) if isinstance(value, Tensor) else torch.full((), value, dtype=dtype)


def split(value: float, dtype: torch.dtype) -> tuple[float, float]:
    """A number of f64 as one that the type has and the rest; of f64 itself the rest is not known here."""
    high = float(np.float32(value)) if dtype == torch.float32 else value
    return high, value - high


def distance(x: Tensor, point: float, rest: float) -> Tensor:
    """x - (point + rest), right where x is close to the point."""
    high, low = split(point, x.dtype)
    return (x - high) - (low + rest)
