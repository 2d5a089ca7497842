"""How torch's ops that choose elements are taken apart: masks, unique values, order statistics, partial writes.

What has a size that depends on data becomes `nonzero`, the one such op that the importer lowers, and gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """These, by op."""
    return {
        aten._cdist_forward.default: distances,
        aten._pdist_forward.default: pairwise_distances,
        aten._unique.default: lambda x, *choices, **named: unique(x, *choices, **named)[:2],
        aten._unique2.default: unique,
        aten.cummax.default: lambda x, dim: running_extreme(x, dim, torch.ge),
        aten.cummin.default: lambda x, dim: running_extreme(x, dim, torch.le),
        aten.diagonal_scatter.default: diagonal_scatter,
        aten.index_reduce.default: index_reduce,
        aten.kthvalue.default: kth_value,
        aten.masked_select.default: masked_select,
        aten.median.default: lambda x: median(x.reshape(-1), 0)[0],
        aten.median.dim: median,
        aten.mode.default: mode,
        aten.nanmedian.default: lambda x: median(x.reshape(-1), 0, ignore_nan=True)[0],
        aten.nanmedian.dim: lambda x, dim, keepdim=False: median(x, dim, keepdim, ignore_nan=True),
        aten.put.default: put,
        # The importer's sort keeps the order of equal elements.
        aten.sort.stable: lambda x, *, stable, dim=-1, descending=False: torch.sort(x, dim, descending),
        aten.unique_consecutive.default: unique_consecutive,
        aten.unique_dim.default: unique_slices,
    }


def kth_value(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The last of the k smallest; NaN counts as the largest, which the importer's lowering does not know."""
    values, places = torch.topk(x, k, dim, largest=False)
    last = [one.narrow(dim, k - 1, 1) for one in (values, places)]
    return (last[0], last[1]) if keepdim else (last[0].squeeze(dim), last[1].squeeze(dim))


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask, broadcast, is true."""
    x, mask = torch.broadcast_tensors(x, mask)
    places = mask.reshape(-1)
    if isinstance(mask.numel(), int) and mask.numel() < 3:
        # torch promises less of how many are selected than of how many are found among so few.
        places = torch.cat([places, places.new_zeros(3)])
    return x.reshape(-1)[torch.nonzero(places).squeeze(1)]


def index_by_mask(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Masks among the indices become the positions of their true elements."""
    masks = (torch.bool, torch.uint8)
    if not any(index is not None and index.dtype in masks for index in indices):
        return NotImplemented
    plain: list[Tensor | None] = []
    for index in indices:
        if index is None or index.dtype not in masks:
            plain.append(index)
        else:
            positions = torch.nonzero(index)
            plain += [positions[:, dim] for dim in range(index.dim())]
    return aten.index.Tensor(x, plain)


