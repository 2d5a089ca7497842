"""The knobs of matrix products that `python -m benchmarks.gpu_products --sweep` compares: what may limit such a kernel,
one after the other (shared memory's bandwidth, registers, barriers, the second-level cache)."""

from __future__ import annotations

from collections.abc import Iterator

_SHARED_BYTES = 48 * 1024


def knobs_for(size: int) -> list[str]:
    """For products of so many rows, columns and steps."""
    found = [*_small()] if size <= 1024 else [*_large()]
    return [one for one in dict.fromkeys(found) if _shared(one) <= _SHARED_BYTES]


def _large() -> Iterator[str]:
    for tile in ("2x2:4x4", "2x4:4x4", "4x2:4x4"):
        for depth, buffers in ((16, 2), (32, 2), (64, 1)):
            for spread in (0, 1, 2) if buffers == 2 else (0,):
                for in_flight in (1, 2) if buffers == 2 else (1,):
                    yield f"{tile}:{depth}:{buffers}:{in_flight}:8,spread={spread}"
    for band in (2, 3, 6, 11, 12, 22, 33):  # multiples of these are the processors of an H200: neighbours share rows
        yield f"2x2:4x4:64:1:1:{band}"
        yield f"2x2:4x4:32:2:1:{band},spread=1"
    yield "2x4:4x3:32:2:1:8,spread=2"
    yield "2x4:4x3:32:2:1:8"
    yield f"{_narrow('2x4:4x4')}:16:2:1:8:16x8x16,spread=2"


def _small() -> Iterator[str]:
    for tile in ("4x2:2x2", "2x4:2x2", "2x2:2x2", "2x2x2:4x2", "2x2:4x2", "4x2:2x4", "2x4:4x2"):
        for depth, buffers in ((64, 1), (32, 2), (64, 2)):
            for spread in (0, 1, 2) if buffers == 2 else (0,):
                yield f"{tile}:{depth}:{buffers}:1:8,spread={spread}"
        for band in (1, 4, 11, 12):
            yield f"{tile}:64:1:1:{band}"


def _narrow(tile: str) -> str:
    """The same tile of fragments that are half as wide."""
    subgroups, fragments = tile.split(":")
    rows, columns = fragments.split("x")
    return f"{subgroups}:{rows}x{2 * int(columns)}"


def _shared(knobs: str) -> int:
    """Bytes of shared memory, with one group of 16 bytes more in each of at most `depth` lines."""
    subgroups, fragments, depth, buffers, _, _, *shape = knobs.partition(",")[0].split(":")
    (down, across, *_), (rows, columns) = (list(map(int, one.split("x"))) for one in (subgroups, fragments))
    width = int(shape[0].split("x")[1]) if shape else 16
    each = (16 * down * rows + width * across * columns) * int(depth) * 2 + 16 * (16 + int(depth))
    return int(buffers) * each
