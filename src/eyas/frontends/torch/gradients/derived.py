"""Backward ops that are their forward op in plain ops, differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from eyas.frontends.torch.gradients.autograd import gradients
from eyas.frontends.torch.sampling import grid_sampler

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten.grid_sampler_2d_backward.default: grid,
        aten.grid_sampler_3d_backward.default: grid,
    }


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
