"""Values of leaves: from a seed and a kind, the same in every process."""

from __future__ import annotations

import numpy as np
from tests.fuzz.shadow import DTYPES, LARGEST, SMALLEST_NORMAL, UNIT, to_dtype

FLOAT_KINDS = ("normal", "whole", "unit", "positive", "wide", "special", "hundreds")
INTEGER_KINDS = ("small", "full")


def make(dtype: str, shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
    """An array of a kind. Kinds that only suit some types mean the plain one for others."""
    if kind.startswith("sample:"):
        from tests.fuzz.lowering import from_torch_tensor
        from tests.fuzz.ops.database import tensor_of

        return from_torch_tensor(tensor_of(kind).detach()).copy()
    rng = np.random.default_rng(seed)
    if dtype == "i1":
        return rng.random(shape) < 0.5
    if dtype == "c64":
        plain = kind if kind in ("whole", "unit") else "normal"
        real, imaginary = (to_dtype(_floats(rng, "f32", shape, plain), "f32") for _ in range(2))
        return (real + 1j * imaginary).astype(np.complex64)
    if dtype in UNIT:
        return to_dtype(_floats(rng, dtype, shape, kind), dtype).astype(DTYPES[dtype])
    return _integers(rng, dtype, shape, kind).astype(DTYPES[dtype])


def _floats(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    if kind == "whole":
        return rng.integers(-4, 5, shape).astype(np.float64)
    if kind == "unit":
        return rng.random(shape)
    if kind == "positive":
        return 0.5 + 1.5 * rng.random(shape)
    values = rng.standard_normal(shape)
    if kind == "wide":
        return values * 2.0 ** rng.integers(-10, 6, shape)
    if kind == "hundreds":
        return values * 300  # squares leave the range of f16
    if kind == "special":
        some = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, LARGEST[dtype], -LARGEST[dtype]]
        some += [SMALLEST_NORMAL[dtype], SMALLEST_NORMAL[dtype] * UNIT[dtype] * 2, 0.5, 2.5, 1e4]
        return np.where(rng.random(shape) < 0.4, rng.choice(some, shape), values)
    return values


def _integers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    limits = np.iinfo(DTYPES[dtype])
    name, _, size = kind.partition(":")
    if name == "index":
        return rng.integers(0, int(size), shape)
    if name == "distinct":
        return rng.permutation(int(size))[: shape[0]]
    if name == "shift":
        return rng.integers(0, limits.bits - 1, shape)
    if name == "divisor":
        some = np.array([1, 2, 3, 5, 7, 10] + ([-2, -3, -7] if limits.min < 0 else []))
        return rng.choice(some, shape)
    if name == "full":
        return rng.integers(limits.min, limits.max, shape, dtype=DTYPES[dtype], endpoint=True)
    return rng.integers(0 if limits.min == 0 else -9, 10, shape)
