"""Operators that move elements: slices, pads, splits, blocks, gathers. They take any type, quantised integers too.

Indices that are numbers in the graph are numbers here; where they are computed, ONNX's operators take tensors of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.frontends.tensorflow.graph import Dim, Graph, Tensor, Value, dims_of


def known(g: Graph, tensor: Tensor, what: str) -> np.ndarray:
    """The numbers of an operand that must not be computed at run time."""
    if not isinstance(tensor, np.ndarray):
        raise UnsupportedOpError(
            f"{g.description}: {g.where} is not supported: its {what} is computed when the model runs"
        )
    return tensor


def axis_of(g: Graph, axis: int, rank: int) -> int:
    """An axis counted from the front."""
    if not -rank <= axis < max(rank, 1):
        raise FrontendError(f"{g.description}: {g.where} has axis {axis}, but its input has {rank} dimensions")
    return axis % rank if rank else 0


def reshape_to(g: Graph, x: Tensor, dims: Sequence[Dim]) -> Any:
    """A reshape to sizes of which one may be open."""
    return g.reshape(x, [dim if isinstance(dim, int) else -1 for dim in dims])


def squeeze(g: Graph, x: Any, axes: Sequence[int]) -> Any:
    rank = len(dims_of(x))
    gone = {axis_of(g, int(axis), rank) for axis in axes} or {i for i, dim in enumerate(dims_of(x)) if dim == 1}
    if isinstance(x, np.ndarray):
        return x.reshape([size for i, size in enumerate(x.shape) if i not in gone])
    return g.add("Squeeze", x, np.array(sorted(gone), np.int64)) if gone else x


def expand_dims(g: Graph, x: Any, axis: int) -> Any:
    axis = axis_of(g, axis, len(dims_of(x)) + 1)
    return np.expand_dims(x, axis) if isinstance(x, np.ndarray) else g.add("Unsqueeze", x, np.array([axis], np.int64))


def concatenate(g: Graph, parts: Sequence[Any], axis: int) -> Any:
    if len(parts) == 1:
        return parts[0]
    return g.add("Concat", *parts, axis=axis_of(g, axis, len(dims_of(parts[0]))))


def pack(g: Graph, parts: Sequence[Any], axis: int) -> Any:
    axis = axis_of(g, axis, len(dims_of(parts[0])) + 1)
    return concatenate(g, [expand_dims(g, part, axis) for part in parts], axis)


def unpack(g: Graph, x: Any, axis: int, count: int) -> list[Any]:
    axis = axis_of(g, axis, len(dims_of(x)))
    return [squeeze(g, part, [axis]) for part in split(g, x, axis, [1] * count)]


def split(g: Graph, x: Any, axis: int, sizes: Sequence[int]) -> list[Any]:
    """Parts of given sizes, of which one may be -1: the rest."""
    axis = axis_of(g, axis, len(dims_of(x)))
    sizes = [int(size) for size in sizes]
    if -1 in sizes:
        sizes[sizes.index(-1)] = g.size(x, axis) - sum(size for size in sizes if size >= 0)
    if len(sizes) == 1:
        return [x]
    return g.add_many("Split", len(sizes), x, np.array(sizes, np.int64), axis=axis)


def slice_(g: Graph, x: Any, begin: Tensor, size: Tensor) -> Any:
    """`size` elements from `begin`; -1 is all that follow."""
    rank = len(dims_of(x))
    axes = np.arange(rank)
    if isinstance(begin, np.ndarray) and isinstance(size, np.ndarray):
        ends = np.where(size < 0, np.iinfo(np.int64).max, begin.astype(np.int64) + size)
        return g.add("Slice", x, begin.astype(np.int64), ends, axes)
    starts, counts = g.cast(begin, np.int64), g.cast(size, np.int64)
    to_end = g.add("Less", counts, np.array(0, np.int64))
    ends = g.add("Where", to_end, np.array(np.iinfo(np.int64).max), g.add("Add", starts, counts))
    result = g.add("Slice", x, starts, ends, axes)
    if isinstance(size, np.ndarray) and isinstance(result, Value):
        # Sizes that are numbers are known whatever the place.
        dims = [int(n) if n >= 0 else dim for n, dim in zip(size, result.dims, strict=True)]
        return Value(result.name, result.dtype, tuple(dims))
    return result


@dataclass(frozen=True)
class Masks:
    """Bits of StridedSlice, one for each entry of `begin`."""

    begin: int = 0
    end: int = 0
    ellipsis: int = 0
    new_axis: int = 0
    shrink: int = 0


def strided_slice(g: Graph, x: Any, begin: Tensor, end: Tensor, strides: Tensor, masks: Masks) -> Any:
    """NumPy's x[a:b:c, ..., None, i]. Where an entry is computed, its stride must be a number."""
    rank = len(dims_of(x))
    steps = known(g, strides, "stride")
    count = len(steps)
    if isinstance(x, np.ndarray) and isinstance(begin, np.ndarray) and isinstance(end, np.ndarray):
        return np.asarray(x[_numpy_index(begin, end, steps, masks)])
    starts, ends, axes, taken, dims = [], [], [], [], list[Any]()
    axis = 0
    entries = sum(1 for i in range(count) if not (masks.new_axis | masks.ellipsis) >> i & 1)
    for i in range(count):
        bit = 1 << i
        if masks.ellipsis & bit:
            for _ in range(rank - entries):
                dims.append("keep")
                axis += 1
            continue
        if masks.new_axis & bit:
            dims.append("new")
            continue
        if axis >= rank:
            raise FrontendError(f"{g.description}: {g.where} takes more dimensions than its input has, which is {rank}")
        step = int(steps[i])
        first, last = _entry(g, begin, i), _entry(g, end, i)
        if masks.shrink & bit:
            step = 1
            last = _next(g, first)
            dims.append("gone")
        else:
            dims.append("keep")
            first = (None if step > 0 else np.iinfo(np.int64).max) if masks.begin & bit else first
            first = 0 if first is None else first
            last = (np.iinfo(np.int64).max if step > 0 else np.iinfo(np.int64).min) if masks.end & bit else last
        starts.append(first)
        ends.append(last)
        axes.append(axis)
        taken.append(step)
        axis += 1
    result = x
    if any(
        not (isinstance(a, int) and a == 0) or not isinstance(b, int) or b < np.iinfo(np.int64).max or c != 1
        for a, b, c in zip(starts, ends, taken, strict=True)
    ):
        steps64 = np.array(taken, np.int64)
        result = g.add("Slice", x, _vector(g, starts), _vector(g, ends), np.array(axes, np.int64), steps64)
    dims += ["keep"] * (rank - axis)
    gone = [i for i, what in enumerate(d for d in dims if d != "new") if what == "gone"]
    if isinstance(result, Value) and gone:
        result = Value(result.name, result.dtype, tuple(1 if i in gone else d for i, d in enumerate(result.dims)))
    if gone:
        result = squeeze(g, result, gone)
    made = [i for i, what in enumerate(d for d in dims if d != "gone") if what == "new"]
    return g.add("Unsqueeze", result, np.array(made, np.int64)) if made else result


