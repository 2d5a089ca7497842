"""PyTorch's fused transformer layers, which its own modules for layers and attention call in inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """These, by op."""
    return {
        aten._native_multi_head_attention.default: native_multi_head_attention,
        aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer,
    }


def transformer_encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Attention and a feed-forward network, each with a residual and a layer norm before or after."""
    first = lambda x: F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)  # noqa: E731
    second = lambda x: F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)  # noqa: E731

    def attend(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return native_multi_head_attention(x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type)[0]

    def feed_forward(x: Tensor) -> Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(first(src))
        return x + feed_forward(second(x))
    x = first(src + attend(src))
    return second(x + feed_forward(x))


def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Projections, attention by heads, a projection. True in a mask hides: by row and column (`mask_type` 0), by batch
    and column (1), or in full (2)."""
    parts = zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
    q, k, v = (F.linear(x, weight, bias).unflatten(-1, (num_head, -1)).transpose(1, 2) for x, weight, bias in parts)
    scores = torch.matmul(q * (embed_dim // num_head) ** -0.5, k.transpose(-2, -1))
    if mask is not None:
        hidden = mask[:, None, None, :] if mask_type == 1 else mask
        scores = torch.where(hidden, float("-inf"), scores) if mask.dtype == torch.bool else scores + hidden
    weights = torch.softmax(scores, -1)
    result = F.linear(torch.matmul(weights, v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        # The op returns no tensor of weights then; one without elements stands for it.
        return result, query.new_empty(0)
    return result, weights.mean(1) if average_attn_weights else weights
