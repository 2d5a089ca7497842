"""Linear algebra of torch programs: every op of it in terms of the few factorisations of `operators`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eyas.frontends.torch.linear_algebra import spectra, systems


def decompositions() -> dict[Any, Callable[..., Any]]:
    """What replaces torch's calls of LAPACK."""
    return {**systems.decompositions(), **spectra.decompositions()}