def _numpy_index(begin: np.ndarray, end: np.ndarray, steps: np.ndarray, masks: Masks) -> tuple[Any, ...]:
    index: list[Any] = []
    for i, step in enumerate(steps):
        bit = 1 << i
        if masks.ellipsis & bit:
            index.append(Ellipsis)
        elif masks.new_axis & bit:
            index.append(None)
        elif masks.shrink & bit:
            index.append(int(begin[i]))
        else:
            first = None if masks.begin & bit else int(begin[i])
            index.append(slice(first, None if masks.end & bit else int(end[i]), int(step)))
    return tuple(index)


def _entry(g: Graph, vector: Tensor, index: int) -> Any:
    """One entry of a vector: a number, or a value of one element."""
    if isinstance(vector, np.ndarray):
        return int(vector[index])
    return g.add("Gather", g.cast(vector, np.int64), np.array([index], np.int64))


def _next(g: Graph, place: Any) -> Any:
    """What ends a slice of one element; after -1 comes the end."""
    if isinstance(place, int):
        return place + 1 if place != -1 else np.iinfo(np.int64).max
    after = g.add("Add", place, np.array([1], np.int64))
    last = g.add("Equal", place, np.array([-1], np.int64))
    return g.add("Where", last, np.array([np.iinfo(np.int64).max]), after)


