"""Winograd convolutions against PyTorch in f64.

What a result may err is bounded by what its tile is made from: `u` times the sum over channels of the largest
magnitude in the tile's window times the magnitudes of the filter, where u is a few roundings (`FACTOR`).
A wrong coefficient anywhere exceeds that by far.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.tools.cpus import every_cpu
from tests.tools.slices import half_of

import eyas
from eyas.passes.optimize import winograd

ROUNDING = 2.0**-24
FACTOR = {2: 2.0, 4: 8.0}


class Layer(torch.nn.Module):
    def __init__(self, channels: int, filters: int, padding: int, bias: bool):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, filters, 3, 1, padding, bias=bias)

    def forward(self, x, *added):
        y = self.conv(x)
        for one in added:
            y = y + one
        return torch.relu(y) if added else y


def make(rng, channels, filters, padding=1, bias=True) -> Layer:
    layer = Layer(channels, filters, padding, bias).eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.from_numpy(rng.standard_normal(parameter.shape)))
    return layer


def reference(layer: Layer, *inputs: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        expected = layer.double()(*(torch.from_numpy(x).double() for x in inputs)).numpy()
    layer.float()
    return expected


def bound(layer: Layer, x: np.ndarray, tile: int) -> np.ndarray:
    """The largest error of each output: the magnitudes in the window of its tile, times those of the filter."""
    padding, size = layer.conv.padding[0], tile + 2
    weight = layer.conv.weight.detach().double().abs().sum(dim=(2, 3))  # filters x channels
    height, width = (extent + 2 * padding - 2 for extent in x.shape[2:])
    rows, columns = -(-height // tile), -(-width // tile)
    image = torch.zeros(*x.shape[:2], rows * tile + 2, columns * tile + 2, dtype=torch.float64)
    image[:, :, padding : padding + x.shape[2], padding : padding + x.shape[3]] = torch.from_numpy(np.abs(x)).double()
    peaks = torch.nn.functional.max_pool2d(image, size, tile)
    limits = torch.einsum("fc,nchw->nfhw", weight, peaks)
    limits = limits.repeat_interleave(tile, 2).repeat_interleave(tile, 3)[:, :, :height, :width]
    return FACTOR[tile] * ROUNDING * limits.numpy() + 1e-30


def compile_with(monkeypatch, tile: int, layer: Layer, inputs, **options) -> eyas.Module:
    """Compiled with tiles of this size, whatever they cost; a convolution that stays direct is an error."""
    monkeypatch.setattr(winograd, "choose_tile", lambda *_: tile)
    module = eyas.compile(layer, tuple(torch.from_numpy(x) for x in inputs), **options)
    names = [kernel["name"] for kernel in module.manifest["kernels"]]
    assert any("batch_matmul" in name for name in names) and not any("_conv_" in name for name in names), names
    if "disable" not in options:
        strategies = [kernel["strategy"] for kernel in module.manifest["kernels"]]
        assert strategies.count("transforms") == 2 and "loops" not in strategies, strategies
    return module


TARGETS = pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
SHAPES = [
    # batch, height, width, channels, filters, padding
    (1, 8, 8, 16, 16, 1),  # whole tiles
    (1, 14, 14, 32, 48, 1),  # tiles stick out by two
    (2, 7, 9, 19, 33, 1),  # by one and three, and channels that fill no vector
    (3, 6, 5, 16, 20, 0),  # no padding: 4x3 outputs
    (1, 3, 3, 24, 16, 1),  # less than a tile
    (1, 1, 1, 16, 16, 1),  # one output, from the middle of the filter
    (2, 5, 4, 17, 16, 2),  # more padding than the filter needs
    (1, 3, 31, 40, 8, 1),  # filters that fill half a vector
]


@pytest.mark.parametrize(("shape", "tile", "target"), half_of(SHAPES, [2, 4], ["llvm-cpu", "vmvx"]))
def test_shapes(monkeypatch, target, shape, tile):
    batch, height, width, channels, filters, padding = shape
    rng = np.random.default_rng(height * width)
    layer = make(rng, channels, filters, padding)
    x = rng.standard_normal((batch, channels, height, width)).astype(np.float32)
    given = compile_with(monkeypatch, tile, layer, [x], target=target)(x)
    assert (np.abs(given - reference(layer, x)) <= bound(layer, x, tile)).all()


def check_open_sizes(monkeypatch, tile: int, what: dict, **options) -> None:
    """One module for images of any size, with bias, an addition and an activation."""
    rng = np.random.default_rng(sum(what))
    layer = make(rng, 19, 33)
    monkeypatch.setattr(winograd, "choose_tile", lambda *_: tile)
    example = [torch.zeros(2, channels, 9, 13) for channels in (19, 33)]
    module = eyas.compile(layer, tuple(example), dynamic_shapes={"x": what, "added": (what,)}, **options)
    strategies = [kernel["strategy"] for kernel in module.manifest["kernels"]]
    assert strategies.count("transforms") == 2 and "loops" not in strategies, strategies
    for batch, height, width in [(2, 9, 13), (1, 3, 4), (3, 16, 5), (2, 30, 31), (5, 2, 44)]:
        batch, height, width = batch if 0 in what else 2, height if 2 in what else 9, width if 3 in what else 13
        x = rng.standard_normal((batch, 19, height, width)).astype(np.float32)
        added = rng.standard_normal((batch, 33, height, width)).astype(np.float32)
        limit = bound(layer, x, tile) + 4 * ROUNDING * np.abs(added)
        assert (np.abs(module(x, added) - reference(layer, x, added)) <= limit).all(), (batch, height, width)


BATCH, SIDES = {0: torch.export.Dim("n")}, {2: torch.export.Dim("h", min=2), 3: torch.export.Dim("w", min=3)}
OPEN = pytest.mark.parametrize("what", [BATCH, SIDES, BATCH | SIDES], ids=["batch", "sides", "all"])


@OPEN
@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("target", [*every_cpu(), "vmvx"])
def test_open_sizes(monkeypatch, target, tile, what):
    check_open_sizes(monkeypatch, tile, what, target=target)


@OPEN
def test_open_sizes_on_a_gpu(monkeypatch, what, vulkan_device):
    check_open_sizes(monkeypatch, 4, what, target="vulkan:hopper", device="vulkan")


@pytest.mark.parametrize(("shape", "tile"), half_of(SHAPES, [2, 4]))
def test_shapes_on_a_gpu(monkeypatch, shape, tile, vulkan_device):
    batch, height, width, channels, filters, padding = shape
    rng = np.random.default_rng(height * width)
    layer = make(rng, channels, filters, padding)
    x = rng.standard_normal((batch, channels, height, width)).astype(np.float32)
    given = compile_with(monkeypatch, tile, layer, [x], target="vulkan:hopper", device="vulkan")(x)
    assert (np.abs(given - reference(layer, x)) <= bound(layer, x, tile)).all()


@pytest.mark.parametrize("tile", [2, 4])
@TARGETS
def test_bias_addition_and_activation_follow_in_registers(monkeypatch, target, tile):
    """Also where tiles stick out; what is added may lose its place to the result."""
    rng = np.random.default_rng(5)
    layer = make(rng, 20, 24)
    x = rng.standard_normal((2, 20, 7, 10)).astype(np.float32)
    added = rng.standard_normal((2, 24, 7, 10)).astype(np.float32)
    given = compile_with(monkeypatch, tile, layer, [x, added], target=target)(x, added)
    assert (given == 0).any() and (given > 0).any()
    assert (np.abs(given - reference(layer, x, added)) <= bound(layer, x, tile) + 4 * ROUNDING * np.abs(added)).all()


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("kind", ["channels", "pixel", "huge", "tiny"])
def test_ill_scaled_data(monkeypatch, kind, tile):
    """Channels from 1e-6 to 1e6 with weights the other way round, one pixel that outshines the rest, and numbers near
    the ends of the range."""
    rng = np.random.default_rng(11)
    layer = make(rng, 32, 16, bias=False)
    x = rng.standard_normal((1, 32, 12, 13)).astype(np.float32)
    if kind == "channels":
        scale = np.logspace(-6, 6, 32).astype(np.float32).reshape(1, 32, 1, 1)
        x *= scale
        with torch.no_grad():
            layer.conv.weight /= torch.from_numpy(scale)
    elif kind == "pixel":
        x[0, :, 5, 6] *= 1e6
    else:
        x *= np.float32(1e33 if kind == "huge" else 1e-33)
    given = compile_with(monkeypatch, tile, layer, [x])(x)
    assert np.isfinite(given).all()
    assert (np.abs(given - reference(layer, x)) <= bound(layer, x, tile)).all()


@TARGETS
def test_a_network_of_such_layers(target):
    """Errors do not add up: eight layers with residuals stay within 1e-5 of the largest value."""

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Conv2d(32, 32, 3, padding=1) for _ in range(8))

        def forward(self, x):
            for layer in self.layers:
                x = torch.relu(layer(x)) + x
            return x

    torch.manual_seed(0)
    network = Network().eval()
    x = np.random.default_rng(0).standard_normal((1, 32, 18, 18)).astype(np.float32)
    given = eyas.compile(network, (torch.from_numpy(x),), target=target)(x)
    expected = reference(network, x)
    assert np.abs(given - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_tiles_of_any_width(monkeypatch, width):
    """Rows and columns of a block are other ones at each width, those that stick out among them."""
    rng = np.random.default_rng(width)
    layer = make(rng, 72, 40)
    x = rng.standard_normal((1, 72, 9, 38)).astype(np.float32)
    monkeypatch.setenv("EYAS_VMVX_WIDTH", str(width))
    given = compile_with(monkeypatch, 4, layer, [x], target="vmvx")(x)
    assert (np.abs(given - reference(layer, x)) <= bound(layer, x, 4)).all()


@TARGETS
def test_plain_loops_agree(monkeypatch, target):
    rng = np.random.default_rng(3)
    layer = make(rng, 16, 16)
    x = rng.standard_normal((1, 16, 6, 7)).astype(np.float32)
    for disable in (["transforms"], ["contraction", "rows", "transforms", "windows"]):
        given = compile_with(monkeypatch, 4, layer, [x], disable=disable, target=target)(x)
        assert (np.abs(given - reference(layer, x)) <= bound(layer, x, 4)).all()


def test_it_can_be_switched_off():
    layer = make(np.random.default_rng(0), 64, 64)
    x = torch.zeros(1, 64, 16, 16)
    for disable in (["winograd"], ["evaluate-constants"]):
        module = eyas.compile(layer, (x,), disable=disable)
        assert not any("batch_matmul" in kernel["name"] for kernel in module.manifest["kernels"])
        assert module.manifest["flops"] == 2 * 9 * 16 * 16 * 64 * 64
    module = eyas.compile(layer, (x,))
    assert not any("_conv_" in kernel["name"] for kernel in module.manifest["kernels"])
    assert module.manifest["flops"] == 2 * 36 * 16 * 64 * 64, "the products; the transforms are additions"
