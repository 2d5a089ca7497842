"""The bits of numbers: `view(dtype)`, and what is defined by the format of floating-point numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

_LIBRARY = torch.library.Library("eyas", "FRAGMENT")
_LIBRARY.define("bitcast(Tensor x, ScalarType dtype) -> Tensor")
_LIBRARY.impl("bitcast", lambda x, dtype: x.clone().view(dtype), "CPU")
torch.library.register_fake("eyas::bitcast", lambda x, dtype: torch.empty_like(x, dtype=dtype), lib=_LIBRARY)

# Integers of a type's size, and the bits of its fraction.
_INTEGER = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}
_FRACTION = {torch.float64: 52, torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.angle.default: angle,
        aten.copysign.Scalar: lambda x, sign: copysign(x, torch.full((), sign, dtype=torch.float64)),
        aten.copysign.Tensor: copysign,
        aten.fmax.default: lambda x, y: _without_nan(x, y, torch.maximum),
        aten.fmin.default: lambda x, y: _without_nan(x, y, torch.minimum),
        aten.frexp.Tensor: frexp,
        aten.nextafter.default: nextafter,
        aten.polar.default: polar,
        aten.signbit.default: signbit,
        aten.view.dtype: view,
    }


def view(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The same memory with elements of another type; where their sizes differ the last dimension does, too."""
    if x.is_complex() or dtype.is_complex or x.dtype == dtype:
        return NotImplemented if x.dtype != dtype else x.clone()
    size, wanted = x.element_size(), dtype.itemsize
    if size == wanted:
        return _cast(x, dtype)
    whole, part = _INTEGER[max(size, wanted)], _INTEGER[min(size, wanted)]
    ratio, width = max(size, wanted) // min(size, wanted), 8 * min(size, wanted)
    shifts = torch.arange(ratio, device=x.device).to(whole) * width
    if size > wanted:
        parts = torch.bitwise_right_shift(_cast(x, whole).unsqueeze(-1), shifts)
        low = parts & ((1 << width) - 1)
        # Into the range of the narrower type, which may be signed.
        low = low if part == torch.uint8 else low - ((low >> (width - 1)) << width)
        return _cast(low.to(part).reshape([*x.shape[:-1], x.shape[-1] * ratio]), dtype)
    groups = _cast(x, part).reshape([*x.shape[:-1], x.shape[-1] // ratio, ratio]).to(whole)
    low = groups & ((1 << width) - 1)
    return _cast(torch.bitwise_left_shift(low, shifts).sum(-1, dtype=whole), dtype)


def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x if x.dtype == dtype else torch.ops.eyas.bitcast(x, dtype)


def signbit(x: Tensor) -> Tensor:
    """-0.0 and some NaN have it."""
    if not x.is_floating_point():
        return x < 0 if x.dtype.is_signed else torch.zeros_like(x, dtype=torch.bool)
    return _cast(x, _INTEGER[x.element_size()]) < 0


def copysign(x: Tensor, sign: Tensor) -> Tensor:
    dtype = torch.result_type(x, sign)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    magnitude = x.to(dtype).abs()
    return torch.where(signbit(sign), -magnitude, magnitude)


def angle(x: Tensor) -> Tensor:
    """0 or pi for real numbers."""
    if x.is_complex():
        return NotImplemented
    wide = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    half = torch.full((), torch.pi, dtype=wide.dtype, device=wide.device)
    return torch.where(wide != wide, wide, torch.where(wide < 0, half, torch.zeros_like(half)))


def polar(magnitude: Tensor, turned: Tensor) -> Tensor:
    magnitude, turned = torch.broadcast_tensors(magnitude, turned)
    return torch.complex(magnitude * torch.cos(turned), magnitude * torch.sin(turned))


def _without_nan(x: Tensor, y: Tensor, choose: Callable[..., Tensor]) -> Tensor:
    """The larger or smaller; the other where one is NaN."""
    dtype = torch.result_type(x, y)
    x, y = torch.broadcast_tensors(x.to(dtype), y.to(dtype))
    if not dtype.is_floating_point:
        return choose(x, y)
    return torch.where(x != x, y, torch.where(y != y, x, choose(x, y)))


def nextafter(x: Tensor, y: Tensor) -> Tensor:
    """Floating-point numbers of one sign are in the order of their bits."""
    dtype = torch.result_type(x, y)
    integer = _INTEGER[dtype.itemsize]
    x, y = torch.broadcast_tensors(x.to(dtype), y.to(dtype))
    bits = _cast(x.contiguous(), integer)
    away = (y > x) == (x > 0)
    stepped = _cast(torch.where(away, bits + 1, bits - 1), dtype)
    smallest = _cast(torch.ones_like(bits), dtype)
    stepped = torch.where(x == 0, copysign(smallest, y), stepped)
    return torch.where((x != x) | (y != y), x + y, torch.where(x == y, y, stepped))


def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """A fraction of at least 1/2 and below 1, and the power of two that it is times. Numbers below the smallest normal
    one are made larger first."""
    fraction, integer = _FRACTION[x.dtype], _INTEGER[x.element_size()]
    width = 8 * x.element_size() - 1 - fraction
    bias = (1 << (width - 1)) - 1
    scale = 2.0 ** (fraction + 1)
    tiny = x.abs() < 2.0 ** (1 - bias)
    bits = _cast(torch.where(tiny, x * scale, x), integer)
    mask = (1 << width) - 1
    exponent = torch.bitwise_right_shift(bits, fraction) & mask
    half = _cast((bits & ~(mask << fraction)) | ((bias - 1) << fraction), x.dtype)
    special = (x == 0) | ~(x.abs() < float("inf"))
    power = exponent.to(torch.int32) - (bias - 1) - torch.where(tiny, fraction + 1, 0).to(torch.int32)
    return torch.where(special, x, half), torch.where(special, 0, power).to(torch.int32)
