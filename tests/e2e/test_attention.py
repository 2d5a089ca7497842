"""Attention in one dispatch against PyTorch: sizes that divide nothing, masks, batches, narrow floats; and against the
same program without the fusion."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import eyas  # noqa: E402


class Heads(nn.Module):
    """Projections are given; heads are cut out of them, as models do."""

    def __init__(self, heads, function):
        super().__init__()
        self.heads, self.function = heads, function

    def forward(self, q, k, v, *more):
        def split(x):
            return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

        y = self.function(split(q), split(k), split(v), *more)
        return y.transpose(1, 2).reshape(q.shape[0], q.shape[1], -1)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Packed(nn.Module):
    """Queries, keys and values are parts of one tensor; scores are scaled on the way."""

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = x.reshape(b, n, 3, self.heads, c // 3 // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.softmax((q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1), -1)
        return (scores @ v).transpose(1, 2).reshape(b, n, c // 3)


def plain(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), -1) @ v


def added(q, k, v, mask):
    return torch.softmax(q @ k.transpose(-2, -1) * 0.3 + mask, -1) @ v


def chosen(q, k, v, mask):
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def causal(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def squares(q, k, v):
    """Other ops of rows: weights that are squares divided by their mean."""
    scores = (q @ k.transpose(-2, -1)) ** 2
    return (scores / (scores.mean(-1, keepdim=True) + 1)) @ v


def strategies(module):
    return [kernel["strategy"] for kernel in module.manifest["kernels"]]


def draw(batch, rows, columns, heads, depth, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(batch, n, heads * d, generator=generator)
        for n, d in ((rows, depth), (columns, depth), (columns, width))
    ]


def check(model, inputs, tolerance=2e-6, fused=True):
    expected = model(*inputs).float().numpy()
    module = eyas.compile(model, tuple(inputs))
    assert ("attention" in strategies(module)) == fused, strategies(module)
    apart = eyas.compile(model, tuple(inputs), disable=["fuse-attention"])
    assert "attention" not in strategies(apart)
    for one in (module, apart):
        np.testing.assert_allclose(torch.as_tensor(one(*inputs)).float().numpy(), expected, tolerance, tolerance)


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 64, 64, 4, 32, 32),
        (2, 37, 53, 3, 20, 12),  # nothing is divisible by anything
        (1, 128, 16, 1, 8, 64),  # one head: rows are all there is to share out
        (1, 8, 400, 2, 64, 16),
        (3, 25, 197, 5, 16, 33),
    ],
)
def test_sizes(sizes):
    check(Heads(sizes[3], plain), draw(*sizes))


def test_masks():
    q, k, v = draw(2, 30, 41, 4, 16, 16)
    check(Heads(4, added), [q, k, v, torch.randn(30, 41)])
    check(Heads(4, added), [q, k, v, torch.randn(2, 1, 1, 41)])
    keep = torch.rand(2, 4, 30, 41) > 0.3
    keep[0, 1, 5] = False  # a row without any column left
    keep[:, :, 0, 0] = True
    check(Heads(4, chosen), [q, k, v, keep])


def test_the_dispatch_says_what_it_is():
    inputs = draw(1, 32, 32, 2, 16, 16)
    names = [kernel["name"] for kernel in eyas.compile(Heads(2, plain), tuple(inputs)).manifest["kernels"]]
    assert names == ["main_dispatch_0_attention_2x32x32_f32"]


def test_causal():
    check(Heads(2, causal), draw(1, 50, 50, 2, 32, 32))


def test_large_scores_do_not_overflow():
    q, k, v = draw(1, 24, 24, 2, 16, 16)
    check(Heads(2, plain), [q * 60, k * 60, v], 2e-4)


def test_parts_of_one_tensor():
    torch.manual_seed(0)
    check(Packed(6), [torch.randn(1, 51, 3 * 6 * 16)])
    check(Packed(2), [torch.randn(2, 33, 3 * 2 * 24)])


def test_other_ops_of_rows():
    check(Heads(3, squares), draw(1, 29, 31, 3, 16, 16), 2e-5)


@pytest.mark.parametrize("type_", [torch.float16, torch.bfloat16])
def test_narrow_floats(type_):
    inputs = [x.to(type_) for x in draw(1, 40, 48, 2, 32, 32)]
    check(Heads(2, plain), inputs, 4e-3 if type_ is torch.float16 else 3e-2)


def test_long_rows_and_doubles():
    check(Heads(1, plain), draw(1, 20, 1500, 1, 128, 64))
    check(Heads(2, plain), [x.double() for x in draw(1, 20, 30, 2, 8, 8)])


def test_too_few_rows_to_fuse():
    check(Heads(4, plain), draw(1, 1, 64, 4, 32, 32), fused=False)
    check(Heads(4, plain), draw(2, 3, 37, 4, 20, 12), fused=False)
    q, k, v = torch.randn(2, 3, 1, 32), torch.randn(2, 3, 50, 32), torch.randn(2, 3, 50, 32)
    check(Function(plain), [q, k, v], fused=False)


def test_keys_that_are_transposed_already():
    class Transposed(nn.Module):
        def forward(self, q, k, v):
            q, v = (x.view(1, x.shape[1], 4, -1).transpose(1, 2) for x in (q, v))
            return torch.softmax(q @ k.view(1, 4, 16, 40), -1) @ v

    check(Transposed(), [torch.randn(1, 24, 64), torch.randn(1, 64, 40), torch.randn(1, 40, 64)])


def test_scores_that_are_a_result_are_written():
    class Both(nn.Module):
        def forward(self, q, k, v):
            weights = torch.softmax(q @ k.transpose(-2, -1), -1)
            return weights @ v, weights

    inputs = [torch.randn(2, 24, 16), torch.randn(2, 32, 16), torch.randn(2, 32, 8)]
    module = eyas.compile(Both(), tuple(inputs))
    assert "attention" not in strategies(module)
    for got, expected in zip(module(*inputs), Both()(*inputs), strict=True):
        np.testing.assert_allclose(got, expected, 2e-6, 2e-6)


@pytest.mark.parametrize("strategy", ["attention", "rows"])
def test_other_strategies_take_the_fused_program(strategy):
    inputs = draw(2, 37, 53, 3, 20, 12)
    model = Heads(3, plain)
    module = eyas.compile(model, tuple(inputs), disable=["attention", *([] if strategy == "attention" else ["rows"])])
    np.testing.assert_allclose(module(*inputs), model(*inputs), 2e-6, 2e-6)


def test_the_first_and_last_rows_of_more():
    """As in BigBird: blocks of queries see all keys."""

    def ends(q, k, v):
        blocks = q.view(2, 4, 12, 4, 8)
        parts = [torch.softmax(blocks[:, :, i] @ k.transpose(2, 3) * 0.35, -1) @ v for i in (0, -1)]
        return torch.cat(parts, 2)

    model, inputs = Function(ends), [torch.randn(2, 4, 48, 8) for _ in range(3)]
    torch.testing.assert_close(eyas.compile(model, tuple(inputs))(*inputs), model(*inputs), rtol=1e-5, atol=1e-5)
