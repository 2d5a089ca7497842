"""Products of parameters of which a run of the tests takes a part, and `-m long` the rest."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def half_of(*axes: Sequence[Any]) -> list:
    """Every other combination, as the squares of a chessboard: each two values of different axes meet, if there are
    three axes or more. The others are long."""
    found = []
    for places in itertools.product(*(range(len(axis)) for axis in axes)):
        values = [axis[place] for axis, place in zip(axes, places, strict=True)]
        found.append(pytest.param(*values, marks=pytest.mark.long if sum(places) % 2 else ()))
    return found
