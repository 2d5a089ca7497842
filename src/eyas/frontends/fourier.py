"""Fourier transforms as products with small tables of roots, for any framework's ops.

Real and imaginary parts are kept apart, so that the products are ordinary real matmuls. A long transform is split into
two shorter ones (Cooley and Tukey); a length with only large prime factors, or one that varies, is one product: O(n^2),
but exact and rare.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from eyas.passes.input.convert_stablehlo_fft import split_length

Value = TypeVar("Value")
Parts = tuple[Value, Value]


class Fourier(ABC, Generic[Value]):
    """Transforms written with the ops that a subclass gives. Nothing is scaled."""

    @abstractmethod
    def shape(self, value: Value) -> list[int]: ...

    @abstractmethod
    def roots(self, rows: int, columns: int, length: int, sign: int, like: Value) -> Parts[Value]:
        """Cosines and sines of sign * 2 pi * row * column / length, in the element type of `like`."""

    @abstractmethod
    def half_roots(self, length: int, like: Value) -> Parts[Value]:
        """The same for rows 0 to length // 2, where rows that stand for two are doubled."""

    @abstractmethod
    def dot(self, value: Value, table: Value) -> Value:
        """Contracts the last dimension with a table's first."""

    @abstractmethod
    def add(self, one: Value, other: Value) -> Value: ...

    @abstractmethod
    def subtract(self, one: Value, other: Value) -> Value: ...

    @abstractmethod
    def multiply_table(self, value: Value, table: Value) -> Value:
        """Multiplies the last two dimensions by a table."""

    @abstractmethod
    def reshape(self, value: Value, shape: Sequence[int]) -> Value: ...

    @abstractmethod
    def transpose(self, value: Value, order: Sequence[int]) -> Value: ...

    def transform(self, parts: Parts[Value], axis: int, sign: int) -> Parts[Value]:
        """A transform along one axis."""
        order, back = _to_last(len(self.shape(parts[0])), axis)
        done = self._transform_last(self._map(parts, lambda value: self.transpose(value, order)), sign)
        return self._map(done, lambda value: self.transpose(value, back))

    def transform_real(self, value: Value, axis: int) -> Parts[Value]:
        """The first half of the spectrum of real values along one axis."""
        length = self.shape(value)[axis]
        order, back = _to_last(len(self.shape(value)), axis)
        moved = self.transpose(value, order)
        cosines, sines = self.roots(length, length // 2 + 1, length, -1, value)
        done = self.dot(moved, cosines), self.dot(moved, sines)
        return self._map(done, lambda part: self.transpose(part, back))

    def real_from_half(self, parts: Parts[Value], axis: int, length: int) -> Value:
        """The real result of an inverse transform whose input is the first half of a Hermitian spectrum."""
        order, back = _to_last(len(self.shape(parts[0])), axis)
        real, imag = self._map(parts, lambda value: self.transpose(value, order))
        cosines, sines = self.half_roots(length, real)
        return self.transpose(self.subtract(self.dot(real, cosines), self.dot(imag, sines)), back)

    def is_split(self, length: int) -> bool:
        """Whether a transform of this length is made of shorter ones."""
        return isinstance(length, int) and split_length(length) != 1

    def _transform_last(self, parts: Parts[Value], sign: int) -> Parts[Value]:
        shape = self.shape(parts[0])
        *batch, length = shape
        if not self.is_split(length):
            return self._product(parts, self.roots(length, length, length, sign, parts[0]))
        first = split_length(length)
        second = length // first
        rank = len(batch)
        swap = [*range(rank), rank + 1, rank]
        # x[second * i + j] -> [j, i]; transform over i; roots; transform over j; out[p + first * q] <- [q, p].
        parts = self._map(parts, lambda value: self.transpose(self.reshape(value, [*batch, first, second]), swap))
        parts = self._transform_last(parts, sign)
        parts = self._rotate(parts, self.roots(second, first, length, sign, parts[0]))
        parts = self._map(parts, lambda value: self.transpose(value, swap))
        parts = self._transform_last(parts, sign)
        return self._map(parts, lambda value: self.reshape(self.transpose(value, swap), shape))

    def _product(self, parts: Parts[Value], table: Parts[Value]) -> Parts[Value]:
        (real, imag), (cosines, sines) = parts, table
        return (
            self.subtract(self.dot(real, cosines), self.dot(imag, sines)),
            self.add(self.dot(real, sines), self.dot(imag, cosines)),
        )

    def _rotate(self, parts: Parts[Value], table: Parts[Value]) -> Parts[Value]:
        (real, imag), (cosines, sines) = parts, table
        times = self.multiply_table
        return (
            self.subtract(times(real, cosines), times(imag, sines)),
            self.add(times(real, sines), times(imag, cosines)),
        )

    def _map(self, parts: Parts[Value], function: Callable[[Value], Value]) -> Parts[Value]:
        return function(parts[0]), function(parts[1])


def _to_last(rank: int, axis: int) -> tuple[list[int], list[int]]:
    """The permutation that moves an axis to the end, and the one that moves it back."""
    order = [dim for dim in range(rank) if dim != axis] + [axis]
    return order, [order.index(dim) for dim in range(rank)]
