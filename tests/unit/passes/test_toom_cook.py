"""The matrices of F(m, 3) against filters applied directly, and which convolutions are worth them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from eyas.passes.optimize.toom_cook import OUTPUTS, TAPS, matrices
from eyas.passes.optimize.winograd import Layer, choose_tile, costs_of
from eyas.targets import Target

COSTS = replace(costs_of(Target.parse("llvm-cpu")), near_bytes=32 << 20)
HOPPER = Target.parse("vulkan:hopper")


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_filtering(outputs):
    rng = np.random.default_rng(outputs)
    made = matrices(outputs)
    data, taps = rng.standard_normal(outputs + TAPS - 1), rng.standard_normal(TAPS)
    given = made.output @ ((made.filter @ taps) * (made.input @ data))
    np.testing.assert_allclose(given, [data[i : i + TAPS] @ taps for i in range(outputs)], rtol=0, atol=1e-14)


@pytest.mark.parametrize("outputs", OUTPUTS)
def test_a_factor_is_spared_in_each_row(outputs):
    assert all(row[np.flatnonzero(row)[-1]] == 1 for row in matrices(outputs).input)


# Layers of ResNet-50, measured; and some at the limits.
@pytest.mark.parametrize(
    "layer, tile",
    [
        (Layer(1, 56, 56, 64, 64), 4),
        (Layer(1, 28, 28, 128, 128), 4),
        (Layer(1, 14, 14, 256, 256), 4),
        (Layer(1, 7, 7, 512, 512), 2),
        (Layer(1, 1, 1, 512, 512), None),
        (Layer(1, 2, 2, 512, 512), None),
        (Layer(1, 224, 224, 3, 64), None),
        (Layer(1, 56, 56, 2, 2), None),
        (Layer(64, 112, 112, 64, 64), 4),
    ],
)
def test_choice(layer, tile):
    assert choose_tile(layer, COSTS) == tile


def test_far_memory_counts():
    """Without a cache that holds the transformed tiles, layers with few channels stay as they are."""
    layer = Layer(1, 128, 128, 16, 16)
    assert choose_tile(layer, COSTS) == 4
    assert choose_tile(layer, replace(COSTS, near_bytes=0)) is None


@pytest.mark.parametrize(
    ("layer", "tile"),
    [
        (Layer(16, 56, 56, 64, 64), 4),
        (Layer(16, 14, 14, 256, 256), 4),
        (Layer(1, 56, 56, 64, 64), None),  # two more dispatches take longer than what they save
        (Layer(1, 7, 7, 512, 512), None),  # four times as many weights
    ],
)
def test_choice_on_a_gpu(layer, tile):
    costs = costs_of(HOPPER)
    assert costs is not None and choose_tile(layer, costs) == tile


def test_none_where_a_cpu_plays_the_gpu():
    assert costs_of(Target.parse("vulkan:lavapipe")) is None
