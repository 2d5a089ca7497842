"""The matrices of F(m, 3) against filters applied directly, and which convolutions are worth them."""

from __future__ import annotations

import numpy as np
import pytest

from eyas.passes.optimize.toom_cook import OUTPUTS, TAPS, matrices
from eyas.passes.optimize.winograd import Layer, choose_tile

L3_BYTES = 32 << 20


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
    assert choose_tile(layer, L3_BYTES) == tile


def test_far_memory_counts():
    """Without a cache that holds the transformed tiles, layers with few channels stay as they are."""
    layer = Layer(1, 128, 128, 16, 16)
    assert choose_tile(layer, L3_BYTES) == 4
    assert choose_tile(layer, 0) is None
