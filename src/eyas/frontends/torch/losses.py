"""Losses that torch computes in parts to save memory: here in one piece, which the compiler cuts as it likes.

`torch.nn.functional.linear_cross_entropy` multiplies, compares and differentiates a few samples at a time, in operators
of its own whose forward has the gradients too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from eyas.frontends.torch.gradients.autograd import gradients

Tensor = torch.Tensor


def library_decompositions() -> dict[Any, Callable[..., Any]]:
    """By op; torch registers them when they are first used, and older versions have none of them."""
    name = "_linear_cross_entropy_batch_chunked"
    found = {name: linear_cross_entropy, f"{name}_no_reduction": losses_of_samples}
    return {
        getattr(torch.ops.torch_nn, op).default: made for op, made in found.items() if hasattr(torch.ops.torch_nn, op)
    }


def linear_cross_entropy(
    x: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: torch.dtype,
    allow_retain_graph: bool,
    *wanted: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss, and the gradients of input, matrix and bias that are wanted; the others are empty."""

    def forward(x: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
        return _loss(x, matrix, target, bias, weight, reduction, ignore_index)

    given = (x, linear_weight, linear_bias)
    loss = forward(*given)
    empty = (x.new_empty(0, 0), x.new_empty(0, 0), x.new_empty(0))
    found = gradients(forward, given, wanted, (torch.ones_like(loss),)) if any(wanted) else [None] * 3
    of = [none if one is None else one.to(x.dtype) for one, none in zip(found, empty, strict=True)]
    return loss.to(x.dtype), of[0], of[1], of[2]


def losses_of_samples(
    x: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: torch.dtype,
) -> Tensor:
    return _loss(x, linear_weight, target, linear_bias, weight, "none", ignore_index).to(x.dtype)


def _loss(
    x: Tensor,
    matrix: Tensor,
    target: Tensor,
    bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> Tensor:
    scores = F.linear(_wide(x), _wide(matrix), None if bias is None else _wide(bias))
    counts = None if weight is None else _wide(weight)
    return F.cross_entropy(scores, target, counts, ignore_index=ignore_index, reduction=reduction)


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
