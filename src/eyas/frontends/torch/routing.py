"""How torch's ops that sort, count and route rows are taken apart: mixture-of-experts, histograms, bags, searches.

The importer has no lowering for these, or one that ignores an argument. Sizes that depend on data are read with
`.item()`, which the exported program keeps as a symbol.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._meta_registrations import meta_embedding_bag

aten = torch.ops.aten
Tensor = torch.Tensor

# Up to this many sorted values, comparing with all of them is cheaper than steps of a binary search.
_LARGEST_COUNTED = 64


def decompositions() -> dict[Any, Callable[..., Any]]:
    """These, by op."""
    return {
        aten._grouped_mm.default: grouped_mm,
        aten._embedding_bag.default: embedding_bag,
        aten._embedding_bag_forward_only.default: embedding_bag,
        aten.bincount.default: bincount,
        aten.bucketize.Tensor: bucketize,
        aten.histc.default: histogram,
        aten.repeat_interleave.Tensor: repeat_interleave,
        aten.searchsorted.Scalar: search_sorted,
        aten.searchsorted.Tensor: search_sorted,
    }


def library_decompositions() -> dict[Any, Callable[..., Any]]:
    """Of ops that libraries have registered up to now."""
    if not hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        return {}
    # What `transformers` uses where torch has no kernel for grouped products.
    return {torch.ops.transformers.grouped_mm_fallback.default: grouped_mm}


def grouped_mm(
    x: Tensor,
    y: Tensor,
    offsets: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Products of groups of rows, columns or summands, each with its own matrix; `offsets` are the groups' ends."""
    dtype = out_dtype or x.dtype
    if bias is not None:
        return NotImplemented
    if offsets is None:
        return torch.bmm(x, y).to(dtype)
    if x.dim() == 2 and y.dim() == 3:
        group, inside = _groups(offsets, x.shape[0])
        product = torch.bmm(x.unsqueeze(1), y[group]).squeeze(1)
        return torch.where(inside.unsqueeze(1), product, 0.0).to(dtype)
    if x.dim() == 3 and y.dim() == 2:
        group, inside = _groups(offsets, y.shape[1])
        product = torch.bmm(x[group], y.t().unsqueeze(2)).squeeze(2)
        return torch.where(inside.unsqueeze(1), product, 0.0).t().to(dtype)
    # Both are matrices: the groups cut the dimension that is summed.
    group, inside = _groups(offsets, y.shape[0])
    member = (group == torch.arange(offsets.shape[0], device=x.device).unsqueeze(1)) & inside
    return torch.matmul(torch.where(member.unsqueeze(1), x, 0.0), y).to(dtype)


