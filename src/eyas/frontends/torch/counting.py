"""Histograms, and reductions of stretches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten._histogramdd_bin_edges.default: edges_of_all,
        aten._histogramdd_from_bin_cts.default: histogram_of_counts,
        aten._histogramdd_from_bin_tensors.default: histogram_of_edges,
        aten.histogram.bin_ct: histogram_of_count,
        aten.histogram.bins_tensor: histogram,
        aten.segment_reduce.default: segment_reduce,
    }


def histogram_of_count(
    x: Tensor, bins: int = 100, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """Bins of equal width, from the smallest to the largest value unless a range is given."""
    return histogram(x, _edges(x.reshape(-1), bins, range), weight=weight, density=density)


def histogram(x: Tensor, bins: Tensor, *, weight: Any = None, density: bool = False) -> tuple[Tensor, Tensor]:
    """What falls between neighbouring edges; the last bin has its upper edge too."""
    weights = None if weight is None else weight.reshape(-1)
    return _count([x.reshape(-1)], [bins], weights, density), bins.clone()


def edges_of_all(
    x: Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> list[Tensor]:
    """Edges along each column of points."""
    points = x.reshape([-1, x.shape[-1]])
    given = [None if range is None else range[2 * i : 2 * i + 2] for i, _ in enumerate(bins)]
    return [_edges(points[:, i], count, given[i]) for i, count in enumerate(bins)]


def histogram_of_counts(
    x: Tensor, bins: Sequence[int], *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> Tensor:
    return histogram_of_edges(x, edges_of_all(x, bins, range=range), weight=weight, density=density)


def histogram_of_edges(x: Tensor, bins: Sequence[Tensor], *, weight: Any = None, density: bool = False) -> Tensor:
    points = x.reshape([-1, x.shape[-1]])
    columns = [points[:, i] for i, _ in enumerate(bins)]
    return _count(columns, list(bins), None if weight is None else weight.reshape(-1), density)


def _edges(x: Tensor, bins: int, given: Sequence[float] | None) -> Tensor:
    if given is None:
        if not x.numel():
            given = (0.0, 1.0)
            return _line(torch.full((), 0.0, dtype=x.dtype), torch.full((), 1.0, dtype=x.dtype), bins)
        low, high = x.amin(), x.amax()
        same = low == high
        return _line(torch.where(same, low - 0.5, low), torch.where(same, high + 0.5, high), bins)
    low, high = (torch.full((), float(end), dtype=x.dtype) for end in given)
    if given[0] == given[1]:
        low, high = low - 0.5, high + 0.5
    return _line(low, high, bins)


def _line(low: Tensor, high: Tensor, bins: int) -> Tensor:
    """From both ends to the middle, as torch's `linspace`."""
    places = torch.arange(bins + 1, device=low.device).to(low.dtype)
    step = (high - low) / bins
    return torch.where(places < (bins + 1) // 2, low + step * places, high - step * (bins - places))


def _count(columns: Sequence[Tensor], bins: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    sizes = [edges.shape[0] - 1 for edges in bins]
    total = 1
    for size in sizes:
        total *= size
    place = torch.zeros_like(columns[0], dtype=torch.int64)
    inside = torch.ones_like(columns[0], dtype=torch.bool)
    for x, edges, size in zip(columns, bins, sizes, strict=True):
        inside = inside & (x >= edges[0]) & (x <= edges[-1])
        # How many edges a value has reached, without the last: its bin.
        bin_ = (x.unsqueeze(-1) >= edges[1:-1]).sum(-1)
        place = place * size + bin_
    amount = torch.ones_like(columns[0]) if weight is None else weight.to(columns[0].dtype)
    counts = torch.zeros(total, dtype=columns[0].dtype, device=place.device)
    counts = counts.scatter_add(0, torch.where(inside, place, 0), torch.where(inside, amount, 0)).reshape(sizes)
    if not density:
        return counts
    counts = counts / counts.sum()
    for dim, edges in enumerate(bins):
        shape = [1] * len(sizes)
        shape[dim] = sizes[dim]
        counts = counts / (edges[1:] - edges[:-1]).reshape(shape)
    return counts


_INITIAL = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Stretches of given lengths along an axis, each reduced to one. `lengths` has a row for each place before it."""
    if indices is not None:
        return NotImplemented
    if offsets is not None:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    elif lengths is not None:
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    else:
        return NotImplemented
    count, size, trailing = starts.shape[-1], data.shape[axis], data.dim() - axis - 1
    places = torch.arange(size, device=data.device)
    member = (places >= starts.unsqueeze(-1)) & (places < ends.unsqueeze(-1))
    member = member.reshape([*data.shape[:axis], count, size] + [1] * trailing)
    spread = data.unsqueeze(axis)
    if reduce in ("sum", "mean"):
        made = torch.where(member, spread, 0).sum(axis + 1) + (initial or 0.0)
        if reduce == "mean":
            length = (ends - starts).reshape([*data.shape[:axis], count] + [1] * trailing)
            made = made / length if initial is None else torch.where(length == 0, made, made / length)
        return made.to(data.dtype)
    start = _INITIAL[reduce]
    chosen = torch.where(member, spread, start)
    if reduce == "prod":
        made = chosen.prod(axis + 1)
        return made if initial is None else made * initial
    made = chosen.amax(axis + 1) if reduce == "max" else chosen.amin(axis + 1)
    if initial is None:
        return made
    return made.clamp(min=initial) if reduce == "max" else made.clamp(max=initial)
