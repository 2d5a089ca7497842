"""Ops of everyday programs that the importer has no lowering for, in terms of those that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eyas.frontends.torch import antialias, bits, counting, ctc, lines, placing, sampling, whole


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    found: dict[Any, Callable[..., Any]] = {}
    for source in (antialias, bits, counting, ctc, lines, placing, sampling, whole):
        found |= source.decompositions()
    return found
