"""Packing buffers with lifetimes into one arena, and how good the result is.

Lower bound: at no time can the arena be smaller than the bytes alive then. The packer tries several orders and keeps
the smallest arena; each order places buffers one by one at the lowest gap that no living neighbour occupies.
"""

from __future__ import annotations

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
    return Packing(tuple(offsets), total, lower_bound(buffers))


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


def _align(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
