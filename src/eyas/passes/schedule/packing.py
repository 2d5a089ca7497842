"""Packing buffers with lifetimes into one arena, and how good the result is.

Lower bound: at no time can the arena be smaller than the bytes alive then. The packer tries several orders and keeps
the smallest arena; each order places buffers one by one at the lowest gap that no living neighbour occupies. Another
packing follows time and gives each buffer the memory that was in use last: it is still in a cache, while weights that
are read in between drive out what lies idle. It is taken unless another is smaller and it is more than an eighth above
the lower bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True)
class Interval:
    """A buffer: its size, and the ordinals of the first and last step that touch it."""

    size_bytes: int
    first: int
    last: int

    def meets(self, other: Interval) -> bool:
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Packing:
    """An offset for each buffer, the arena's size, and the size that no packing can go below."""

    offsets: tuple[int, ...]
    arena_bytes: int
    lower_bound_bytes: int


_ORDERS: Sequence[Callable[[Interval], tuple]] = (
    lambda b: (-b.size_bytes, b.first),
    lambda b: (-(b.size_bytes * (b.last - b.first + 1)), -b.size_bytes),
    lambda b: (b.first, -b.size_bytes),
    lambda b: (-(b.last - b.first), -b.size_bytes),
)


def pack(buffers: Sequence[Interval]) -> Packing:
    """The best packing of all orders."""
    best: tuple[list[int], int] | None = None
    for key in _ORDERS:
        order = sorted(range(len(buffers)), key=lambda index: key(buffers[index]))
        offsets, total = _place(buffers, order)
        if best is None or total < best[1]:
            best = (offsets, total)
    offsets, total = best if best is not None else ([], 0)
    bound = lower_bound(buffers)
    warm, warm_total = _place_warm(buffers)
    if warm_total <= max(total, bound + bound // 8):
        offsets, total = warm, warm_total
    return Packing(tuple(offsets), total, bound)


def lower_bound(buffers: Sequence[Interval]) -> int:
    """The most bytes that are alive at one step."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        size = _align(buffer.size_bytes)
        changes[buffer.first] = changes.get(buffer.first, 0) + size
        changes[buffer.last + 1] = changes.get(buffer.last + 1, 0) - size
    alive = peak = 0
    for step in sorted(changes):
        alive += changes[step]
        peak = max(peak, alive)
    return peak


def _place(buffers: Sequence[Interval], order: Sequence[int]) -> tuple[list[int], int]:
    offsets = [0] * len(buffers)
    placed: list[int] = []
    total = 0
    for index in order:
        buffer = buffers[index]
        size = _align(buffer.size_bytes)
        occupied = sorted(
            (offsets[other], offsets[other] + _align(buffers[other].size_bytes))
            for other in placed
            if buffer.meets(buffers[other])
        )
        position, best_gap, best_position = 0, None, None
        for start, end in occupied:
            gap = start - position
            if gap >= size and (best_gap is None or gap < best_gap):
                best_gap, best_position = gap, position
            position = max(position, end)
        offsets[index] = best_position if best_position is not None else position
        total = max(total, offsets[index] + size)
        placed.append(index)
    return offsets, total


def _place_warm(buffers: Sequence[Interval]) -> tuple[list[int], int]:
    """Places buffers as time goes on, each where the bytes have been idle for the shortest time."""
    offsets = [0] * len(buffers)
    segments: list[tuple[int, int, int]] = []  # start, end, last step that touches it; without gaps from 0 on
    never = 4 * max((buffer.last for buffer in buffers), default=0) + 1
    for index in sorted(range(len(buffers)), key=lambda index: (buffers[index].first, -buffers[index].size_bytes)):
        buffer, size = buffers[index], _align(buffers[index].size_bytes)
        free = [segment for segment in segments if segment[2] < buffer.first]
        arena = segments[-1][1] if segments else 0
        starts = {start for start, _, _ in free} | {end - size for _, end, _ in free if end >= size} | {arena}
        costs = [(_idle(segments, start, size, buffer.first, never), start) for start in starts]
        _, start = min(cost for cost in costs if cost[0] is not None)
        offsets[index] = start
        if size:
            segments = _cover(segments, (start, start + size, buffer.last))
    return offsets, segments[-1][1] if segments else 0


def _idle(segments: Sequence[tuple[int, int, int]], start: int, size: int, now: int, never: int) -> int | None:
    """Bytes times steps for which a place has been idle, or None where something is alive."""
    total, at = 0, start
    for low, high, last in segments[bisect_right(segments, start, key=lambda segment: segment[1]) :]:
        if low >= start + size:
            break
        if last >= now:
            return None
        common = min(high, start + size) - at
        total, at = total + common * (now - last), at + common
    return total + (start + size - at) * never


def _cover(segments: Sequence[tuple[int, int, int]], new: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """The segments with a part, or the end, written over."""
    kept = []
    for low, high, last in segments:
        kept += [(low, min(high, new[0]), last), (max(low, new[1]), high, last)]
    return sorted([new, *(segment for segment in kept if segment[0] < segment[1])])


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
