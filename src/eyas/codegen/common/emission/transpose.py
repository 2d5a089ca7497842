"""A square of registers, transposed by shuffles: reading along rows what is wanted along columns.

A gather fetches one element at a time; here a cache line is loaded once and log2(width) shuffles a vector do the rest.
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import vector


def transpose_registers(rows: list[mlir.Value]) -> list[mlir.Value]:
    """Vectors whose lane i of number j is lane j of number i. As many vectors as lanes, a power of two."""
    width = len(rows)
    assert width & (width - 1) == 0 and all(mlir.VectorType(row.type).shape == [width] for row in rows)
    # Blocks off the diagonal change places, at one distance after the other (Eklundh's method).
    distance = width // 2
    while distance:
        low = [lane if not lane & distance else width + lane - distance for lane in range(width)]
        high = [lane + distance if not lane & distance else width + lane for lane in range(width)]
        swapped = list(rows)
        for first in (number for number in range(width) if not number & distance):
            upper, lower = rows[first], rows[first + distance]
            swapped[first] = _shuffle(upper, lower, low)
            swapped[first + distance] = _shuffle(upper, lower, high)
        rows = swapped
        distance //= 2
    return rows


def _shuffle(left: mlir.Value, right: mlir.Value, mask: list[int]) -> mlir.Value:
    return vector.ShuffleOp(left, right, mask).result
