"""Pooling over windows of uneven size, and of integers, axis by axis.

A window is a box, so the largest element of it is the largest of the largest in its rows; the first place of it too,
since rows come in order. Each axis reads one element of every window at a time. Parts of images whose size varies have
no longest one to count to: each is a slice, of which the mean or the largest is taken.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op."""
    return {
        **{op: functools.partial(average, op, axes) for op, axes in _AVERAGES.items()},
        aten._adaptive_avg_pool2d.default: average_of_open_parts,
        aten.adaptive_avg_pool1d.default: average_of_open_parts,
        aten.adaptive_avg_pool2d.default: average_of_open_parts,
        aten._adaptive_avg_pool3d.default: average_of_parts,
        aten.adaptive_avg_pool3d.default: average_of_parts,
        aten.adaptive_max_pool2d.default: largest_of_parts,
        aten.adaptive_max_pool3d.default: largest_of_parts,
        aten.max_pool2d_with_indices.default: functools.partial(largest_of_windows, 2),
        aten.max_pool3d_with_indices.default: functools.partial(largest_of_windows, 3),
    }


_AVERAGES = {aten.avg_pool1d.default: 1, aten.avg_pool2d.default: 2, aten.avg_pool3d.default: 3}


def average(
    op: Callable[..., Tensor],
    axes: int,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    *rest: Any,
    **named: Any,
) -> Tensor:
    """The importer takes batches of images only, and a size for each axis: it miscounts where one stands for all, or
    none for those of the window."""
    if x.dim() == axes + 1:
        return op(x.unsqueeze(0), kernel_size, stride, padding, *rest, **named).squeeze(0)
    kernel = _spread(kernel_size, axes)
    sizes = [kernel, _spread(stride or kernel, axes), _spread(padding, axes)]
    # torch leaves out what is as by default, however it was given.
    given = [list(kernel_size), list(stride), list(padding) if any(padding) else sizes[2]]
    return NotImplemented if sizes == given else op(x, *sizes, *rest, **named)


