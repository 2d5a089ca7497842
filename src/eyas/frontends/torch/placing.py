"""Elements taken from and put to computed places, and memory that is only filled later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten = torch.ops.aten
Tensor = torch.Tensor


_SCATTERS = (aten.scatter.src, aten.scatter.value, aten.scatter_add.default, aten.scatter_reduce.two)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        aten._efficientzerotensor.default: zeros,
        aten.as_strided.default: as_strided,
        aten.as_strided_copy.default: as_strided,
        aten.as_strided_scatter.default: as_strided_scatter,
        aten.embedding_renorm.default: embedding_renorm,
        aten.empty_permuted.default: lambda size, order, **options: zeros(size, **options),
        aten.empty_strided.default: lambda size, stride, **options: zeros(size, **options),
        aten.masked_scatter.default: masked_scatter,
        aten.new_empty_strided.default: lambda x, size, stride, **options: zeros(size, **{"dtype": x.dtype, **options}),
        aten.nonzero_static.default: nonzero_static,
        **dict.fromkeys(_SCATTERS, place_nothing),
        aten.scatter.reduce: scatter_reduce,
        aten.scatter.value_reduce: lambda x, dim, index, value, *, reduce: scatter_reduce(
            x, dim, index, torch.full(index.shape, value, dtype=x.dtype, device=x.device), reduce=reduce
        ),
        aten.take.default: take,
        aten.unfold.default: unfold_number,
        aten.unfold_copy.default: unfold_number,
    }


def zeros(size: Sequence[int], *, dtype: torch.dtype | None = None, device: Any = None, **options: Any) -> Tensor:
    """What nothing was written to may hold anything."""
    return torch.zeros(size, dtype=dtype, device=device)


def unfold_number(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A number is taken for the only element of a dimension that is not there."""
    return NotImplemented if x.dim() else x.reshape(1)[:size]


def take(x: Tensor, index: Tensor) -> Tensor:
    """By places in the order of memory, from the end where negative."""
    flat, places = x.reshape(-1), index.reshape(-1)
    return flat[torch.where(places < 0, places + flat.shape[0], places)].reshape(index.shape)


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The first elements of the source, one for each place that is to be written."""
    x, mask = torch.broadcast_tensors(x, mask)
    order = mask.reshape(-1).to(torch.int64).cumsum(0) - 1
    flat = source.reshape(-1)
    if isinstance(flat.shape[0], int) and not flat.shape[0]:
        return x.clone()
    chosen = flat[order.clamp(0, flat.shape[0] - 1)]
    return torch.where(mask, chosen.reshape(x.shape), x)


def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The places of the first elements that are not 0, and filled rows where there are fewer."""
    flat = x.reshape(-1) != 0
    if not x.dim() or not size or not x.numel():
        return torch.full((size, x.dim()), fill_value, dtype=torch.int64, device=x.device)
    order = flat.to(torch.int64).cumsum(0) - 1
    # What has no row goes to one behind the last.
    row = torch.where(flat & (order < size), order, size)
    places = torch.arange(x.numel(), device=x.device)
    found = torch.full((size + 1,), -1, dtype=torch.int64, device=x.device).scatter(0, row, places)[:size]
    columns, stride = [], 1
    for length in reversed(x.shape):
        columns.append(torch.div(found, stride, rounding_mode="floor") % length)
        stride *= length
    return torch.where(found.unsqueeze(-1) < 0, fill_value, torch.stack(columns[::-1], -1))


def place_nothing(x: Tensor, dim: int, index: Tensor, *values: Any, **options: Any) -> Tensor:
    """No places, in whatever shape: what is written to stays as it is."""
    is_empty = any(isinstance(size, int) and size == 0 for size in index.shape)
    return x.clone() if is_empty else NotImplemented


def scatter_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, *, reduce: str) -> Tensor:
    """The older spelling of scatters that add or multiply."""
    if reduce == "add":
        return x.scatter_add(dim, index, source)
    return x.scatter_reduce(dim, index, source, "prod", include_self=True)


def embedding_renorm(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Rows that are looked up and longer than allowed are made shorter."""
    rows = weight.shape[0]
    used = torch.zeros(rows, dtype=torch.bool, device=weight.device)
    used = used.index_put([indices.reshape(-1)], torch.ones((), dtype=torch.bool, device=weight.device))
    length = torch.linalg.vector_norm(weight, norm_type, -1)
    scale = torch.where(used & (length > max_norm), max_norm / (length + 1e-7), 1.0)
    return weight * scale.unsqueeze(-1).to(weight.dtype)


def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """The elements at regular places of memory, of a tensor that is all of its memory in order."""
    places = _places(x, size, stride, storage_offset)
    if places is None:
        return NotImplemented
    # In one line: an index without dimensions is taken for a number, which nobody knows yet.
    return x.reshape(-1)[places.reshape(-1)].reshape(places.shape)


def as_strided_scatter(
    x: Tensor, source: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Writes the source to such places."""
    places = _places(x, size, stride, storage_offset)
    if places is None:
        return NotImplemented
    return x.reshape(-1).index_put([places.reshape(-1)], source.reshape(-1)).reshape(x.shape)


def _places(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Tensor | None:
    """Places in the order of memory. Where sizes vary, the call of the module fails if they are outside."""
    if not x.is_contiguous():
        return None
    first: Any = 0 if offset is None else offset - x.storage_offset()
    last: Any = first + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if isinstance(first, int) and first < 0:
        return None
    inside = last < x.numel()
    if isinstance(inside, bool) and not inside:
        return None
    if not statically_known_true(inside):
        room = torch.full((), x.numel(), dtype=torch.int64, device=x.device)
        torch.ops.eyas.check(room > last, "as_strided: a place is outside of the tensor's memory")
    places = torch.full((), first, dtype=torch.int64, device=x.device)
    for length, step in zip(size, stride, strict=True):
        places = places.unsqueeze(-1) + torch.arange(length, device=x.device) * step
    return places
