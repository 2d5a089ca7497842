"""One function of the JAX list: what it is called with, and how near the answer must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """`function(*args)` under eyas equals the same under JAX on the CPU within `rtol` and `atol`."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    rtol: float = 1e-5
    atol: float = 1e-5
    x64: bool = False
    # Number of calls whose results replace the first arguments, as a training loop does; 1 is a plain call.
    steps: int = 1


def normal(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(dtype)


def integers(low: int, high: int, *shape: int, dtype: str = "int32", seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).integers(low, high, shape).astype(dtype)


def complexes(*shape: int) -> np.ndarray:
    return (normal(*shape) + 1j * normal(*shape, seed=1)).astype(np.complex64)


def hermitian(size: int) -> np.ndarray:
    a = normal(size, size) + 1j * normal(size, size)
    return (a + a.conj().T).astype(np.complex64)


def positive_definite(size: int, *batch: int) -> np.ndarray:
    a = normal(*batch, size, size)
    return (a @ np.swapaxes(a, -1, -2) + size * np.eye(size)).astype(np.float32)
