"""Parts of tensors that torch cannot trace: their places are numbers that tensors hold, or the choice is made twice."""

from __future__ import annotations

import itertools
from typing import Any

import torch

Tensor = torch.Tensor


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All ways to choose `r` elements of a vector, in order. Which they are depends on its length alone; where that
    varies, they are found among all rows of `r` places."""
    if input.dim() != 1 or r < 1:
        return NotImplemented
    if not isinstance(input.shape[0], int):
        return input[_rising(input, r, with_replacement)]
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = list(choose(range(input.shape[0]), r))
    places = torch.tensor(chosen, dtype=torch.int64, device=input.device).reshape(len(chosen), r)
    return input[places] if chosen else input.new_zeros(0, r)


def _rising(x: Tensor, r: int, is_level: bool) -> Tensor:
    """Rows of places, each of them behind the one before it, or there too."""
    place = torch.arange(x.shape[0], device=x.device)
    rises: Any = torch.ones_like(place, dtype=torch.bool).reshape([-1] + [1] * (r - 1))
    for column in range(1, r):
        before, after = (place.reshape([-1] + [1] * (r - 1 - one)) for one in (column - 1, column))
        rises = rises & (before <= after if is_level else before < after)
    return rises.expand([x.shape[0]] * r).nonzero()


def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Elements from a place on that a tensor holds, which is counted from the end where it is negative."""
    if not isinstance(start, Tensor) or not input.dim():
        return NotImplemented
    first = torch.where(start < 0, start + input.shape[dim], start)
    return input.index_select(dim, first.reshape(1) + torch.arange(length, device=input.device))
