"""Parts of tensors whose sizes vary, and differences of neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import _suppress_guards
from torch.utils._sympy.numbers import int_oo

Tensor = torch.Tensor


def forms() -> dict[Any, Callable[..., Any]]:
    """By function."""
    return {
        torch.chunk: chunk,
        Tensor.chunk: chunk,
        torch.unsafe_chunk: chunk,
        Tensor.unsafe_chunk: chunk,
        torch.tensor_split: tensor_split,
        Tensor.tensor_split: tensor_split,
        torch.gradient: gradient,
        torch.take_along_dim: take_along_dim,
        Tensor.take_along_dim: take_along_dim,
    }


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of one length, the last of what is left. How many there are must not depend on the size."""
    size = input.shape[dim]
    if isinstance(size, int) or not _always_gives(chunks, _least(size)):
        return NotImplemented
    length = (size + (chunks - 1)) // chunks
    first = (chunks - 1) * length
    with _suppress_guards(size.node.shape_env):  # torch cannot see that something is left
        whole = [input.narrow(dim, place * length, length) for place in range(chunks - 1)]
        return (*whole, input.narrow(dim, first, size - first))


def _always_gives(chunks: int, least: int) -> bool:
    """Whether sizes from this one on are cut into as many parts as are asked for: of few elements there may be fewer
    parts, of more than chunks * (chunks - 1) never."""

    def count(size: int) -> int:
        length = -(-size // chunks)
        return -(-size // length)

    return least > 0 and all(count(size) == chunks for size in range(least, chunks * (chunks - 1) + 1))


def _least(size: torch.SymInt) -> int:
    """The smallest that a size may be, as far as is known."""
    lower = size.node.shape_env.bound_sympy(size.node.expr).lower
    return int(lower) if lower.is_Integer and lower != -int_oo else 0


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0, **named: Any) -> tuple[Tensor, ...]:
    """Parts that end at given places, or a number of parts of which the first are one longer."""
    where = named.get("indices", named.get("sections", indices_or_sections))
    size = input.shape[dim]
    if isinstance(where, Tensor) or isinstance(size, int):
        return NotImplemented
    if isinstance(where, int):
        length = size // where
        longer = size - length * where
        ends = [part * length + torch.sym_min(part, longer) for part in range(where + 1)]
        pairs = zip(ends[:-1], ends[1:], strict=True)
        with _suppress_guards(size.node.shape_env):  # nor that places rise
            return tuple(input.narrow(dim, start, stop - start) for start, stop in pairs)
    places = [None, *where, None]
    pairs = zip(places[:-1], places[1:], strict=True)
    return tuple(input[(slice(None),) * (dim % input.dim()) + (slice(*pair),)] for pair in pairs)


def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Sequence[Tensor] | type(
    NotImplemented
):
    """How fast values change along each dimension: differences of the neighbours on both sides, and of the nearest at
    the edges."""
    dims = range(input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [one % input.dim() for one in dims]
    steps = spacing if isinstance(spacing, (list, tuple)) else [1.0 if spacing is None else spacing] * len(dims)
    if len(steps) != len(dims) or edge_order not in (1, 2):
        return NotImplemented  # torch says what is wrong with it
    pairs = zip(dims, steps, strict=True)
    return tuple(_slope(input.movedim(at, -1), step, edge_order).movedim(-1, at) for at, step in pairs)


def _slope(x: Tensor, step: Any, edge_order: int) -> Tensor:
    """Along the last dimension. `step` is a distance, or the coordinates of all places."""
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.get_default_dtype())
    if isinstance(step, Tensor) and step.dim():
        apart = step.diff()
    else:
        apart = torch.ones([1], dtype=x.real.dtype, device=x.device) * step
        apart = apart.expand([x.shape[-1] - 1])
    before, after = apart[:-1], apart[1:]
    # By the distances to both sides: these are the differences of neighbours where they are equal.
    left, right = x[..., 1:-1] - x[..., :-2], x[..., 2:] - x[..., 1:-1]
    inner = (left / before * after + right / after * before) / (before + after)
    first, last = (x[..., 1] - x[..., 0]) / apart[0], (x[..., -1] - x[..., -2]) / apart[-1]
    if edge_order == 2:
        first = first + (first - (x[..., 2] - x[..., 1]) / apart[1]) * apart[0] / (apart[0] + apart[1])
        last = last + (last - (x[..., -2] - x[..., -3]) / apart[-2]) * apart[-1] / (apart[-1] + apart[-2])
    return torch.cat([first.unsqueeze(-1), inner, last.unsqueeze(-1)], -1)


def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Elements at given places along a dimension, or of all elements; other dimensions are broadcast."""
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    if input.dim() != indices.dim():
        return NotImplemented
    dim = dim % input.dim()
    shared = [list(one.shape[:dim]) + [1] + list(one.shape[dim + 1 :]) for one in (input, indices)]
    shape = list(torch.broadcast_shapes(*shared))
    both = (one.expand([*shape[:dim], one.shape[dim], *shape[dim + 1 :]]) for one in (input, indices))
    elements, places = both
    return elements.gather(dim, places)