def _groups(offsets: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For each position the group that it is in, and whether it is in any: those after the last end are not."""
    positions = torch.arange(count, device=offsets.device, dtype=offsets.dtype)
    group = search_sorted(offsets, positions, right=True)
    last = offsets.shape[0] - 1
    return group.clamp(max=last), group <= last


def search_sorted(
    boundaries: Tensor,
    x: Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """How many of the sorted boundaries come before each value; NaN comes after all."""
    if sorter is not None:
        boundaries = boundaries.gather(-1, sorter)
    right = right or side == "right"
    if not isinstance(x, Tensor):
        x = torch.full((), x, dtype=torch.result_type(boundaries, x), device=boundaries.device)
    common = torch.result_type(boundaries, x)
    boundaries, values = boundaries.to(common), x.to(common)
    count = boundaries.shape[-1]
    if not isinstance(count, int) or count <= _LARGEST_COUNTED:
        result = _is_before(boundaries.unsqueeze(-2), values.reshape(*_rows(values), -1, 1), right).sum(-1)
        result = result.reshape(values.shape)
    else:
        result = _search_by_halves(boundaries, values, right)
    return result.to(torch.int32 if out_int32 else torch.int64)


def _rows(values: Tensor) -> list[int]:
    return list(values.shape[:-1])


def _is_before(boundary: Tensor, value: Tensor, right: bool) -> Tensor:
    return torch.logical_not(boundary > value if right else boundary >= value)


def _search_by_halves(boundaries: Tensor, values: Tensor, right: bool) -> Tensor:
    """Binary search with as many steps as the number of boundaries needs, for all values at once."""
    count = boundaries.shape[-1]
    position = torch.zeros(values.shape, dtype=torch.int64, device=values.device)
    step = 1 << (count.bit_length() - 1)
    while step:
        candidate = position + step
        probe = (candidate - 1).clamp(max=count - 1)
        found = boundaries[probe] if boundaries.dim() == 1 else boundaries.gather(-1, probe)
        taken = (candidate <= count) & _is_before(found, values, right)
        position = torch.where(taken, candidate, position)
        step //= 2
    return position


def bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """A search with the operands the other way round."""
    return search_sorted(boundaries, x, out_int32=out_int32, right=right)


def histogram(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts of values in bins of equal width; equal limits mean the data's own."""
    flat = x.reshape(-1)
    low: Any = min
    high: Any = max
    if min == max:
        low, high = (flat.amin(), flat.amax()) if flat.numel() else (flat.new_full((), min),) * 2
        low, high = torch.where(low == high, low - 1, low), torch.where(low == high, high + 1, high)
    position = ((flat - low) * bins / (high - low)).to(torch.int64).clamp(max=bins - 1)
    counted = (flat >= low) & (flat <= high)
    # What is not counted goes to a bin that is cut off.
    position = torch.where(counted, position, bins)
    ones = torch.ones_like(flat)
    return torch.zeros(bins + 1, dtype=x.dtype, device=x.device).scatter_add(0, position, ones)[:bins]


def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often, or with what weight, each number occurs; as long as the largest number needs."""
    if x.numel() == 0:
        return torch.zeros(minlength, dtype=torch.int64)  # torch has no weights of nothing
    length: Any = (x.amax().to(torch.int64) + 1).clamp(min=minlength).item()
    torch._check(length >= minlength)
    values = torch.ones_like(x, dtype=torch.int64) if weights is None else weights
    if weights is not None and weights.dtype != torch.float32:
        values = values.to(torch.float64)
    return torch.zeros(length, dtype=values.dtype, device=x.device).scatter_add(0, x.to(torch.int64), values)


def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """Each position as often as it is to be repeated."""
    ends = repeats.cumsum(0)
    total: Any = output_size
    if total is None:
        total = ends[-1].item()
        torch._check(total >= 0)
    return search_sorted(ends, torch.arange(total, device=repeats.device), right=True).to(repeats.dtype)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums (mode 0), means (1) or largest elements (2) of the rows in each bag; an empty bag gives zeros."""
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    bag = bags_of(indices, offsets[:bags])
    largest_at: Tensor | None = None
    rows = weight[indices]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    kept = indices != padding_idx if padding_idx >= 0 else torch.ones_like(indices, dtype=torch.bool)
    sizes = torch.zeros(bags, dtype=torch.int64, device=indices.device).index_add(0, bag, kept.to(torch.int64))
    empty = rows.new_zeros((bags, weight.shape[1]))
    if mode == 2:
        lowest = empty - float("inf")
        rows = torch.where(kept.unsqueeze(1), rows, float("-inf"))
        largest = lowest.index_reduce(0, bag, rows, "amax")
        result = torch.where(sizes.unsqueeze(1) == 0, 0.0, largest)
        # The row that each is of, the first of equals; -1 for an empty bag.
        count = indices.shape[0]
        position = torch.arange(count, device=indices.device).unsqueeze(1)
        position = torch.where(kept.unsqueeze(1) & (rows == largest[bag]), position, count)
        first = position.new_full(result.shape, count).index_reduce(0, bag, position, "amin")
        known = torch.cat([indices, indices.new_full((1,), -1)])
        largest_at = known[first]
    else:
        result = empty.index_add(0, bag, torch.where(kept.unsqueeze(1), rows, 0.0))
        if mode == 1:
            result = result / sizes.clamp(min=1).unsqueeze(1)
    noted = (scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)
    promised = meta_embedding_bag(weight, indices, offsets, *noted)[1]
    sizes = sizes.to(indices.dtype)
    return (
        result.to(weight.dtype),
        bag.to(indices.dtype)[: promised.shape[0]],
        sizes,
        sizes if largest_at is None else largest_at,
    )


def bags_of(indices: Tensor, starts: Tensor) -> Tensor:
    """The bag that each index is in."""
    positions = torch.arange(indices.shape[0], device=indices.device, dtype=starts.dtype)
    return search_sorted(starts, positions, right=True) - 1