def unique(
    x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Values in rising order, where each element went, and how often each occurs."""
    flat = x.reshape(-1)
    ordered, origin = torch.sort(flat, stable=True)
    values, ranks, counts = unique_consecutive(ordered, True, return_counts)
    inverse = torch.zeros_like(ranks).scatter(0, origin, ranks).reshape(x.shape)
    return values, inverse if return_inverse else ranks.new_empty(0), counts


def unique_consecutive(
    x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for runs of equal elements, or of equal slices along a dimension."""
    if dim is None:
        return _runs(x.reshape(-1), x.shape, return_inverse, return_counts, 0)
    return _runs(x, (x.shape[dim],), return_inverse, return_counts, dim)


def unique_slices(
    x: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Unique slices in lexicographic order: sorted by each column, the last first, stably."""
    rows = x.movedim(dim, 0).reshape(x.shape[dim], -1)
    order = torch.arange(x.shape[dim], device=x.device)
    if isinstance(rows.shape[1], int):
        for column in range(rows.shape[1] - 1, -1, -1):
            order = order[torch.sort(rows[order, column], stable=True)[1]]
    else:
        order = torch.zeros_like(order).scatter(0, _ranks(rows), order)
    values, ranks, counts = _runs(x.index_select(dim, order), (x.shape[dim],), True, return_counts, dim)
    inverse = torch.zeros_like(ranks).scatter(0, order, ranks)
    return values, inverse if return_inverse else ranks.new_empty(0), counts


def _ranks(rows: Tensor) -> Tensor:
    """How many rows come before each in lexicographic order, by comparing all pairs: there may be any number of
    columns. Of equal rows the first comes first."""
    one, other = rows.unsqueeze(1), rows.unsqueeze(0)
    differs = one != other
    decides = differs & (differs.to(torch.int64).cumsum(-1) == 1)
    follows = (decides & (one > other)).any(-1)
    place = torch.arange(rows.shape[0], device=rows.device)
    is_later = torch.logical_not(differs.any(-1)) & (place.unsqueeze(1) > place)
    return (follows | is_later).to(torch.int64).sum(1)


def _runs(
    x: Tensor, shape: Sequence[int], return_inverse: bool, return_counts: bool, dim: int
) -> tuple[Tensor, Tensor, Tensor]:
    rows = x.movedim(dim, 0)
    if rows.dim() == 1 and isinstance(rows.shape[0], int) and not rows.shape[0]:
        none = x.new_empty(0, dtype=torch.int64)
        return x.clone(), none.reshape(shape) if return_inverse else none, none
    rows = rows.reshape(rows.shape[0], -1)
    differs = (rows[1:] != rows[:-1]).any(1)
    begins = torch.cat([torch.ones_like(rows[:1, 0], dtype=torch.bool), differs])
    starts = torch.nonzero(begins).squeeze(1)
    nothing = starts.new_empty(0)
    inverse = (begins.to(torch.int64).cumsum(0) - 1).reshape(shape) if return_inverse else nothing
    counts = nothing
    if return_counts:
        ends = torch.cat([starts[1:], starts.new_full((1,), rows.shape[0])])
        counts = ends - starts
    return x.index_select(dim, starts), inverse, counts


def median(x: Tensor, dim: int, keepdim: bool = False, ignore_nan: bool = False) -> tuple[Tensor, Tensor]:
    """The lower of the middle elements in sorted order; NaN when there is one, unless those are ignored."""
    ordered, origin = torch.sort(x, dim=dim, stable=True)
    count: Any = x.shape[dim]
    if not isinstance(count, int):
        count = torch.ones_like(x, dtype=torch.int64).sum(dim, keepdim=True)
    if x.is_floating_point():
        missing = x.isnan().sum(dim, keepdim=True)
        rank = torch.where(missing == count, 0, (count - missing - 1) // 2)
        if not ignore_nan:
            rank = torch.where(missing > 0, count - missing, (count - 1) // 2)
    else:
        rank = torch.zeros_like(ordered.narrow(dim, 0, 1), dtype=torch.int64) + (count - 1) // 2
    values, indices = ordered.gather(dim, rank), origin.gather(dim, rank)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The most frequent element, the least of several, and the last place where it is."""
    ordered, origin = torch.sort(x, dim=dim, stable=True)
    ordered, origin = ordered.movedim(dim, -1), origin.movedim(dim, -1)
    counts = (ordered.unsqueeze(-1) == ordered.unsqueeze(-2)).sum(-1)
    first = counts.argmax(-1, keepdim=True)
    last = first + counts.gather(-1, first) - 1
    values, indices = ordered.gather(-1, first).movedim(-1, dim), origin.gather(-1, last).movedim(-1, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def running_extreme(x: Tensor, dim: int, wins: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """The extreme of all elements so far and its last place; steps of doubling distance see all of them."""
    if x.dim() == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    length = x.shape[dim]
    values = x.movedim(dim, -1)
    if not isinstance(length, int):
        made = _extreme_of_all_before(values, torch.amax if wins is torch.ge else torch.amin)
        return tuple(one.movedim(-1, dim) for one in made)  # type: ignore[return-value]
    indices = torch.arange(length, device=x.device).expand(values.shape)
    step = 1
    while step < length:
        before, here = values[..., :-step], values[..., step:]
        stays = wins(here, before)
        if x.is_floating_point():
            stays = here.isnan() | (stays & torch.logical_not(before.isnan()))
        later = torch.where(stays, here, before)
        later_indices = torch.where(stays, indices[..., step:], indices[..., :-step])
        values = torch.cat([values[..., :step], later], -1)
        indices = torch.cat([indices[..., :step], later_indices], -1)
        step *= 2
    return values.movedim(-1, dim), indices.movedim(-1, dim)


def _extreme_of_all_before(x: Tensor, extreme: Callable[..., Tensor]) -> tuple[Tensor, Tensor]:
    """The same along a last dimension of unknown length: each element looks at all that are not behind it."""
    place = torch.arange(x.shape[-1], device=x.device)
    before = place <= place.unsqueeze(-1)
    candidates = x.unsqueeze(-2)
    values = extreme(torch.where(before, candidates, x[..., :1].unsqueeze(-1)), -1)
    found = candidates == values.unsqueeze(-1)
    if x.is_floating_point():
        found = found | (candidates.isnan() & values.isnan().unsqueeze(-1))
    return values, torch.where(before & found, place, -1).amax(-1)


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Writes elements by their position in the flattened tensor."""
    flat, places = x.reshape(-1), index.reshape(-1)
    places = torch.where(places < 0, places + flat.shape[0], places)
    return flat.index_put((places,), source.reshape(-1), accumulate).reshape(x.shape)


def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """A scatter-reduction whose places are the same across all other dimensions."""
    shape = [1] * source.dim()
    shape[dim] = -1
    places = index.to(torch.int64).reshape(shape).expand(source.shape)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Writes a diagonal, which is where the two positions differ by the offset."""
    moved = x.movedim((dim1, dim2), (0, 1))
    length = source.shape[-1]
    along = torch.arange(length, device=x.device)
    rows, columns = along + max(-offset, 0), along + max(offset, 0)
    return moved.index_put((rows, columns), source.movedim(-1, 0)).movedim((0, 1), (dim1, dim2))


def distances(x: Tensor, y: Tensor, p: float, compute_mode: int | None = None) -> Tensor:
    """Norms of the differences of all pairs of rows."""
    return _norm(x.unsqueeze(-2) - y.unsqueeze(-3), p)


def pairwise_distances(x: Tensor, p: float = 2.0) -> Tensor:
    """Norms of the differences of the pairs of rows above the diagonal."""
    rows, columns = _pairs(x)
    return _norm(x[rows] - x[columns], p)


def _pairs(x: Tensor) -> Any:
    """The places of two rows of x, the first before the second. Before row r are r (2 n - r - 1) / 2 pairs."""
    count = x.shape[0]
    if isinstance(count, int):
        return torch.triu_indices(count, count, 1, device=x.device)
    size = torch.full((), count, dtype=torch.int64, device=x.device)
    pair = torch.arange(count * (count - 1) // 2, device=x.device)

    def before(row: Tensor) -> Tensor:
        return row * (2 * size - row - 1) // 2

    # The root of a quadratic equation, and the row beside it where it was rounded.
    odd = (2 * size - 1).to(torch.float64)
    row = ((odd - (odd * odd - 8.0 * pair.to(torch.float64)).sqrt()) / 2).to(torch.int64)
    row = torch.where(before(row) > pair, row - 1, row)
    row = torch.where(before(row + 1) <= pair, row + 1, row)
    return row, pair - before(row) + row + 1


def _norm(x: Tensor, p: float) -> Tensor:
    magnitude = x.abs()
    if p == 0:
        return (magnitude != 0).to(x.dtype).sum(-1)
    if p == 1:
        return magnitude.sum(-1)
    if p == 2:
        return (x * x).sum(-1).sqrt()
    if p == float("inf"):
        return magnitude.amax(-1)
    return magnitude.pow(p).sum(-1).pow(1.0 / p)
