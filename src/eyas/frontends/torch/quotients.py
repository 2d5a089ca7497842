"""Quotients that are rounded down and what a division leaves, as torch's kernels have them.

The importer rounds the quotient of floats, which may have been rounded up to a whole number before (6 // 0.1 is 59),
and gives -0 for -1 // inf, which is -1. It divides integers of 64 bits as f64, which has 53. The rest by fmod it
computes from the rounded quotient, where nothing is right of large quotients and infinite divisors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

_HALVES = (torch.float16, torch.bfloat16)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.div.Scalar_mode: quotient,
        aten.div.Tensor_mode: quotient,
        aten.floor_divide.Scalar: floor_quotient,
        aten.floor_divide.default: floor_quotient,
        aten.fmod.Tensor: rest_like_dividend,
    }


def quotient(one: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Rounded down; the other ways are the importer's."""
    return floor_quotient(one, other) if rounding_mode == "floor" else NotImplemented


def floor_quotient(one: Any, other: Any) -> Tensor:
    """Of floats and of integers of 64 bits. The others fit into what the importer divides them as."""
    dtype = torch.result_type(one, other)
    if dtype == torch.int64:
        # A number stays one: of two constant tensors the importer divides doubles.
        return _of_integers(_as(one, dtype, one, other), other if isinstance(other, int) else _as(other, dtype, one))
    if not dtype.is_floating_point:
        return NotImplemented
    wide = torch.float32 if dtype in _HALVES else dtype
    return _of_floats(*(_as(given, wide, one, other) for given in (one, other))).to(dtype)


def rest_like_dividend(one: Tensor, other: Tensor) -> Tensor:
    """What is left of floats, with the sign of the first; the importer's remainder is exact."""
    dtype = torch.result_type(one, other)
    if not dtype.is_floating_point:
        return NotImplemented
    one = one.to(dtype)
    return torch.copysign(torch.remainder(one.abs(), other.to(dtype).abs()), one)


def _as(given: Any, dtype: torch.dtype, *among: Any) -> Tensor:
    """An operand as a tensor of the type."""
    if isinstance(given, Tensor):
        return given.to(dtype)
    like = next(one for one in among if isinstance(one, Tensor))
    return torch.full((), given, dtype=dtype, device=like.device)


def _of_integers(one: Tensor, other: Tensor | int) -> Tensor:
    made = torch.div(one, other, rounding_mode="trunc")
    rest = one - made * other
    return made - ((rest != 0) & ((rest < 0) != (other < 0))).to(torch.int64)


def _of_floats(one: Tensor, other: Tensor) -> Tensor:
    """Of the part that the divisor goes into, so that the quotient is a whole number but for its rounding."""
    plain, rest = one / other, torch.fmod(one, other)
    made = (one - rest) / other
    made = torch.where((rest != 0) & ((other < 0) != (rest < 0)), made - 1, made)
    whole = torch.floor(made)
    whole = torch.where(made - whole > 0.5, whole + 1, whole)
    whole = torch.where(made != 0, whole, torch.copysign(torch.zeros_like(plain), plain))
    return torch.where(other == 0, plain, whole)
