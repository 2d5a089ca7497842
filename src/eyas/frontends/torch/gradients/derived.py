"""Backward ops that are their forward op in plain ops, differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from eyas.frontends.torch.attention import scaled_dot_product_attention
from eyas.frontends.torch.gradients.autograd import gradients
from eyas.frontends.torch.sampling import grid_sampler

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention,
        aten.grid_sampler_2d_backward.default: grid,
        aten.grid_sampler_3d_backward.default: grid,
    }


def attention(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    """Of query, key and value. The weights are computed once more, as torch's kernel does; it drops none."""
    if dropout_p > 0.0:
        return NotImplemented

    def forward(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)

    return tuple(gradients(forward, (query, key, value), (True, True, True), (gradient,)))


def grid(
    gradient: Tensor,
    x: Tensor,
    places: Tensor,
    interpolation: int,
    padding: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Of the image and of the places, those that are wanted."""

    def forward(x: Tensor, places: Tensor) -> Tensor:
        return grid_sampler(x, places, interpolation, padding, align_corners)

    return tuple(gradients(forward, (x, places), output_mask, (gradient,)))
