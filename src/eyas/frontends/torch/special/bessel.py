"""Functions that oscillate: Bessel's J and Y of orders 0 and 1, the spherical j0, Airy's Ai."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from eyas.frontends.torch.special.fits import distance, fit, polynomial, unary

aten = torch.ops.aten
Tensor = torch.Tensor

# First roots, each with what f64 cannot hold of it.
_J0_ROOTS = ((2.404825557695773, -1.176691651530894e-16), (5.520078110286311, 8.088597146146722e-17))
_J1_ROOTS = ((3.8317059702075125, -1.5269184090088067e-16), (7.015586669815619, -9.414165653410389e-17))
_AIRY_ROOT = (-2.338107410459767, -3.912260409818305e-17)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.special_airy_ai.default: unary(airy_ai),
        aten.special_bessel_j0.default: unary(j0),
        aten.special_bessel_j1.default: unary(j1),
        aten.special_bessel_y0.default: unary(y0),
        aten.special_bessel_y1.default: unary(y1),
        aten.special_spherical_bessel_j0.default: unary(spherical_j0),
    }


def j0(x: Tensor) -> Tensor:
    x = x.abs()
    cosine, _ = _waves(0, x)
    return torch.where(x < 5.0, _j0_near(x), cosine)


def j1(x: Tensor) -> Tensor:
    size = x.abs()
    cosine, _ = _waves(1, size)
    result = torch.where(size < 5.0, _j1_near(size), cosine)
    return torch.where(x < 0, -result, result)


def y0(x: Tensor) -> Tensor:
    _, sine = _waves(0, x)
    near = fit("y0_near", x * x) + (2.0 / math.pi) * torch.log(x) * _j0_near(x)
    return _with_pole(x, torch.where(x < 5.0, near, sine))


def y1(x: Tensor) -> Tensor:
    _, sine = _waves(1, x)
    near = fit("y1_near", x * x) / x + (2.0 / math.pi) * torch.log(x) * _j1_near(x)
    return _with_pole(x, torch.where(x < 5.0, near, sine))


def _with_pole(x: Tensor, right: Tensor) -> Tensor:
    return torch.where(x == 0, -math.inf, torch.where(x < 0, math.nan, right))


def _j0_near(x: Tensor) -> Tensor:
    return _roots(x, _J0_ROOTS) * fit("j0_near", x * x)


def _j1_near(x: Tensor) -> Tensor:
    return x * _roots(x, _J1_ROOTS) * fit("j1_near", x * x)


def _roots(x: Tensor, roots: tuple[tuple[float, float], ...]) -> Tensor:
    """The product of x^2 - r^2, right where x is close to a root."""
    (one, rest), (two, other) = roots
    return (distance(x, one, rest) * (x + one)) * (distance(x, two, other) * (x + two))


def _waves(order: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """J and Y of x >= 5, from the cosine and sine of x itself; the phase is a turn by a constant."""
    inverse = 1.0 / x
    square = inverse * inverse
    p, q = fit(f"bessel{order}_p", square), fit(f"bessel{order}_q", square) * inverse
    cosine, sine = torch.cos(x), torch.sin(x)
    # cos(x - pi/4) and sin(x - pi/4), or 3 pi/4, times sqrt(2).
    turned = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -sine - cosine)
    scale = torch.rsqrt(x) * math.sqrt(1.0 / math.pi)
    return scale * (p * turned[0] - q * turned[1]), scale * (p * turned[1] + q * turned[0])


def spherical_j0(x: Tensor) -> Tensor:
    """sin(x) / x."""
    near = polynomial(x * x, [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(8)])
    result = torch.where(x.abs() < 0.5, near, torch.sin(x) / x)
    return torch.where(x.abs() == math.inf, 0.0, result)


def airy_ai(x: Tensor) -> Tensor:
    """Decays right of 0 and oscillates left of it."""
    size = x.abs()
    root = torch.sqrt(size)
    z = (2.0 / 3.0) * size * root
    scale = torch.rsqrt(math.pi * root)
    inverse = 1.0 / z
    right = 0.5 * scale * torch.exp(-z) * fit("airy_right", inverse)
    square = inverse * inverse
    f, g = fit("airy_left_f", square), fit("airy_left_g", square) * inverse
    # sin(z + pi/4) and cos(z + pi/4), times sqrt(2).
    sine, cosine = torch.sin(z), torch.cos(z)
    left = math.sqrt(0.5) * scale * (f * (sine + cosine) - g * (cosine - sine))
    near = distance(x, *_AIRY_ROOT) * torch.exp(-x) * fit("airy_near", x)
    result = torch.where(x > 2.0, right, torch.where(x < -3.25, left, near))
    # As torch has it, also at the far end where waves would go on.
    return torch.where(size == math.inf, math.nan, result)
