"""Reading and writing at positions whose number depends on data, as `nonzero` gives them.

The importer pairs several index tensors up only where it can see that their lengths are equal, which it cannot for
lengths that are known at run time. One index into the merged dimensions says the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from eyas.frontends import torch_selection

aten = torch.ops.aten
Tensor = torch.Tensor
Indices = Sequence[Tensor | None]


def index(x: Tensor, indices: Indices) -> Tensor:
    """x[..., i, j, ...] for lists of positions of unknown length; masks become such lists."""
    masked = torch_selection.index_by_mask(x, indices)
    if masked is not NotImplemented:
        return masked
    first, count = _dims_to_merge(indices)
    if not count:
        return NotImplemented
    place = _merged_index(x, indices, first, count)
    return aten.index.Tensor(_merge(x, first, count), [None] * first + [place])


def index_put(x: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """x with `values` at, or added at, positions of unknown number."""
    if any(size == 0 for given in indices if given is not None for size in given.shape if isinstance(size, int)):
        return x.clone()  # nowhere; the importer divides by the number of positions
    first, count = _dims_to_merge(indices)
    if not count:
        return NotImplemented
    place = _merged_index(x, indices, first, count)
    merged = _merge(x, first, count)
    return aten.index_put.default(merged, [None] * first + [place], values, accumulate).reshape(x.shape)


def _dims_to_merge(indices: Indices) -> tuple[int, int]:
    """The first indexed dimension and how many follow, or a count of 0 where the importer has its own way."""
    dims = [dim for dim, given in enumerate(indices) if given is not None]
    given = [indices[dim] for dim in dims]
    if len(dims) < 2 or dims != list(range(dims[0], dims[0] + len(dims))):
        return 0, 0
    if any(one.dtype in (torch.bool, torch.uint8) or one.shape != given[0].shape for one in given):
        return 0, 0
    if all(isinstance(size, int) for size in given[0].shape):
        return 0, 0
    return dims[0], len(dims)


def _merge(x: Tensor, first: int, count: int) -> Tensor:
    sizes = x.shape[first : first + count]
    return x.reshape(*x.shape[:first], math.prod(sizes), *x.shape[first + count :])


def _merged_index(x: Tensor, indices: Indices, first: int, count: int) -> Tensor:
    """Positions in the merged dimension."""
    place = None
    for dim in range(first, first + count):
        size, one = x.shape[dim], indices[dim]
        one = torch.where(one < 0, one + size, one)
        place = one if place is None else place * size + one
    return place