def _vector(g: Graph, entries: Sequence[Any]) -> Any:
    if all(isinstance(entry, (int, np.integer)) for entry in entries):
        return np.array(entries, np.int64)
    return g.add(
        "Concat", *(np.array([e], np.int64) if isinstance(e, (int, np.integer)) else e for e in entries), axis=0
    )


def pad(g: Graph, x: Any, pairs: Tensor, value: Any = None, mode: str = "constant") -> Any:
    """`pairs` is (before, after) of each dimension; negative ones cut."""
    if isinstance(pairs, np.ndarray):
        if not pairs.any():
            return x
        amounts: Any = pairs.T.reshape(-1).astype(np.int64)
    else:
        amounts = g.reshape(g.transpose(g.cast(pairs, np.int64), [1, 0]), [-1])
    fill = None if mode != "constant" else np.zeros((), x.dtype) if value is None else value
    return g.add("Pad", x, amounts, fill if fill is None else g.reshape(fill, []), mode=mode)


def mirror_pad(g: Graph, x: Any, pairs: Tensor, symmetric: bool) -> Any:
    """REFLECT leaves the edge out, SYMMETRIC repeats it."""
    if not symmetric:
        return pad(g, x, pairs, mode="reflect")
    for axis, (before, after) in enumerate(known(g, pairs, "padding")):
        if before or after:
            places = np.pad(np.arange(g.size(x, axis)), (int(before), int(after)), mode="symmetric")
            x = g.add("Gather", x, places.astype(np.int64), axis=axis)
    return x


def reverse(g: Graph, x: Any, axes: Sequence[int]) -> Any:
    axes = [axis_of(g, int(axis), len(dims_of(x))) for axis in axes]
    if not axes:
        return x
    starts, ends = np.full(len(axes), -1, np.int64), np.full(len(axes), np.iinfo(np.int64).min, np.int64)
    return g.add("Slice", x, starts, ends, np.array(axes, np.int64), np.full(len(axes), -1, np.int64))


