"""PyTorch programs with quantised linear layers and convolutions, as its export-based quantisation writes them."""

from __future__ import annotations

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers torch.ops.quantized_decomposed

import eyas
from eyas.pipelines import driver
from eyas.pipelines.request import Phase, Request, Services

OPS = torch.ops.quantized_decomposed


class Quantized(torch.nn.Module):
    """Activations of one scale and zero point, weights of one scale a channel, and a float layer between."""

    def __init__(self, weight: torch.Tensor, layer, kind: torch.dtype, zero: int, bias: bool = True):
        super().__init__()
        limit = torch.iinfo(kind)
        self.range = (0.05, zero, limit.min, limit.max, kind)
        self.layer = layer
        channels = weight.shape[0]
        self.register_buffer("weight", weight)
        self.register_buffer("scales", torch.rand(channels) * 0.01 + 0.005)
        self.register_buffer("zeros", torch.zeros(channels, dtype=torch.int64))
        self.bias = torch.nn.Parameter(torch.randn(channels)) if bias else None

    def forward(self, x):
        x = OPS.dequantize_per_tensor(OPS.quantize_per_tensor(x, *self.range), *self.range)
        weight = OPS.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        return self.layer(x, weight, self.bias)


def conv(x, weight, bias):
    return torch.nn.functional.conv2d(x, weight, bias, padding=1, stride=2)


def depthwise(x, weight, bias):
    return torch.nn.functional.conv2d(x, weight, bias, padding=1, groups=weight.shape[0])


def linear(x, weight, bias):
    return torch.nn.functional.linear(x, weight, bias)


CASES = [
    (linear, (16, 64), (5, 64), "linalg.matmul"),
    (conv, (12, 8, 3, 3), (2, 8, 9, 9), "linalg.conv_2d_nhwc_hwcf"),
    (depthwise, (8, 1, 3, 3), (1, 8, 9, 9), "linalg.depthwise_conv_2d_nhwc_hwc"),
]


@pytest.mark.parametrize(("kind", "zero"), [(torch.int8, 7), (torch.uint8, 120), (torch.int8, 0)], ids=str)
@pytest.mark.parametrize(("layer", "weight", "shape", "name"), CASES, ids=["linear", "conv", "depthwise"])
def test_products_of_bytes(layer, weight, shape, name, kind, zero):
    torch.manual_seed(0)
    model = Quantized(torch.randint(-127, 128, weight, dtype=torch.int8), layer, kind, zero)
    x = torch.randn(shape) * 2
    compilation = driver.run(Request(model, (x,), last=Phase.DISPATCH), Services(workers=1))
    lines = [line for line in compilation.as_text().splitlines() if f"= {name} " in line]
    assert lines and all(line.split(" outs(")[0].count("xi8>") == 2 and "xi32>" in line for line in lines), lines
    got = eyas.compile(model, (x,), device="local-sync")(x)
    torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-4)
