"""Gradients of norms of differences: 0 where the distance is, which plain differentiation would make NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {aten._cdist_backward.default: all_pairs, aten._pdist_backward.default: pairs}


def all_pairs(gradient: Tensor, x: Tensor, y: Tensor, p: float, distance: Tensor) -> Tensor:
    """For the rows of x."""
    difference = x.unsqueeze(-2) - y.unsqueeze(-3)
    return _of_difference(gradient.unsqueeze(-1), difference, p, distance.unsqueeze(-1)).sum(-2)


def pairs(gradient: Tensor, x: Tensor, p: float, distance: Tensor) -> Tensor:
    """Each row is in pairs with all others: the first of some, the second of the rest."""
    rows, columns = torch.triu_indices(x.shape[0], x.shape[0], 1, device=x.device)
    made = _of_difference(gradient.unsqueeze(-1), x[rows] - x[columns], p, distance.unsqueeze(-1))
    return torch.zeros_like(x).index_add(0, rows, made).index_add(0, columns, -made)


def _of_difference(gradient: Tensor, difference: Tensor, p: float, distance: Tensor) -> Tensor:
    if p == 0:
        return torch.zeros_like(gradient * difference)
    if p == 1:
        return gradient * torch.sign(difference)
    if math.isinf(p):
        return gradient * torch.sign(difference) * (difference.abs() == distance).to(difference.dtype)
    apart = distance != 0
    safe = torch.where(apart, distance, 1.0)
    if p == 2:
        return torch.where(apart, gradient * difference / safe, 0.0)
    if p < 1:
        apart = apart & (difference != 0)
    size = torch.where(difference != 0, difference.abs(), 1.0 if p < 1 else 0.0)
    return torch.where(apart, torch.sign(difference) * size.pow(p - 1) * gradient / safe.pow(p - 1), 0.0)
