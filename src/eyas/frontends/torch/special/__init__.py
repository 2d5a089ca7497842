"""Special functions of torch programs, as compositions of elementwise ops that fuse and vectorise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eyas.frontends.torch.special import bessel, gamma, gaussian, incomplete, modified, polynomials, windows


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    found: dict[Any, Callable[..., Any]] = {}
    for source in (bessel, gamma, gaussian, incomplete, modified, polynomials, windows):
        found |= source.decompositions()
    return found