def average_of_open_parts(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """Means of parts that cover an image whose size varies: the importer counts as many elements as the example has."""
    axes = len(output_size)
    if _are_known(x, axes):
        return NotImplemented
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    for axis, wanted in enumerate(output_size):
        dim = x.dim() - axes + axis
        if not isinstance(wanted, int):
            if not statically_known_true(wanted == x.shape[dim]):
                return NotImplemented
        else:
            wide = torch.cat([part.mean(dim, keepdim=True) for _, part in _slices(wide, dim, wanted)], dim)
    return wide.to(x.dtype)


def average_of_parts(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """Means of parts that cover the image."""
    axes = len(output_size)
    if not _are_known(x, axes):
        return average_of_open_parts(x, output_size)
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    for axis, wanted in enumerate(output_size):
        dim, size = x.dim() - axes + axis, x.shape[x.dim() - axes + axis]
        if wanted == size:
            continue
        start, end = _parts(size, wanted)
        shape = [-1] + [1] * (axes - 1 - axis)
        total: Any = 0.0
        for step in range(_longest(size, wanted)):
            place = start + step
            inside = (place < end).reshape(shape)
            total = total + torch.where(inside, wide.index_select(dim, torch.minimum(place, end - 1)), 0.0)
        wide = total / (end - start).reshape(shape).to(wide.dtype)
    return wide.to(x.dtype)


def largest_of_parts(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The largest elements of parts that cover the image, and where in it they are."""
    axes = len(output_size)
    if not all(isinstance(size, int) for size in output_size):
        return NotImplemented
    if not _are_known(x, axes):
        return _largest_of_open_parts(x, output_size)
    if not all((*x.shape[-axes:], *output_size)):
        return NotImplemented

    def places(axis: int) -> Iterator[Tensor]:
        size, wanted = x.shape[x.dim() - axes + axis], output_size[axis]
        start, end = _parts(size, wanted)
        for step in range(_longest(size, wanted)):
            yield torch.minimum(start + step, end - 1)

    return _largest(x, axes, places)


def _largest_of_open_parts(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    axes, sizes = len(output_size), x.shape[x.dim() - len(output_size) :]
    found: dict[int, Tensor] = {}
    for axis in reversed(range(axes)):
        dim, values, kept = x.dim() - axes + axis, [], []
        parts = zip(
            _slices(x, dim, output_size[axis]),
            *(_slices(position, dim, output_size[axis]) for position in found.values()),
            strict=True,
        )
        for (start, part), *others in parts:
            value, place = part.max(dim, keepdim=True)
            # The last NaN, not the first.
            steps = torch.arange(part.shape[dim]).reshape([-1] + [1] * (axes - 1 - axis))
            last = torch.where(torch.isnan(part), steps, -1).amax(dim, keepdim=True)
            place = torch.where(last < 0, place, last)
            values.append(value)
            kept.append([*(other.gather(dim, place) for _, other in others), place + start])
        x = torch.cat(values, dim)
        joined = [torch.cat(positions, dim) for positions in zip(*kept, strict=True)]
        found = dict(zip([*found, axis], joined, strict=True))
    return x, _flat(found, sizes)


def largest_of_windows(
    axes: int,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """The same of windows of one size. The importer has it for batches of floats."""
    kernel = _spread(kernel_size, axes)
    steps, pads, gaps = _spread(stride or kernel, axes), _spread(padding, axes), _spread(dilation, axes)
    if x.is_floating_point() and x.dim() == axes + 1:
        op = aten.max_pool2d_with_indices if axes == 2 else aten.max_pool3d_with_indices
        values, index = op(x.unsqueeze(0), kernel, steps, pads, gaps, ceil_mode)
        return values.squeeze(0), index.squeeze(0)
    if x.is_floating_point() or not _are_known(x, axes):
        return NotImplemented

    counts = []
    for size, length, step, pad, gap in zip(x.shape[x.dim() - axes :], kernel, steps, pads, gaps, strict=True):
        count = (size + 2 * pad - gap * (length - 1) - 1 + (step - 1 if ceil_mode else 0)) // step + 1
        if ceil_mode and (count - 1) * step >= size + pad:
            count -= 1
        counts.append(count)

    def places(axis: int) -> Iterator[Tensor]:
        size, gap, begin = (
            x.shape[x.dim() - axes + axis],
            gaps[axis],
            torch.arange(counts[axis]) * steps[axis] - pads[axis],
        )
        # What lies outside is the window's first element inside once more.
        first = torch.where(begin < 0, torch.remainder(begin, gap), begin).clamp(max=size - 1)
        for tap in range(kernel[axis]):
            place = begin + tap * gap
            yield torch.where((place < 0) | (place >= size), first, place)

    values, index = _largest(x, axes, places)
    for axis, size in enumerate(x.shape[x.dim() - axes :]):
        # Taps that are far apart may all be outside.
        if pads[axis] and gaps[axis] > size:
            begin = torch.arange(counts[axis]) * steps[axis] - pads[axis]
            taps = [begin + tap * gaps[axis] for tap in range(kernel[axis])]
            inside = functools.reduce(torch.logical_or, [(place >= 0) & (place < size) for place in taps])
            values = torch.where(inside.reshape([-1] + [1] * (axes - 1 - axis)), values, torch.iinfo(x.dtype).min)
    return values, index


def _largest(x: Tensor, axes: int, places: Callable[[int], Iterator[Tensor]]) -> tuple[Tensor, Tensor]:
    sizes = x.shape[x.dim() - axes :]
    found: dict[int, Tensor] = {}
    for axis in reversed(range(axes)):
        dim = x.dim() - axes + axis
        best, kept = None, {}
        for place in places(axis):
            value = x.index_select(dim, place)
            here = place.reshape([-1] + [1] * (axes - 1 - axis)).expand(value.shape)
            at = {other: position.index_select(dim, place) for other, position in found.items()} | {axis: here}
            if best is None:
                best, kept = value, at
                continue
            wins = value > best
            if x.is_floating_point():
                wins = wins | torch.isnan(value)
            best = torch.where(wins, value, best)
            kept = {other: torch.where(wins, position, kept[other]) for other, position in at.items()}
        assert best is not None, "a window has elements"
        x, found = best, kept
    return x, _flat(found, sizes)


def _flat(found: dict[int, Tensor], sizes: Sequence[int]) -> Tensor:
    """Places in the image, by its rows, of places along each axis."""
    index = found[0]
    for axis, size in list(enumerate(sizes))[1:]:
        index = index * size + found[axis]
    return index


def _slices(x: Tensor, dim: int, count: int) -> Iterator[tuple[Any, Tensor]]:
    """Where each part begins, and the part."""
    size = x.shape[dim]
    for part in range(count):
        start, end = part * size // count, ((part + 1) * size + count - 1) // count
        yield start, x.narrow(dim, start, end - start)


def _parts(size: int, count: int) -> tuple[Tensor, Tensor]:
    """Where each part begins and ends."""
    number = torch.arange(count)
    return (
        torch.div(number * size, count, rounding_mode="trunc"),
        torch.div((number + 1) * size + (count - 1), count, rounding_mode="trunc"),
    )


def _longest(size: int, count: int) -> int:
    return max(-(-(part + 1) * size // count) - part * size // count for part in range(count))


def _are_known(x: Tensor, axes: int) -> bool:
    return all(isinstance(size, int) for size in x.shape[x.dim() - axes :])


def _spread(values: Sequence[int], axes: int) -> list[int]:
    return list(values) * axes if len(values) == 1 else list(values)
