"""The matrices of Winograd's minimal filtering F(m, 3), made by the method of Toom and Cook.

m outputs of a filter g with 3 taps over m + 2 inputs d are `A^T [(G g) * (B^T d)]` with m + 2 multiplications. A linear
convolution is a product of polynomials, which is known from its values at m + 2 points, infinity being one of them;
filtering is the transposed algorithm. Which points are taken decides about the rounding error: the customary 0, 1, -1,
2, -2 of F(4, 3) err four times as much as 0, 2/3, -2/3, 3/2, -3/2, because powers of 2 and of 1/2 differ more in size.
That the two are reciprocal also saves multiplications.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

TAPS = 3
_POINTS: dict[int, tuple[Fraction, ...]] = {
    2: (Fraction(0), Fraction(1), Fraction(-1)),
    4: (Fraction(0), Fraction(2, 3), Fraction(-2, 3), Fraction(3, 2), Fraction(-3, 2)),
}
OUTPUTS = tuple(_POINTS)
"""The tile sizes m that there are matrices for."""

Matrix = list[list[Fraction]]


@dataclass(frozen=True)
class Matrices:
    """F(m, 3) in one dimension; in two, each matrix is applied to rows and to columns."""

    output: np.ndarray
    """A^T, m by m + 2."""
    filter: np.ndarray
    """G, m + 2 by 3."""
    input: np.ndarray
    """B^T, m + 2 by m + 2. The last element of each row is 1; G has the factor instead."""


def matrices(outputs: int) -> Matrices:
    """The matrices for a tile of `outputs`, in f64 rounded from exact fractions."""
    points, count = _POINTS[outputs], outputs + TAPS - 1
    output, filter_ = _powers(points, outputs), _powers(points, TAPS)
    inverse = _inverse(_powers(points, count))
    input_ = [[inverse[column][row] for column in range(count)] for row in range(count)]
    for row in range(count):
        scale = next(value for value in reversed(input_[row]) if value)
        input_[row] = [value / scale for value in input_[row]]
        filter_[row] = [value * scale for value in filter_[row]]
    return Matrices(_array(output).T, _array(filter_), _array(input_))


def _powers(points: tuple[Fraction, ...], count: int) -> Matrix:
    """Values of 1, x, x^2, ... at the points, and at infinity, where only the highest power counts."""
    return [[point**power for power in range(count)] for point in points] + [
        [Fraction(int(power == count - 1)) for power in range(count)]
    ]


def _inverse(matrix: Matrix) -> Matrix:
    """By elimination, without rounding."""
    size = len(matrix)
    rows = [[*row, *(Fraction(int(column == index)) for column in range(size))] for index, row in enumerate(matrix)]
    for column in range(size):
        pivot = next(row for row in range(column, size) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(size):
            if row != column and rows[row][column]:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [row[size:] for row in rows]


def _array(matrix: Matrix) -> np.ndarray:
    return np.array([[float(value) for value in row] for row in matrix])
