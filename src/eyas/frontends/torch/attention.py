"""Attention and softmax in plain ops: exponentials of distances from the largest, in f32 for half types."""

from __future__ import annotations

import math

import torch

Tensor = torch.Tensor


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q k^T scale + mask) v. Only a given mask can hide a whole row, whose result is then 0. Scores and weights
    of half types are not rounded to them: an error of 0.1 in a score is one of a tenth in its weight."""
    narrow = query.dtype
    query, key, value = (_widened(one) for one in (query, key, value))
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = torch.matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        rows, columns = query.shape[-2], key.shape[-2]
        below = torch.ones(rows, columns, dtype=torch.bool, device=query.device).tril()
        scores = torch.where(below, scores, float("-inf"))
    if attn_mask is None:
        weights = torch.softmax(scores, -1)
    else:
        if attn_mask.dtype == torch.bool:
            scores = torch.where(attn_mask, scores, float("-inf"))
        else:
            scores = scores + attn_mask.to(scores.dtype)
        weights = safe_softmax(scores, -1)
    weights = torch.dropout(weights, dropout_p, True) if dropout_p > 0.0 else weights
    return torch.matmul(weights, value).to(narrow)


def softmax(x: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    """exp(x - max) / sum."""
    wide = _widened(x)
    powers = torch.exp(wide - wide.amax(dim, keepdim=True))
    result = powers / powers.sum(dim, keepdim=True)
    return result if half_to_float else result.to(x.dtype)


def safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """Softmax that gives 0 for rows that are all -inf."""
    wide = _widened(x if dtype is None else x.to(dtype))
    largest = wide.amax(dim, keepdim=True)
    powers = torch.exp(wide - torch.where(largest == float("-inf"), 0.0, largest))
    total = powers.sum(dim, keepdim=True)
    return (powers / torch.where(total == 0.0, 1.0, total)).to(dtype or x.dtype)


def _widened(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
