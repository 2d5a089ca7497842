"""The logarithm of the gamma function and its derivatives: lgamma, digamma, polygamma, and Hurwitz' zeta function."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from eyas.frontends.torch.special.fits import binary, distance, fit, polynomial, real, unary

aten = torch.ops.aten
Tensor = torch.Tensor

# Where digamma is 0, and what f64 cannot hold of it.
_ROOT, _ROOT_REST = 1.4616321449683623, 9.549995429965698e-17
_HALF_LOG_TWO_PI = 0.9189385332046727

# Bernoulli's numbers B(2k) / (2k)!.
_BERNOULLI = (
    *(1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600),
    *(-3617 / 10670622842880000, 43867 / 5109094217170944000, -174611 / 802857662698291200000),
)
_ZETA_TERMS = 10


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.digamma.default: unary(digamma),
        aten.lgamma.default: unary(lgamma),
        aten.polygamma.default: polygamma,
        aten.special_zeta.default: binary(zeta),
        aten.special_zeta.other_scalar: binary(zeta),
        aten.special_zeta.self_scalar: binary(zeta),
    }


def lgamma(x: Tensor) -> Tensor:
    """log |gamma(x)|; left of 0 by reflection."""
    size = x.abs()
    right = lgamma_positive(size)
    sine = torch.sin(math.pi * _from_whole(size)).abs()
    left = torch.log(math.pi / (size * sine)) - right
    # Large numbers are whole, and of tiny ones the product would be 0.
    left = torch.where(size == torch.round(size), math.inf, torch.where(size < 1e-17, right, left))
    return torch.where(x < 0, left, right)


def lgamma_positive(x: Tensor) -> Tensor:
    """Of x >= 0: a fit on [1, 3], Stirling's formula above, a step of the recurrence below."""
    low = x < 1.0
    near = torch.where(low, x + 1.0, x)
    # Right also where x is close to 1 or 2, at which the function is 0.
    between = torch.where(low, x, x - 1.0) * torch.where(low, x - 1.0, x - 2.0) * fit("lgamma_near", near)
    between = between - torch.where(low, torch.log(x), 0.0)
    return torch.where(x < 3.0, between, _lgamma_far(x))


def _lgamma_far(x: Tensor) -> Tensor:
    return (x - 0.5) * (torch.log(x) - 1.0) + (stirling(x) + (_HALF_LOG_TWO_PI - 0.5))


def lgamma_one_more(x: Tensor) -> Tensor:
    """log gamma(1 + x) of x >= 0, right for tiny x."""
    low = x.clamp(max=2.0)
    return torch.where(x < 2.0, low * (low - 1.0) * fit("lgamma_near", low + 1.0), _lgamma_far(x + 1.0))


def stirling(x: Tensor) -> Tensor:
    """What Stirling's formula lacks, of x >= 3."""
    inverse = 1.0 / x
    return inverse * fit("lgamma_far", inverse * inverse)


def _from_whole(x: Tensor) -> Tensor:
    """How far x is from the nearest whole number."""
    return x - torch.round(x)


def digamma(x: Tensor) -> Tensor:
    """The derivative of lgamma. As torch has it, infinite at 0 and NaN at the other poles."""
    mirrored = torch.where(x < 0, 1.0 - x, x)
    right = _digamma_positive(mirrored)
    rest = math.pi * _from_whole(x)
    left = right - math.pi * torch.cos(rest) / torch.sin(rest)
    left = torch.where(rest == 0, math.nan, left)
    return torch.where(x < 0, left, torch.where(x == 0, -1.0 / x, right))


def _digamma_positive(x: Tensor) -> Tensor:
    low = x < 1.0
    near = torch.where(low, x + 1.0, x)
    between = distance(near, _ROOT, _ROOT_REST) * fit("digamma_near", near) - torch.where(low, 1.0 / x, 0.0)
    inverse = 1.0 / x
    square = inverse * inverse
    far = torch.log(x) - 0.5 * inverse - square * fit("digamma_far", square)
    return torch.where(x < 3.0, between, far)


