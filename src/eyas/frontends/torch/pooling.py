"""Pooling over windows of uneven size, and of integers, axis by axis.

A window is a box, so the largest element of it is the largest of the largest in its rows; the first place of it too,
since rows come in order. Each axis reads one element of every window at a time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

aten = torch.ops.aten
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    """By op; for images of known size only."""
    return {
        **{op: functools.partial(average, op, axes) for op, axes in _AVERAGES.items()},
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


def average_of_parts(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """Means of parts that cover the image."""
    axes = len(output_size)
    if not _are_known(x, axes):
        return NotImplemented
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
    if not _are_known(x, axes) or not all(isinstance(size, int) and size for size in (*x.shape[-axes:], *output_size)):
        return NotImplemented

    def places(axis: int) -> Iterator[Tensor]:
        size, wanted = x.shape[x.dim() - axes + axis], output_size[axis]
        start, end = _parts(size, wanted)
        for step in range(_longest(size, wanted)):
            yield torch.minimum(start + step, end - 1)

    return _largest(x, axes, places)


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
    if (x.is_floating_point() and x.dim() > axes + 1) or not _are_known(x, axes):
        return NotImplemented
    kernel = _spread(kernel_size, axes)
    steps, pads, gaps = _spread(stride or kernel, axes), _spread(padding, axes), _spread(dilation, axes)

    def places(axis: int) -> Iterator[Tensor]:
        size = x.shape[x.dim() - axes + axis]
        reach, step, pad, gap = gaps[axis] * (kernel[axis] - 1) + 1, steps[axis], pads[axis], gaps[axis]
        count = (size + 2 * pad - reach + (step - 1 if ceil_mode else 0)) // step + 1
        if ceil_mode and (count - 1) * step >= size + pad:
            count -= 1
        begin = torch.arange(count) * step - pad
        # What lies outside is the window's first element inside once more.
        first = torch.where(begin < 0, torch.remainder(begin, gap), begin)
        for tap in range(kernel[axis]):
            place = begin + tap * gap
            yield torch.where((place < 0) | (place >= size), first, place)

    return _largest(x, axes, places)


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
    index = found[0]
    for axis, size in list(enumerate(sizes))[1:]:
        index = index * size + found[axis]
    return x, index


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
