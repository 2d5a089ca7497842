"""Modified Bessel functions: I and K of orders 0 and 1, plain and scaled by an exponential."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from eyas.frontends.torch.special.fits import fit, unary

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.i0.default: unary(i0),
        aten.special_i0e.default: unary(i0e),
        aten.special_i1.default: unary(i1),
        aten.special_i1e.default: unary(i1e),
        aten.special_modified_bessel_i0.default: unary(i0),
        aten.special_modified_bessel_i1.default: unary(i1),
        aten.special_modified_bessel_k0.default: unary(lambda x: _k0(x, scaled=False)),
        aten.special_modified_bessel_k1.default: unary(lambda x: _k1(x, scaled=False)),
        aten.special_scaled_modified_bessel_k0.default: unary(lambda x: _k0(x, scaled=True)),
        aten.special_scaled_modified_bessel_k1.default: unary(lambda x: _k1(x, scaled=True)),
    }


def i0(x: Tensor) -> Tensor:
    return _grown(x, i0e(x))


def i1(x: Tensor) -> Tensor:
    return _grown(x, i1e(x))


def _grown(x: Tensor, scaled: Tensor) -> Tensor:
    """Times exp(|x|), in two factors: the product may be a number where the exponential is none."""
    half = torch.exp(0.5 * x.abs())
    return scaled * half * half


def i0e(x: Tensor) -> Tensor:
    """exp(-|x|) I0(x)."""
    size = x.abs()
    far = fit("i0_far", 1.0 / size) * torch.rsqrt(size)
    return torch.where(size <= 8.0, fit("i0_near", size), far)


def i1e(x: Tensor) -> Tensor:
    """exp(-|x|) I1(x)."""
    size = x.abs()
    far = fit("i1_far", 1.0 / size) * torch.rsqrt(size)
    result = torch.where(size <= 8.0, fit("i1_near", size) * size / (1.0 + size), far)
    return torch.where(x < 0, -result, result)


def _k0(x: Tensor, scaled: bool) -> Tensor:
    near = fit("k0_near", x * x) - torch.log(0.5 * x) * _near_zero(i0e, x)
    return _decaying(x, near, fit("k0_far", 1.0 / x), scaled)


def _k1(x: Tensor, scaled: bool) -> Tensor:
    near = fit("k1_near", x * x) / x + torch.log(0.5 * x) * _near_zero(i1e, x)
    return _decaying(x, near, fit("k1_far", 1.0 / x), scaled)


def _near_zero(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """I(x) of 0 <= x <= 2."""
    x = x.clamp(max=2.0)
    return function(x) * torch.exp(x)


def _decaying(x: Tensor, near: Tensor, far: Tensor, scaled: bool) -> Tensor:
    """K(x), infinite at 0 and NaN left of it; times exp(x) where it is scaled."""
    far = far * torch.rsqrt(x)
    if scaled:
        near = near * torch.exp(x)
    else:
        far = far * torch.exp(-x)
    result = torch.where(x <= 2.0, near, far)
    return torch.where(x == 0, math.inf, torch.where(x < 0, math.nan, result))
