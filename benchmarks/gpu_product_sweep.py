"""The knobs of matrix products that `python -m benchmarks.gpu_products --sweep` compares: what may limit such a kernel,
one after the other (shared memory's bandwidth, registers, barriers, the second-level cache)."""

from __future__ import annotations

from collections.abc import Iterator

# Subgroups, and fragments of each: 64x64 of the result for a subgroup, then less.
_LARGE = ("2x2:4x4", "2x4:4x4", "4x2:4x4", "2x4:4x2", "4x2:2x4", "1x2:4x4", "2x1:4x4", "4x4:2x4")
_SMALL = (
    "2x2:2x2",
    "2x4:2x2",
    "4x2:2x2",
    "2x2:4x2",
    "2x2:2x4",
    "2x2x2:2x2",
    "2x2x2:4x2",
    "1x2:4x2",
    "2x4:2x1",
    "4x4:2x1",
)
_SHARED_BYTES = 48 * 1024


def knobs_for(size: int) -> list[str]:
    """For products of so many rows, columns and steps."""
    found = [*_tiles(_SMALL if size <= 1024 else _LARGE, (32, 64, 128) if size <= 1024 else (16, 32, 64))]
    return [one for one in dict.fromkeys(found) if _shared(one) <= _SHARED_BYTES]


def _tiles(tiles: tuple[str, ...], depths: tuple[int, ...]) -> Iterator[str]:
    for number, tile in enumerate(tiles):
        for depth in depths:
            yield f"{tile}:{depth}:1:1:8"
            yield f"{tile}:{depth}:2:1:8"
            yield f"{tile}:{depth}:2:2:8"
            if number < 3 and depth >= 32:
                yield f"{tile}:{depth}:1:1:8,ahead=0"
                yield f"{tile}:{depth}:2:1:8,spread=1"
                yield f"{tile}:{depth}:2:1:8,spread=1,ahead=0"
                yield f"{tile}:{depth}:2:1:8,ahead=0"
                yield f"{tile}:{depth}:1:2:8,ahead=0"
    first = tiles[0]
    for band in (1, 4, 16, 32):
        yield f"{first}:64:1:1:{band}"
    yield f"{_narrow(first)}:64:1:1:8:16x8x16"
    yield f"{_narrow(first)}:32:2:1:8:16x8x16"


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
