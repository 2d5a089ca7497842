"""Scalars and nothing, where the importer crashes or has no lowering, written in forms that it knows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.amax.default: amax,
        aten.argmax.default: argmax,
        aten.cat.default: join_nothing,
        aten.cumsum.default: running_sum,
        aten.nonzero.default: nonzero,
    }


def amax(x: Tensor, dim: Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """A scalar is its own largest element."""
    return NotImplemented if x.dim() else x.clone()


def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """A scalar has one place."""
    return NotImplemented if x.dim() else torch.zeros_like(x, dtype=torch.int64)


def join_nothing(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The importer leaves out operands without elements along the dimension, and stumbles when none is left."""
    rank = max(x.dim() for x in tensors)
    # torch takes tensors of shape [0] beside those of any rank.
    whole = [x for x in tensors if x.dim() == rank]
    if any(not isinstance(x.shape[dim], int) or x.shape[dim] for x in whole):
        return NotImplemented
    dtype = functools.reduce(torch.promote_types, (x.dtype for x in tensors))
    return whole[0].to(dtype).clone()


def running_sum(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """A scalar is the sum of all so far; whole numbers are summed as i64."""
    if x.dim():
        return NotImplemented
    return x.to(dtype or (x.dtype if x.is_floating_point() or x.is_complex() else torch.int64)).clone()


def nonzero(x: Tensor) -> Tensor:
    """A scalar has no dimension to be found in: one row or none, of no columns."""
    return NotImplemented if x.dim() else torch.nonzero(x.reshape(1))[:, :0]
