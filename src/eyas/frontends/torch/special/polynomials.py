"""Orthogonal polynomials of degree n at x: Chebyshev's four kinds, Hermite's, Laguerre's, Legendre's.

All have recurrences of three terms. Chebyshev's have closed forms too, which high degrees take. The others are steps
one after the other for a degree that is known, and a loop where it is data: elements stay as they are from their own
degree on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._higher_order_ops.while_loop import while_loop_op

aten = torch.ops.aten
Tensor = torch.Tensor

# Degrees up to these are steps of the recurrence: of Chebyshev's kinds, and of the others where the degree is known.
_STEPS, _MOST_STEPS = 8, 24
# Degrees of Hermite's polynomials beyond these are NaN, as torch has them.
_HERMITE_LIMIT = {torch.float32: 128, torch.float64: 512}


@dataclass(frozen=True)
class _Family:
    """The polynomial of degree 1, and that of degree k + 1 from k, x and those of degrees k and k - 1."""

    first: Callable[[Any], Any]
    step: Callable[[Any, Any, Any, Any], Any]
    limited: bool = False


def _chebyshev_step(k: Any, x: Any, now: Any, before: Any) -> Any:
    return 2.0 * x * now - before


_CHEBYSHEV = {
    "t": _Family(lambda x: x, _chebyshev_step),
    "u": _Family(lambda x: 2.0 * x, _chebyshev_step),
    "v": _Family(lambda x: 2.0 * x - 1.0, _chebyshev_step),
    "w": _Family(lambda x: 2.0 * x + 1.0, _chebyshev_step),
}
_OTHERS = {
    "hermite_polynomial_h": _Family(
        lambda x: 2.0 * x, lambda k, x, now, before: 2.0 * (x * now - k * before), limited=True
    ),
    "hermite_polynomial_he": _Family(lambda x: x, lambda k, x, now, before: x * now - k * before, limited=True),
    "laguerre_polynomial_l": _Family(
        lambda x: 1.0 - x, lambda k, x, now, before: ((2.0 * k + (1.0 - x)) * now - k * before) / (k + 1.0)
    ),
    "legendre_polynomial_p": _Family(
        lambda x: x, lambda k, x, now, before: ((2.0 * k + 1.0) * x * now - k * before) / (k + 1.0)
    ),
}


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    made: dict[str, Callable[[Tensor, Any], Tensor]] = {}
    for kind in _CHEBYSHEV:
        made[f"chebyshev_polynomial_{kind}"] = _plain(kind)
        made[f"shifted_chebyshev_polynomial_{kind}"] = _shifted(kind)
    for name, family in _OTHERS.items():
        made[name] = _recurrent(family)
    found = {}
    for name, function in made.items():
        packet = getattr(aten, f"special_{name}")
        for overload in (packet.default, packet.x_scalar, packet.n_scalar):
            found[overload] = _with_types(function)
    return found


def _with_types(function: Callable[[Tensor, Any], Tensor]) -> Callable[..., Tensor]:
    """x in the type to compute in, and the degree as an integer or a tensor of such."""

    def decomposition(x: Any, n: Any) -> Tensor:
        dtype = torch.result_type(x, n)
        wide = torch.float64 if torch.float64 in (dtype, torch.get_default_dtype()) else torch.float32
        if dtype.is_floating_point:
            wide = torch.float64 if dtype == torch.float64 else torch.float32
        x = x.to(wide) if isinstance(x, Tensor) else torch.full((), x, dtype=wide)
        if not isinstance(n, Tensor):
            return function(x, int(n) if math.isfinite(n) else -1)
        if n.is_floating_point():
            n = torch.where(n.abs() < 2.0**31, n, -1.0)
        return function(*torch.broadcast_tensors(x, n.to(torch.int64)))

    return decomposition


def _plain(kind: str) -> Callable[[Tensor, Any], Tensor]:
    return lambda x, n: _chebyshev(kind, x, n)


def _shifted(kind: str) -> Callable[[Tensor, Any], Tensor]:
    return lambda x, n: _chebyshev(kind, 2.0 * x - 1.0, n)


def _chebyshev(kind: str, x: Tensor, n: Any) -> Tensor:
    if isinstance(n, int):
        if n <= _STEPS:
            return _known_degree(_CHEBYSHEV[kind], x, n)
        return _closed(kind, x, torch.full((), n, dtype=torch.int64))
    before, now = torch.ones_like(x), _CHEBYSHEV[kind].first(x)
    result = torch.where(n == 1, now, _closed(kind, x, n))
    for k in range(2, _STEPS + 1):
        before, now = now, 2.0 * x * now - before
        result = torch.where(n == k, now, result)
    return torch.where(n < 0, 0.0, torch.where(n == 0, 1.0, result))


def _closed(kind: str, x: Tensor, n: Tensor) -> Tensor:
    """From cos(n t), x = cos t, and its relatives; with exponentials where |x| > 1."""
    odd, degree = torch.remainder(n, 2) == 1, n.to(x.dtype)
    angle = torch.acos(x.clamp(-1.0, 1.0))
    beyond = (x.abs() - 1.0).clamp(min=0.0)
    growth = torch.log1p(beyond + torch.sqrt(beyond * (beyond + 2.0)))
    most = torch.exp(degree * growth)
    one, whole, double = torch.ones_like(degree), degree + 1.0, 2.0 * degree + 1.0

    def even_ratio() -> Tensor:
        """cosh((n + 1/2) t) / cosh(t / 2)"""
        return most * (1.0 + torch.exp(-double * growth)) / (1.0 + torch.exp(-growth))

    def odd_ratio(factor: Tensor, divisor: float) -> Tensor:
        """sinh((n + 1/2) t) / sinh(t / 2), or with twice the angles"""
        return most * torch.expm1(-factor * growth) / torch.expm1(-divisor * growth)

    # Inside; right of 1, left of -1 for even degrees; at 1, at -1 for even degrees. The third and the fourth kind are
    # each other's mirror images.
    if kind == "t":
        inside, at_one, at_minus_one = torch.cos(degree * angle), one, one
        right = left = 0.5 * most * (1.0 + torch.exp(-2.0 * degree * growth))
    elif kind == "u":
        inside, at_one, at_minus_one = torch.sin(whole * angle) / torch.sin(angle), whole, whole
        right = left = odd_ratio(2.0 * whole, 2.0)
    elif kind == "v":
        inside = torch.cos((degree + 0.5) * angle) / torch.cos(0.5 * angle)
        right, left, at_one, at_minus_one = even_ratio(), odd_ratio(double, 1.0), one, double
    else:
        inside = torch.sin((degree + 0.5) * angle) / torch.sin(0.5 * angle)
        right, left, at_one, at_minus_one = odd_ratio(double, 1.0), even_ratio(), double, one
    right = torch.where(x == 1.0, at_one, right)
    left = torch.where(x == -1.0, at_minus_one, left)
    result = torch.where(x >= 1.0, right, torch.where(x <= -1.0, torch.where(odd, -left, left), inside))
    # The recurrence ends in inf - inf.
    return torch.where(x.abs() == math.inf, math.nan, result)


def _recurrent(family: _Family) -> Callable[[Tensor, Any], Tensor]:
    def function(x: Tensor, n: Any) -> Tensor:
        limit = _HERMITE_LIMIT[x.dtype] if family.limited else None
        if isinstance(n, int):
            if limit is not None and n > limit:
                return torch.full_like(x, math.nan)
            if n <= _MOST_STEPS:
                return _known_degree(family, x, n)
            n = torch.full_like(x, n, dtype=torch.int64)
        if any(isinstance(size, int) and size == 0 for size in x.shape):
            return torch.zeros_like(x)
        if limit is None:
            return _any_degree(family, x, n)
        return torch.where(n > limit, math.nan, _any_degree(family, x, n.clamp(max=limit)))

    return function


def _known_degree(family: _Family, x: Tensor, n: int) -> Tensor:
    if n <= 0:
        return torch.full_like(x, 0.0 if n < 0 else 1.0)
    before, now = torch.ones_like(x), family.first(x)
    for k in range(1, n):
        before, now = now, family.step(float(k), x, now, before)
    return now if n > 1 else now.clone()


def _any_degree(family: _Family, x: Tensor, n: Tensor) -> Tensor:
    """Degrees that are data: all elements take as many steps as the highest."""

    def goes_on(k: Tensor, before: Tensor, now: Tensor, x: Tensor, n: Tensor) -> Tensor:
        return (k < n).any()

    def body(k: Tensor, before: Tensor, now: Tensor, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        after = family.step(k.to(x.dtype), x, now, before)
        more = k < n
        return k + 1, torch.where(more, now, before), torch.where(more, after, now)

    start = (torch.ones((), dtype=torch.int64), torch.ones_like(x), family.first(x).clone())
    # Not torch.while_loop: it traces by Dynamo, which takes sizes as open once it has seen two of them.
    result = while_loop_op(goes_on, body, start, (x, n))[2]  # pyright: ignore[reportArgumentType]  # the stubs know one carried value
    return torch.where(n < 0, 0.0, torch.where(n == 0, 1.0, result))
