"""What code needs of a device, as words that a module records and a driver checks: `f16`, `threads=256`, `avx2`."""

from __future__ import annotations

from collections.abc import Iterable

_AT_LEAST = ("bindings", "push-bytes", "shared-bytes", "spirv", "threads")
"""Needs whose number is the least that a device must have: of several the largest says it all."""


def union_of_needs(needs: Iterable[str]) -> tuple[str, ...]:
    """What a device must have to run all of it, sorted: `f16`, `threads=64`, `threads=256` -> `f16`, `threads=256`."""
    rest: set[str] = set()
    largest: dict[str, str] = {}
    for need in needs:
        name, _, number = need.partition("=")
        if name in _AT_LEAST:
            largest[name] = max(number, largest.get(name, number), key=_as_number)
        else:
            rest.add(need)
    return tuple(sorted(rest | {f"{name}={number}" for name, number in largest.items()}))


def _as_number(text: str) -> tuple[int, ...]:
    """`256`, or a version such as `1.6`."""
    return tuple(map(int, text.split(".")))