def depth_to_space(g: Graph, x: Any, block: int) -> Any:
    n, h, w, c = (x.dims[0], *(g.size(x, axis) for axis in (1, 2, 3)))
    split_ = reshape_to(g, x, [n, h, w, block, block, c // (block * block)])
    moved = g.transpose(split_, [0, 1, 3, 2, 4, 5])
    return reshape_to(g, moved, [n, h * block, w * block, c // (block * block)])


def space_to_depth(g: Graph, x: Any, block: int) -> Any:
    n, h, w, c = (x.dims[0], *(g.size(x, axis) for axis in (1, 2, 3)))
    split_ = reshape_to(g, x, [n, h // block, block, w // block, block, c])
    moved = g.transpose(split_, [0, 1, 3, 2, 4, 5])
    return reshape_to(g, moved, [n, h // block, w // block, c * block * block])


def space_to_batch(g: Graph, x: Any, block: np.ndarray, pairs: np.ndarray, fill: Any = None) -> Any:
    """Blocks of space become a batch; any number of spatial dimensions."""
    count, rank = len(block), len(dims_of(x))
    rest = [[0, 0]] * (rank - count - 1)
    x = pad(g, x, np.array([[0, 0], *pairs.tolist(), *rest]), fill)
    sizes = [g.size(x, axis) for axis in range(rank)]
    inner = [n for size, b in zip(sizes[1 : 1 + count], block, strict=True) for n in (size // int(b), int(b))]
    split_ = g.reshape(x, [sizes[0], *inner, *sizes[1 + count :]])
    places = [2 + 2 * i for i in range(count)], [1 + 2 * i for i in range(count)]
    moved = g.transpose(split_, [*places[0], 0, *places[1], *range(1 + 2 * count, rank + count)])
    batch = sizes[0] * int(np.prod(block))
    return g.reshape(
        moved, [batch, *(s // int(b) for s, b in zip(sizes[1:], block, strict=False)), *sizes[1 + count :]]
    )


def batch_to_space(g: Graph, x: Any, block: np.ndarray, crops: np.ndarray) -> Any:
    """The inverse of `space_to_batch`."""
    count, rank = len(block), len(dims_of(x))
    sizes = [g.size(x, axis) for axis in range(rank)]
    batch = sizes[0] // int(np.prod(block))
    split_ = g.reshape(x, [*map(int, block), batch, *sizes[1:]])
    order = [count, *(place for i in range(count) for place in (count + 1 + i, i)), *range(2 * count + 1, rank + count)]
    space = [size * int(b) for size, b in zip(sizes[1:], block, strict=False)]
    joined = g.reshape(g.transpose(split_, order), [batch, *space, *sizes[1 + count :]])
    if not crops.any():
        return joined
    ends = np.array([size - after for size, (_, after) in zip(space, crops, strict=True)], np.int64)
    return g.add("Slice", joined, crops[:, 0].astype(np.int64), ends, np.arange(1, count + 1))


def gather(g: Graph, x: Any, indices: Any, axis: int, batch_dims: int = 0) -> Any:
    """Elements along an axis, of each batch its own where `batch_dims` says so."""
    rank = len(dims_of(x))
    axis = axis_of(g, axis, rank)
    batch_dims = batch_dims + len(dims_of(indices)) if batch_dims < 0 else batch_dims
    if not batch_dims:
        return g.add("Gather", x, indices, axis=axis)
    # The axis comes right after the batch, is gathered there, and goes back to its place behind what stood before it.
    order = [*range(batch_dims), axis, *(i for i in range(batch_dims, rank) if i != axis)]
    places = expand_dims(g, g.cast(indices, np.int64), -1)
    found = g.add("GatherND", g.transpose(x, order), places, batch_dims=batch_dims)
    inner = len(dims_of(indices)) - batch_dims
    before = axis - batch_dims
    first = [*range(batch_dims), *range(batch_dims + inner, batch_dims + inner + before)]
    middle = range(batch_dims, batch_dims + inner)
    return g.transpose(found, [*first, *middle, *range(batch_dims + inner + before, len(dims_of(found)))])


def broadcast_to(g: Graph, x: Any, shape: Tensor) -> Any:
    return g.add("Expand", x, g.cast(shape, np.int64))


def scatter_nd(g: Graph, indices: Any, updates: Any, shape: np.ndarray) -> Any:
    """Zeros with updates added where indices say."""
    zeros = np.zeros([int(size) for size in shape], updates.dtype)
    return g.add("ScatterND", zeros, g.cast(indices, np.int64), updates, reduction="add")


def one_hot(g: Graph, indices: Any, depth: int, on: Any, off: Any, axis: int) -> Any:
    """`off` everywhere for an index outside, unlike ONNX's, which counts negative ones from the end."""
    rank = len(dims_of(indices)) + 1
    axis = axis_of(g, axis, rank)
    places = np.arange(depth, dtype=indices.dtype).reshape([-1 if i == axis else 1 for i in range(rank)])
    return g.add("Where", g.add("Equal", expand_dims(g, indices, axis), places), g.reshape(on, []), g.reshape(off, []))
