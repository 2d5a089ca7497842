"""Random arrays to call a program with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def random_array(shape: Sequence[int], dtype: np.dtype, seed: int) -> np.ndarray:
    """Normal numbers; small non-negative ones for integers, which are often indices."""
    generator = np.random.default_rng(seed)
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.name.startswith(("int", "uint")):
        bits = int(dtype.name.lstrip("uint"))
        return generator.integers(0, min(100, 1 << (bits - 1)), shape).astype(dtype)
    return generator.standard_normal(shape).astype(dtype)
