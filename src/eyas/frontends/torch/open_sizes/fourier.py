"""Transforms along several dimensions of which one varies, one after the other: torch sorts them by size."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fft

Tensor = torch.Tensor


def forms() -> dict[Any, Callable[..., Any]]:
    """By function. The last dimension of a real transform is transformed first on the way there, last on the way
    back."""
    ways = {
        "fftn": (None, fft.fft, None),
        "ifftn": (None, fft.ifft, None),
        "rfftn": (fft.rfft, fft.fft, None),
        "irfftn": (None, fft.ifft, fft.irfft),
        "hfftn": (None, fft.fft, fft.hfft),
        "ihfftn": (fft.ihfft, fft.ifft, None),
    }
    made: dict[Any, Callable[..., Any]] = {}
    for name, (first, each, last) in ways.items():
        transform = functools.partial(_transform, first, each, last)
        made[getattr(fft, name)] = transform
        made[getattr(fft, name[:-1] + "2")] = functools.partial(_in_two, transform)
    return made


def _in_two(
    transform: Callable[..., Tensor], input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: Any = None
) -> Any:
    return transform(input, s, dim, norm)


def _transform(
    first: Any, each: Any, last: Any, input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None
) -> Tensor:
    dims, sizes = _dims(input, s, dim), s
    lengths = [None] * len(dims) if sizes is None else [None if one == -1 else one for one in sizes]
    if not dims:
        return NotImplemented
    *others, end = list(zip(lengths, dims, strict=True))
    one_by_one = others if first or last else [*others, end]
    made = input if first is None else first(input, *end, norm)
    for length, at in one_by_one:
        made = each(made, length, at, norm)
    return made if last is None else last(made, *end, norm)


def _dims(x: Tensor, s: Sequence[int] | None, dim: Sequence[int] | int | None) -> list[int]:
    """All of them, or the last ones that sizes are given for."""
    if dim is None:
        return list(range(x.dim() - (x.dim() if s is None else len(s)), x.dim()))
    return [dim] if isinstance(dim, int) else list(dim)
