"""Reading and writing at positions whose number depends on data, as `nonzero` gives them.

The importer pairs several index tensors up only where it can see that their lengths are equal, which it cannot for
lengths that are known at run time. One index into the merged dimensions says the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from eyas.frontends.torch import selection as torch_selection

aten = torch.ops.aten
Tensor = torch.Tensor
Indices = Sequence[Tensor | None]
_MASKS = (torch.bool, torch.uint8)
_SHORT = (torch.int8, torch.int16, torch.int32)


def index(x: Tensor, indices: Indices) -> Tensor:
    """x[..., i, j, ...] for lists of positions of unknown length; masks become such lists."""
    masked = torch_selection.index_by_mask(x, indices)
    if masked is not NotImplemented:
        return masked
    indices = _aligned(indices)
    first, count = _dims_to_merge(indices)
    if not count:
        return NotImplemented
    place = _merged_index(x, indices, first, count)
    return aten.index.Tensor(_merge(x, first, count), [None] * first + [place])


def index_put(x: Tensor, indices: Indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """x with `values` at, or added at, positions of unknown number; a value for all of a mask is a choice. The importer
    makes further positions of i64, and takes no others beside them."""
    if any(one is not None and one.dtype in _SHORT for one in indices):
        wide = [None if one is None else one.to(torch.int64) if one.dtype in _SHORT else one for one in indices]
        return aten.index_put.default(x, wide, values, accumulate)
    if any(one is not None and one.dtype in _MASKS for one in indices):
        return _put_by_mask(x, indices, values.to(x.dtype), accumulate)
    indices = _aligned(indices)
    first, count = _dims_to_merge(indices)
    if count:
        place = _merged_index(x, indices, first, count)
        values = _spread(values, place, x.shape[count:]) if first == 0 else values
        merged = _merge(x, first, count)
        return aten.index_put.default(merged, [None] * first + [place], values, accumulate).reshape(x.shape)
    only = indices[0] if len(indices) == 1 else None
    if only is not None and not isinstance(only.shape[0], int):
        spread = _spread(values, only, x.shape[1:])
        if spread is not values:
            return aten.index_put.default(x, indices, spread, accumulate)
    return NotImplemented


def _put_by_mask(x: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Tensor:
    given = [(dim, one) for dim, one in enumerate(indices) if one is not None]
    mask = given[0][1].to(torch.bool)
    rest = x.dim() - given[0][0] - mask.dim()
    if len(given) == 1 and values.dim() <= rest:
        mask = mask.reshape(*mask.shape, *[1] * rest)
        return torch.where(mask, x + values if accumulate else values, x)
    places: list[Tensor | None] = []
    for one in indices:
        places += [one] if one is None or one.dtype not in _MASKS else list(torch.nonzero(one).unbind(1))
    return aten.index_put.default(x, places, values, accumulate)


def _spread(values: Tensor, place: Tensor, sizes: Sequence[int]) -> Tensor:
    """One slice of these sizes for each position: the importer makes at least one of a value that is given once, and a
    place for it is then read where there is none."""
    if values.dim() == place.dim() + len(sizes) and not (isinstance(values.shape[0], int) and values.shape[0] == 1):
        return values
    everywhere = torch.ones_like(place, dtype=torch.bool).reshape(*place.shape, *[1] * len(sizes))
    return torch.where(everywhere, values, values.new_zeros(sizes))


def _aligned(indices: Indices) -> Indices:
    """Positions of one shape, where a size of one of them varies."""
    given = [one for one in indices if one is not None]
    if len(given) < 2 or all(isinstance(size, int) for one in given for size in one.shape):
        return indices
    if len({one.dim() for one in given}) == 1 and all(one.shape == given[0].shape for one in given):
        return indices
    spread = iter(torch.broadcast_tensors(*given))
    return [None if one is None else next(spread) for one in indices]


def _dims_to_merge(indices: Indices) -> tuple[int, int]:
    """The first indexed dimension and how many follow, or a count of 0 where the importer has its own way."""
    dims = [dim for dim, given in enumerate(indices) if given is not None]
    given = [one for one in indices if one is not None]
    if len(dims) < 2 or dims != list(range(dims[0], dims[0] + len(dims))):
        return 0, 0
    if any(one.dtype in _MASKS or one.shape != given[0].shape for one in given):
        return 0, 0
    if all(isinstance(size, int) for size in given[0].shape):
        return 0, 0
    return dims[0], len(dims)


def _merge(x: Tensor, first: int, count: int) -> Tensor:
    sizes = x.shape[first : first + count]
    return x.reshape(*x.shape[:first], math.prod(sizes), *x.shape[first + count :])


def _merged_index(x: Tensor, indices: Indices, first: int, count: int) -> Tensor:
    """Positions in the merged dimension."""
    place: Tensor | None = None
    for dim in range(first, first + count):
        size, one = x.shape[dim], indices[dim]
        assert one is not None, "the dimensions to merge are indexed"
        one = torch.where(one < 0, one + size, one)
        place = one if place is None else place * size + one
    assert place is not None
    return place
