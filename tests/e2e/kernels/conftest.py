"""Small linalg programs against NumPy, for every width of vectors that this machine has, and with plain loops only.

Tolerances: integers and copies bit for bit; sums of n terms to a small multiple of n roundings of the element type;
transcendental functions to a few roundings more.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Another seed for each test, the same in each run."""
    return np.random.default_rng(sum(map(ord, request.node.name)))
