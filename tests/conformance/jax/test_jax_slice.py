"""A slice of the JAX list that takes less than a minute; `make conformance-jax` runs it whole."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.conformance.jax.check import _difference, all_cases, check  # noqa: E402

SLICE = (
    "numpy/uint8_arithmetic",
    "numpy/complex_matmul",
    "numpy/f64",
    "lax/switch_clamped",
    "lax/scatter_drop",
    "lax/sort_nan",
    "lax/argsort_stable",
    "lax/max_pool_gradient",
    "fft/rfft",
    "linalg/cholesky",
    "linalg/qr",
    "random/permutation",
    "training/transformer_adam",
)


@pytest.mark.parametrize("name", SLICE)
def test_case(name: str) -> None:
    outcome = check(all_cases()[name])
    assert outcome.kind == "passed", outcome.reason


def test_a_wrong_answer_is_seen() -> None:
    case = all_cases()["lax/sort"]
    assert "differs in 1 of 2" in _difference(np.float32([1, 2.5]), np.float32([1, 2]), case)
    assert "int32" in _difference(np.int32([1]), np.float32([1]), case)
