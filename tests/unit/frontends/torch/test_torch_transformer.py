"""The fused layers, called as `torch.nn` calls them in inference, against their kernels."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from eyas.frontends.torch import transformer as torch_transformer  # noqa: E402

torch.manual_seed(0)
X = torch.randn(2, 5, 8)
PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
CAUSAL = torch.ones(5, 5, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize(("mask", "kind"), [(None, None), (CAUSAL, 0), (PADDING, 1)])
def test_encoder_layer(norm_first, mask, kind):
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=norm_first, batch_first=True).eval()
    attention = layer.self_attn
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
        arguments = (
            *(X, 8, 2, attention.in_proj_weight, attention.in_proj_bias),
            *(attention.out_proj.weight, attention.out_proj.bias, True, norm_first, 1e-5),
            *(layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias),
            *(layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias, mask, kind),
        )
        theirs = torch.ops.aten._transformer_encoder_layer_fwd(*arguments)
        ours = torch_transformer.transformer_encoder_layer(*arguments)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("need", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_attention(need, average):
    layer = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad():
        arguments = (
            *(X, X, X, 8, 2, layer.in_proj_weight, layer.in_proj_bias + 0.1),
            *(layer.out_proj.weight, layer.out_proj.bias + 0.1, None, need, average),
        )
        theirs = torch.ops.aten._native_multi_head_attention(*arguments)
        ours = torch_transformer.native_multi_head_attention(*arguments)
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-4, atol=1e-5)
    if need:
        torch.testing.assert_close(ours[1], theirs[1], rtol=1e-4, atol=1e-5)
