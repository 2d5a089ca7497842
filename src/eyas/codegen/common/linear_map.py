"""A vector times a constant matrix, as few additions and multiplications.

Matrices of Winograd's method are made from points a and -a. So two rows are often equal but for signs: what they have
in common is computed once, as an even and an odd part. Two columns may be so as well; then a sum and a difference serve
all rows. 36 multiply-adds become 12 for F(4, 3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

Value = TypeVar("Value")


class LinearMap(ABC, Generic[Value]):
    """Multiplies vectors by one matrix; targets say how values are added and scaled."""

    def __init__(self, matrix: np.ndarray):
        self.matrix = np.asarray(matrix, dtype=np.float64)

    @abstractmethod
    def add(self, total: Value, factor: float, value: Value) -> Value:
        """total + factor * value; the factor may be 1 or -1."""

    @abstractmethod
    def times(self, factor: float, value: Value) -> Value:
        """factor * value."""

    def apply(self, values: Sequence[Value]) -> list[Value]:
        """One value for each row of the matrix; `values` are its columns' factors."""
        matrix, values = self._join_columns(self.matrix, list(values))
        results: list[Value | None] = [None] * len(matrix)
        for first in range(len(matrix)):
            if results[first] is not None:
                continue
            second = next(
                (row for row in range(first + 1, len(matrix)) if _is_mirror(matrix[first], matrix[row])), None
            )
            if second is None:
                results[first] = self._sum(_terms(matrix[first], values))
                continue
            same = matrix[first] == matrix[second]
            even = self._sum(_terms(np.where(same, matrix[first], 0), values))
            odd_row = np.where(same, 0, matrix[first])
            scale = float(odd_row[np.flatnonzero(odd_row)[-1]])
            odd = self._sum(_terms(odd_row / scale, values))
            results[first] = self._sum([(1.0, even), (scale, odd)])
            results[second] = self._sum([(1.0, even), (-scale, odd)])
        return [result for result in results if result is not None]

    def _join_columns(self, matrix: np.ndarray, values: list[Value]) -> tuple[np.ndarray, list[Value]]:
        """Replaces pairs of columns that differ in signs only by those of their sum and their difference."""
        matrix = matrix.copy()
        columns = list(range(matrix.shape[1]))
        for left in columns:
            for right in columns[left + 1 :]:
                if _is_mirror(matrix[:, left], matrix[:, right]) and np.count_nonzero(matrix[:, left]) > 2:
                    same = matrix[:, left] == matrix[:, right]
                    sums = [self._sum([(1.0, values[left]), (sign, values[right])]) for sign in (1.0, -1.0)]
                    values[left], values[right] = sums
                    column = matrix[:, left].copy()
                    matrix[:, left], matrix[:, right] = np.where(same, column, 0), np.where(same, 0, column)
        return matrix, values

    def _sum(self, terms: list[tuple[float, Value]]) -> Value:
        """Terms with a factor of one come first, so that each of the others is one multiply-add."""
        if not terms:
            raise AssertionError("a row of zeros")
        terms = sorted(terms, key=lambda term: term[0] != 1.0)
        factor, total = terms[0]
        if factor != 1.0:
            total = self.times(factor, total)
        for factor, value in terms[1:]:
            total = self.add(total, factor, value)
        return total


def _terms(row: np.ndarray, values: list[Value]) -> list[tuple[float, Value]]:
    return [(float(factor), value) for factor, value in zip(row, values, strict=True) if factor]


def _is_mirror(left: np.ndarray, right: np.ndarray) -> bool:
    """Equal but for some signs, with at least one of each kind."""
    if not np.array_equal(np.abs(left), np.abs(right)):
        return False
    signs = (left * right)[left != 0]
    return bool((signs > 0).any() and (signs < 0).any())
