"""Backward ops of torch's autograd that nothing else takes apart: what training steps have and inference has not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eyas.frontends.torch.gradients import axes, bags, derived, distances, places


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        **axes.decompositions(),
        **bags.decompositions(),
        **derived.decompositions(),
        **distances.decompositions(),
        **places.decompositions(),
    }
