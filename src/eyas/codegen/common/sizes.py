"""Symbolic sizes: products of an integer and push constants.

Extents and strides of row-major tensors are such products, so equality is exact even when dimensions are dynamic; that
is what lets loops collapse without knowing their extents.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """`factor` times the push constants in `symbols` (ordinals, sorted).

    Sums are no such products. One that only has to be told from others has a negative symbol of its own: loops and
    strides never have it.
    """

    factor: int
    symbols: tuple[int, ...] = ()

    @property
    def is_static(self) -> bool:
        return not self.symbols or self.factor == 0

    @property
    def is_known(self) -> bool:
        """Whether code can compute it."""
        return self.is_static or min(self.symbols) >= 0

    @property
    def static(self) -> int | None:
        """The value when it is known at compile time."""
        return self.factor if self.is_static else None

    def __mul__(self, other: Size | int) -> Size:
        other = other if isinstance(other, Size) else Size(other)
        if self.factor == 0 or other.factor == 0:
            return ZERO
        return Size(self.factor * other.factor, tuple(sorted(self.symbols + other.symbols)))

    def plus(self, other: Size) -> Size | None:
        """The sum when it is a product again, else None."""
        if self.factor == 0:
            return other
        if other.factor == 0 or self.symbols == other.symbols:
            return Size(self.factor + other.factor, self.symbols or other.symbols) if other.factor else self
        return None

    def __str__(self) -> str:
        return "*".join([str(self.factor), *(f"c{symbol}" for symbol in self.symbols)])


ZERO = Size(0)
ONE = Size(1)


def product(sizes: list[Size] | tuple[Size, ...]) -> Size:
    result = ONE
    for size in sizes:
        result = result * size
    return result


def row_major_strides(shape: list[Size] | tuple[Size, ...]) -> tuple[Size, ...]:
    """Element strides of a dense row-major tensor."""
    strides, running = [], ONE
    for size in reversed(shape):
        strides.append(running)
        running = running * size
    return tuple(reversed(strides))
