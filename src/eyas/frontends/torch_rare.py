"""Rare forms of common torch ops that the importer gets wrong or crashes on, written in forms that it knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor

_NARROW = (torch.int8, torch.uint8, torch.int16)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.bmm.default: batched_product,
        aten.div.Tensor_mode: quotient,
        aten.fmod.Tensor: rest,
        aten.mm.default: product,
        aten.remainder.Tensor: rest,
        aten.where.self: choice,
    }


def choice(condition: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """The importer folds a choice between a value and itself to that value, without the condition's shape."""
    if one is not other:
        return NotImplemented
    return one.expand(torch.broadcast_shapes(condition.shape, one.shape)).clone()


def product(one: Tensor, other: Tensor) -> Tensor:
    """Integers narrower than 32 bits crash the importer; sums wrap around alike in i32."""
    if one.dtype not in _NARROW:
        return NotImplemented
    return torch.mm(one.to(torch.int32), other.to(torch.int32)).to(one.dtype)


def batched_product(one: Tensor, other: Tensor) -> Tensor:
    """As `product`."""
    if one.dtype not in _NARROW:
        return NotImplemented
    return torch.bmm(one.to(torch.int32), other.to(torch.int32)).to(one.dtype)


def quotient(one: Tensor, other: Tensor, *, rounding_mode: str | None = None) -> Tensor:
    """Whole quotients of bytes have no lowering; they are never negative, so that all roundings are one."""
    if one.dtype != torch.uint8 or other.dtype != torch.uint8 or rounding_mode is None:
        return NotImplemented
    return torch.div(one.to(torch.int32), other.to(torch.int32), rounding_mode="trunc").to(torch.uint8)


def rest(one: Tensor, other: Tensor) -> Tensor:
    """The rest of a division of bytes is taken as if they were signed."""
    if one.dtype != torch.uint8 or other.dtype != torch.uint8:
        return NotImplemented
    return torch.fmod(one.to(torch.int32), other.to(torch.int32)).to(torch.uint8)
