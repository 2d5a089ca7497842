"""Lists of tensors that a graph passes on: TensorFlow's TensorList, and the TensorArray before it.

A list whose places are numbers is kept entry by entry and costs nothing. One that is read or written at computed places
is one tensor with a row for each entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.frontends.tensorflow import moves
from eyas.frontends.tensorflow.graph import Dim, Graph, dims_of

_MOST_ITEMS = 4096


@dataclass(frozen=True)
class TensorList:
    """`items` are its entries, None where nothing was written yet, or `rows` holds all of them. `dims` are those of an
    entry as far as they are known; None when not even their number is."""

    dtype: np.dtype
    dims: tuple[Dim, ...] | None
    items: tuple[Any, ...] | None = ()
    rows: Any = None

    @property
    def is_shaped(self) -> bool:
        """Whether its entries can be put into one tensor."""
        if self.rows is not None:
            return True
        return self.dims is not None and all(isinstance(dim, int) for dim in self.dims)

    def shaped_like(self, other: Any) -> TensorList:
        known = other.dims if isinstance(other, TensorList) else None
        return self if self.is_shaped or known is None else replace(self, dims=known)

    def length(self, g: Graph) -> Any:
        if self.items is not None:
            return np.array(len(self.items), np.int32)
        return g.cast(g.reshape(g.add("Gather", g.shape_of(self.rows), np.array([0])), []), np.int32)

    def stack(self, g: Graph) -> Any:
        """All entries as rows; those that were never written are zeros."""
        if self.rows is not None:
            return self.rows
        assert self.items is not None
        if not self.items:
            return np.zeros((0, *self._sizes(g)), self.dtype)
        written = [item for item in self.items if item is not None]
        if not written:
            return np.zeros((len(self.items), *self._sizes(g)), self.dtype)
        filled = [self._zeros(g) if item is None else item for item in self.items]
        return moves.pack(g, filled, 0)

    def get(self, g: Graph, index: Any) -> Any:
        place = self._place(index)
        if place is not None:
            assert self.items is not None
            if not 0 <= place < len(self.items):
                raise FrontendError(f"{g.description}: {g.where} reads entry {place} of a list of {len(self.items)}")
            return self._zeros(g) if self.items[place] is None else self.items[place]
        return g.add("Gather", self.stack(g), g.reshape(g.cast(index, np.int64), []), axis=0)

    def set(self, g: Graph, index: Any, item: Any) -> TensorList:
        place, dims = self._place(index), _merged(self.dims, dims_of(item))
        if place is not None and 0 <= place < _MOST_ITEMS:
            items = list(self.items or ())
            items += [None] * (place + 1 - len(items))
            items[place] = item
            return replace(self, items=tuple(items), dims=dims)
        shaped = replace(self, dims=dims)
        at = g.reshape(g.cast(index, np.int64), [1, 1])
        rows = g.add("ScatterND", shaped.stack(g), at, moves.expand_dims(g, item, 0))
        return replace(shaped, items=None, rows=rows)

    def push(self, g: Graph, item: Any) -> TensorList:
        if self.items is None:
            raise UnsupportedOpError(f"{g.description}: {g.where} is not supported: a list grows in a loop")
        return replace(self, items=(*self.items, item), dims=_merged(self.dims, dims_of(item)))

    def pop(self, g: Graph) -> tuple[TensorList, Any]:
        if not self.items:
            raise UnsupportedOpError(f"{g.description}: {g.where} is not supported: a list shrinks in a loop")
        last = self._zeros(g) if self.items[-1] is None else self.items[-1]
        return replace(self, items=self.items[:-1]), last

    def _place(self, index: Any) -> int | None:
        is_known = isinstance(index, np.ndarray) and self.items is not None
        return int(index.reshape(())) if is_known else None

    def _zeros(self, g: Graph) -> np.ndarray:
        return np.zeros(self._sizes(g), self.dtype)

    def _sizes(self, g: Graph) -> list[int]:
        if self.dims is None or not all(isinstance(dim, int) for dim in self.dims):
            raise UnsupportedOpError(
                f"{g.description}: {g.where} is not supported: a list has entries of sizes that are only known when the"
                " model runs"
            )
        return [int(dim) for dim in self.dims if isinstance(dim, int)]


def _merged(one: Sequence[Dim] | None, other: Sequence[Dim]) -> tuple[Dim, ...]:
    if one is None or len(one) != len(other):
        return tuple(other)
    return tuple(a if isinstance(a, int) else b for a, b in zip(one, other, strict=True))


def reserve(g: Graph, dtype: Any, shape: Any, count: Any) -> TensorList:
    """A list of `count` entries; -1 stands for a size that is not known yet."""
    found = TensorList(np.dtype(dtype), _declared(shape))
    if isinstance(count, np.ndarray):
        number = int(count.reshape(()))
        if not 0 <= number <= _MOST_ITEMS:
            raise FrontendError(f"{g.description}: {g.where} makes a list of {number} entries")
        return replace(found, items=(None,) * number)
    sizes = g.add("Concat", g.reshape(g.cast(count, np.int64), [1]), np.array(found._sizes(g), np.int64), axis=0)
    return replace(found, items=None, rows=moves.broadcast_to(g, np.zeros((), found.dtype), sizes))


def _declared(shape: Any) -> tuple[Dim, ...] | None:
    """The shape of an entry as an operand says it: a scalar means that nothing is known."""
    if not isinstance(shape, np.ndarray) or shape.ndim == 0:
        return None
    return tuple(int(size) if size >= 0 else None for size in shape.reshape(-1))


def from_rows(g: Graph, rows: Any) -> TensorList:
    """A list of the rows of a tensor."""
    count, *dims = dims_of(rows)
    found = TensorList(np.dtype(rows.dtype), tuple(dims), None, rows)
    if isinstance(count, int) and count == 1:
        return replace(found, items=(moves.squeeze(g, rows, [0]),), rows=None)
    return found
