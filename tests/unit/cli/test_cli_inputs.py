"""Inputs of small types on the command line: `8xf8e4m3fn=random`, `4xi4=random`."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from eyas.cli.common import parse_shape
from eyas.program.examples import random_array


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("2x8xf8e4m3fn", ml_dtypes.float8_e4m3fn), ("8xf8e8m0", ml_dtypes.float8_e8m0fnu), ("8xi4", ml_dtypes.int4)],
)
def test_shapes_of_small_types(text: str, dtype: type):
    shape, found = parse_shape(text)
    assert shape == tuple(int(size) for size in text.split("x")[:-1]) and found == np.dtype(dtype)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint2, np.uint8, np.int64])
def test_random_integers_use_the_range(dtype: type):
    """A type's own range, not a few numbers around zero."""
    values = random_array((1000,), np.dtype(dtype), 0).astype(np.int64)
    high = min(100, 1 << (int(np.dtype(dtype).name.lstrip("uint")) - 1))
    assert set(values) == set(range(high))