def polygamma(order: int, x: Tensor) -> Tensor:
    """The derivative of digamma of that order: n! times a zeta function, left of 1/2 by reflection."""
    if order == 0:
        return unary(digamma)(x)
    x = real(x)
    sign, factor = (1.0 if order % 2 else -1.0), _factorial(order, x.dtype)
    low = x < 0.5
    right = sign * factor * _hurwitz(float(order + 1), torch.where(low, 1.0 - x, x))
    angle = math.pi * _from_whole(x)
    cotangent = torch.cos(angle) / torch.sin(angle)
    left = -sign * right - polynomial(cotangent, _cotangent_derivative(order))
    # At the poles, which all have the sign of the one at 0 where the order is odd.
    left = torch.where(angle == 0, sign * math.inf, left)
    return torch.where(low, left, right)


def _factorial(order: int, dtype: torch.dtype) -> float:
    value = math.exp(math.lgamma(order + 1)) if order > 170 else float(math.factorial(order))
    return value if value < torch.finfo(dtype).max else math.inf


def _cotangent_derivative(order: int) -> list[float]:
    """The derivative of pi cot(pi x), as coefficients of powers of cot(pi x): that of cot is -pi (1 + cot^2)."""
    made = [0.0, math.pi]
    for _ in range(order):
        slope = [power * one for power, one in enumerate(made)][1:]
        made = [0.0] * (len(slope) + 2)
        for power, one in enumerate(slope):
            made[power] -= math.pi * one
            made[power + 2] -= math.pi * one
    return made


def zeta(x: Tensor, q: Tensor) -> Tensor:
    """The sum of (q + k)^-x. With q < 0 the terms left of 0 are the difference of two such sums, for whole x."""
    x, q = torch.broadcast_tensors(x, q)
    whole = torch.ceil(q)
    first = torch.where(q > 0, q, torch.where(q < 0, q - whole + 1.0, 0.5))
    # All three at once: the function is a long one.
    starts = torch.stack([first, torch.where(q > 0, 1.0, 1.0 - first), torch.where(q > 0, 1.0, 1.0 - q)])
    right, nearest, farthest = _hurwitz(x, starts).unbind()
    odd = torch.remainder(x, 2.0) != 0
    # The two sums that begin near 0 may be equal, and are then much larger than what is left.
    left = torch.where(odd, right - nearest, right + nearest) + torch.where(odd, farthest, -farthest)
    left = torch.where(q == whole, math.inf, torch.where(x == torch.floor(x), left, math.nan))
    result = torch.where(q > 0, right, torch.where(q <= 0, left, math.nan))
    return torch.where(x == 1.0, math.inf, torch.where(x > 1.0, result, math.nan))


def _hurwitz(x: Any, q: Tensor) -> Tensor:
    """Of x > 1, q > 0, by the formula of Euler and Maclaurin. Terms are divided by the first: their exponents are then
    small wherever they matter."""
    first = _negative_power(q, x)
    inverse = 1.0 / q
    total = 1.0
    for k in range(1, _ZETA_TERMS):
        total = total + torch.exp(-x * torch.log1p(k * inverse))
    end = q + _ZETA_TERMS
    last = torch.exp(-x * torch.log1p(_ZETA_TERMS * inverse))
    terms = len(_BERNOULLI) if q.dtype == torch.float64 else 5
    step = 1.0 / end
    square = step * step
    rising, corrections = x * step, 0.0
    for k in range(terms):
        corrections = corrections + _BERNOULLI[k] * rising
        rising = rising * ((x + (2 * k + 1)) * (x + (2 * k + 2))) * square
    tail = last * (end / (x - 1.0) + 0.5 + corrections)
    return first * (total + torch.where(last > 0, tail, 0.0))


def _negative_power(q: Tensor, x: Any) -> Tensor:
    """q^-x; of whole numbers x that are known by squaring, which vectorises."""
    if isinstance(x, Tensor):
        return torch.pow(q, -x)
    base, result, exponent = 1.0 / q, None, int(x)
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        base = base * base
    assert result is not None
    return result
