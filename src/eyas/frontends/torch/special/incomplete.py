"""The incomplete gamma functions P(a, x) = igamma and Q(a, x) = igammac = 1 - P.

For x <= 1 a power series gives both. Otherwise the smaller part of the integral of t^(a-1) exp(-t), left of x <= a or
right of x > a, is computed with t = x exp(v) or x exp(-v): the integrand then is x^a exp(-x) exp(-h(v)), where h is 0
at 0, convex and growing. Gauss's rule sums it up to where it vanishes; the nodes are one more dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from eyas.frontends.torch.special.fits import binary, fit, polynomial
from eyas.frontends.torch.special.gamma import lgamma_one_more, stirling
from eyas.frontends.torch.special.tables import RULES

aten = torch.ops.aten
Tensor = torch.Tensor

# For each type: nodes of Gauss's rule, the exponent where the integrand ends, terms of the power series, and of that of
# (exp(u) - 1 - u) / u^2 for |u| <= 1/2.
_WORK = {torch.float32: (16, 18.0, 12, 7), torch.float64: (40, 38.0, 20, 14)}


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.igamma.default: binary(lambda a, x: _parts(a, x)[0]),
        aten.igammac.default: binary(lambda a, x: _parts(a, x)[1]),
    }


def _parts(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    a, x = torch.broadcast_tensors(a, x)
    # Arguments that each way can take, wherever it is not the one that is taken.
    inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    low = x <= 1.0
    some_a = torch.where(inside, a, 1.0)
    log_gamma = lgamma_one_more(some_a)
    small = _series(some_a, torch.where(inside & low, x, 0.5), log_gamma)
    large = _quadrature(some_a, torch.where(inside & ~low, x, 2.0), log_gamma)
    lower, upper = (torch.where(low, one, other) for one, other in zip(small, large, strict=True))
    # Neither is defined left of 0, nor where both are 0 or both infinite; else the distribution is on one side.
    valid = (a >= 0) & (x >= 0) & ((a > 0) | (x > 0)) & ((a < math.inf) | (x < math.inf))
    none = (x == 0) | (a == math.inf)
    lower = torch.where(inside, lower, torch.where(none, 0.0, 1.0))
    upper = torch.where(inside, upper, torch.where(none, 1.0, 0.0))
    return torch.where(valid, lower, math.nan), torch.where(valid, upper, math.nan)


def _series(a: Tensor, x: Tensor, log_gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Of x <= 1: x^a / gamma(a + 1) (1 + s), where s is the sum of a (-x)^n / (n! (a + n))."""
    terms = _WORK[x.dtype][2]
    exponent = a * torch.log(x) - log_gamma
    total = (1.0 / math.factorial(terms)) / (a + terms)
    for n in range(terms - 1, 0, -1):
        total = (1.0 / math.factorial(n)) / (a + n) - x * total
    total = -a * x * total
    first = torch.exp(exponent)
    return first * (1.0 + total), -torch.expm1(exponent) - first * total


def _quadrature(a: Tensor, x: Tensor, log_gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Of x > 1."""
    count, end, _, terms = _WORK[x.dtype]
    left = x <= a
    gap = (x - a).abs()
    # Where h(v) >= end: from v^2 / (2 + v) or v^2 / 2 below exp(-v) - 1 + v and exp(v) - 1 - v, and for small x from
    # the exponential itself.
    root = torch.sqrt(x)
    slope = ((2.0 * gap - end) / root).clamp(max=1e18)
    width_left = 4.0 * end / (root * (slope + torch.sqrt(slope * slope + 8.0 * end * (a / x).clamp(max=1e18))))
    slope = (gap / root).clamp(max=1e18)
    width_right = 2.0 * end / (root * (slope + torch.sqrt(slope * slope + 2.0 * end)))
    width_right = torch.minimum(width_right, 2.0 * torch.log1p(torch.sqrt(end / x)))
    width = torch.where(left, width_left, width_right)

    nodes, weights = (_constants(one, x) for one in RULES[count])
    v = width.unsqueeze(-1) * nodes
    u = torch.where(left, -1.0, 1.0).to(x.dtype).unsqueeze(-1) * v
    near = u * u * polynomial(u, [1.0 / math.factorial(n + 2) for n in range(terms)])
    bend = torch.where(v < 0.5, near, torch.expm1(u) - u)
    h = gap.unsqueeze(-1) * v + x.unsqueeze(-1) * bend
    part = width * (torch.exp(-h) * weights).sum(-1) * _density(a, x, log_gamma)
    return torch.where(left, part, 1.0 - part), torch.where(left, 1.0 - part, part)


def _density(a: Tensor, x: Tensor, log_gamma: Tensor) -> Tensor:
    """x^a exp(-x) / gamma(a), given log gamma(a + 1). For a >= 3 by Stirling's formula, where a log(x / a) - x + a has
    no cancellation."""
    away = (x - a) / a
    r = away / (2.0 + away)
    square = r * r
    near = away * r - 2.0 * r * square * fit("atanh_tail", square)
    bend = torch.where((away > -0.5) & (away < 1.0), near, away - torch.log1p(away))
    scale = torch.sqrt(a * (0.5 / math.pi))
    large = scale * torch.exp(-a * bend - stirling(a))
    small = a * torch.exp(a * torch.log(x) - x - log_gamma)
    return torch.where(a < 3.0, small, large)


def _constants(values: tuple[float, ...], like: Tensor) -> Tensor:
    return torch.cat([torch.full((1,), value, dtype=like.dtype, device=like.device) for value in values])
