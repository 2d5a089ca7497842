"""Gradients that go back to places which the forward pass noted: of largest elements, of rows, of masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.adaptive_max_pool2d_backward.default: lambda gradient, x, indices: _back(gradient, x, indices, 2),
        aten.adaptive_max_pool3d_backward.default: lambda gradient, x, indices: _back(gradient, x, indices, 3),
        aten.embedding_dense_backward.default: embedding,
        aten.masked_scatter_backward.default: masked_scatter,
        aten.max_pool2d_with_indices_backward.default: lambda gradient, x, *window: _back(gradient, x, window[-1], 2),
        aten.max_pool3d_with_indices_backward.default: lambda gradient, x, *window: _back(gradient, x, window[-1], 3),
    }


def _back(gradient: Tensor, x: Tensor, indices: Tensor, axes: int) -> Tensor:
    """Windows may overlap, so what goes to one place is added up."""
    sizes, rest = x.shape[x.dim() - axes :], x.shape[: x.dim() - axes]
    zeros = torch.zeros([*rest, math.prod(sizes)], dtype=gradient.dtype, device=gradient.device)
    if not gradient.numel():
        return zeros.reshape(x.shape)
    return zeros.scatter_add(-1, indices.reshape(*rest, -1), gradient.reshape(*rest, -1)).reshape(x.shape)


def embedding(
    gradient: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """torch's own way has no place for a single index."""
    if indices.dim():
        return NotImplemented
    return aten.embedding_dense_backward.default(
        gradient.unsqueeze(0), indices.unsqueeze(0), num_weights, padding_idx, scale_grad_by_freq
    )


def masked_scatter(gradient: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """Of the source: the gradients at masked places in order, then zeros."""
    count = math.prod(sizes)
    mask = mask.expand(gradient.shape).reshape(-1)
    order = mask.to(torch.int64).cumsum(0) - 1
    # What was not taken from the source goes to a place behind its end.
    place = torch.where(mask, order, count)
    made = torch.zeros([count + 1], dtype=gradient.dtype, device=gradient.device)
    return made.scatter(0, place, gradient.reshape(-1))[:count].reshape(sizes)
