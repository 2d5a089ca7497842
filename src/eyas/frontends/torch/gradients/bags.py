"""Gradients of bags and of stretches: each row gets what went to the one that it was reduced to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from eyas.frontends.torch.counting import segment_reduce
from eyas.frontends.torch.gradients.autograd import gradients
from eyas.frontends.torch.routing import bags_of

aten = torch.ops.aten
Tensor = torch.Tensor
_SUM, _MEAN, _MAX = range(3)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten._embedding_bag_backward.default: embedding_bag,
        aten._embedding_bag_per_sample_weights_backward.default: embedding_bag_weights,
        aten._segment_reduce_backward.default: stretches,
    }


def embedding_bag(
    gradient: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """Of the rows. torch notes the bag of each index only where it needs it, so it is found again."""
    if sparse:
        return NotImplemented
    zeros = gradient.new_zeros([num_weights, gradient.shape[1]])
    if mode == _MAX:
        empty = (bag_size == 0).unsqueeze(1)
        given = torch.where(empty, 0.0, gradient)
        return zeros.scatter_add(0, torch.where(empty, 0, maximum_indices).to(torch.int64), given)
    bag = bags_of(indices, offsets[: gradient.shape[0]])
    rows = gradient[bag]
    if mode == _MEAN:
        rows = rows / bag_size[bag].clamp(min=1).unsqueeze(1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    if scale_grad_by_freq:
        times = torch.zeros([num_weights], dtype=torch.int64, device=indices.device)
        times = times.scatter_add(0, indices.to(torch.int64), torch.ones_like(indices, dtype=torch.int64))
        rows = rows / times[indices].unsqueeze(1)
    if padding_idx >= 0:
        rows = torch.where((indices == padding_idx).unsqueeze(1), 0.0, rows)
    return zeros.index_add(0, indices, rows)


def embedding_bag_weights(
    gradient: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """Of what each row counts."""
    rows = gradient[bags_of(indices, offsets[: gradient.shape[0]])]
    found = (rows * weight[indices]).sum(1)
    return found if padding_idx < 0 else torch.where(indices == padding_idx, 0.0, found)


def stretches(
    gradient: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> Tensor:
    """Of the data; several largest elements share what goes to one."""

    def forward(data: Tensor) -> Tensor:
        return segment_reduce(data, reduce, lengths=lengths, offsets=offsets, axis=axis, initial=initial)

    (found,) = gradients(forward, (data,), (True,), (gradient,))
    assert found is not None
    return found
