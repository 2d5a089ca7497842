"""Builds one graph from draws. Ops ask it for operands: earlier values that suit, or new leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tests.fuzz import data
from tests.fuzz.graph import Dim, Node, TensorType
from tests.fuzz.lowering import AXES, takes
from tests.fuzz.ops import Op
from tests.fuzz.shadow import DTYPES, UNIT, exact

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 0, 64, 65, 100, 127)
LARGEST_LEAF, LARGEST_RESULT, LARGEST_RANK = 4096, 16384, 6

Draw = Callable[[int], int]
"""A number from 0 up to and including the argument; smaller is simpler."""


class Unsuitable(Exception):
    """An op that cannot be applied here, or whose result has too many elements."""


REFUSALS = (Unsuitable, ValueError, RuntimeError, IndexError, TypeError)
"""Also NumPy's and torch's words for what does not go together."""


class Builder:
    """The nodes so far. `symbols` are the dynamic dimensions that leaves may have."""

    def __init__(
        self, draw: Draw, symbols: dict[str, tuple[int, ...]], dtypes: Sequence[str] = tuple(DTYPES), frontend: str = ""
    ) -> None:
        self.draw, self.symbols, self.dtypes, self.frontend = draw, symbols, tuple(dtypes), frontend
        self.nodes: list[Node] = []
        self.calls = len(next(iter(symbols.values()), (0, 0)))

    # Draws.

    def integer(self, low: int, high: int) -> int:
        return low + self.draw(high - low)

    def boolean(self) -> bool:
        return bool(self.draw(1))

    def choose(self, options: Sequence[Any]) -> Any:
        return options[self.draw(len(options) - 1)]

    def permutation(self, items: Sequence[Any]) -> list[Any]:
        rest, result = list(items), []
        while rest:
            result.append(rest.pop(self.draw(len(rest) - 1)))
        return result

    # Values.

    def type(self, index: int) -> TensorType:
        return self.nodes[index].type

    def shape(self, min_rank: int = 0, max_rank: int = 4, dynamic: bool = True) -> tuple[Dim, ...]:
        shape: list[Dim] = []
        room = LARGEST_LEAF
        for _ in range(self.integer(min_rank, max(min_rank, min(max_rank, 4)))):
            if dynamic and self.symbols and self.boolean():
                dim: Dim = self.choose(list(self.symbols.values()))
            else:
                dim = self.choose(SIZES)
            size = dim if isinstance(dim, int) else max(dim)
            if size > room:
                dim = size = 1
            room //= max(size, 1)
            shape.append(dim)
        return tuple(shape)

    def leaf(self, dtype: str, shape: tuple[Dim, ...], kind: str | None = None, constant: bool | None = None) -> int:
        """A new argument or constant. What is dynamic must be an argument."""
        if kind is None:
            kinds = data.FLOAT_KINDS if dtype in UNIT else data.INTEGER_KINDS
            kind = self.choose(kinds)
            if kind == "special" and self.draw(1):
                kind = "normal"
        kind_of = TensorType(dtype, shape)
        if constant is None:
            constant = self.draw(3) == 3
        named = all(isinstance(dim, int) or dim in self.symbols.values() for dim in shape)
        if not named:
            raise Unsuitable("a dynamic size that no symbol has")
        op = "constant" if constant and kind_of.is_static else "input"
        self.nodes.append(Node(op, (), {"kind": kind, "seed": self.draw(99)}, kind_of))
        return len(self.nodes) - 1

    def value(
        self,
        dtypes: Sequence[str] | None = None,
        min_rank: int = 0,
        max_rank: int = LARGEST_RANK,
        where: Callable[[TensorType], bool] = lambda _: True,
    ) -> int:
        """An earlier value that suits, the latest first, or a new leaf."""
        wanted = dtypes or self.dtypes
        dtypes = [dtype for dtype in wanted if dtype in self.dtypes] or list(wanted)

        def suits(kind: TensorType) -> bool:
            return kind.dtype in dtypes and min_rank <= kind.rank <= max_rank and where(kind)

        found = [index for index in reversed(range(len(self.nodes))) if suits(self.type(index))]
        if found and self.draw(7) < 7:
            # Long chains: every other time the latest value.
            return self.choose(found) if self.boolean() else found[0]
        dtype = self.choose(dtypes)
        shape = self.shape(min_rank, max_rank)
        if not where(TensorType(dtype, shape)):
            shape = tuple(self.integer(1, 6) for _ in shape)
        if not where(TensorType(dtype, shape)):
            raise Unsuitable("no leaf suits")
        return self.leaf(dtype, shape)

    def operand(self, dtype: str, shape: tuple[Dim, ...], kind: str | None = None) -> int:
        """A value of exactly this type."""
        found = [i for i in reversed(range(len(self.nodes))) if self.type(i) == TensorType(dtype, shape)]
        if kind is None and found and self.boolean():
            return self.choose(found)
        return self.leaf(dtype, shape, kind)

    def matching(self, kind: TensorType, axis: int | None) -> int:
        """A value of the same type, with any size along `axis`."""

        def suits(other: TensorType) -> bool:
            same = [a == b for i, (a, b) in enumerate(zip(kind.shape, other.shape, strict=False)) if i != axis]
            return other.dtype == kind.dtype and other.rank == kind.rank and all(same)

        found = [index for index in reversed(range(len(self.nodes))) if suits(self.type(index))]
        if found and self.boolean():
            return self.choose(found)
        shape = list(kind.shape)
        if axis is not None:
            shape[axis] = self.integer(0, 6)
        return self.leaf(kind.dtype, tuple(shape))

    def companion(self, index: int, dtype: str | None = None, kind: str | None = None, fresh: bool = False) -> int:
        """A value that broadcasts with another."""
        first = self.type(index)
        dtype = dtype or first.dtype
        if not fresh and kind is None:
            found = [
                other
                for other in reversed(range(len(self.nodes)))
                if self.type(other).dtype == dtype and _broadcasts(first.shape, self.type(other).shape)
            ]
            if found and self.boolean():
                return self.choose(found)
        shape = list(first.shape[self.choose((0, 0, *range(first.rank + 1))) :])
        for axis, dim in enumerate(shape):
            if self.draw(4) == 4:
                shape[axis] = self.integer(1, 5) if dim == 1 else 1
        return self.leaf(dtype, tuple(shape), kind)

    # Ops.

    def apply(self, op: Op) -> bool:
        """Adds one op, or leaves the graph as it was."""
        before = len(self.nodes)
        try:
            drawn = op.build(self)
            if drawn is None:
                raise Unsuitable(op.name)
            inputs, attrs = drawn
            types = [self.type(index) for index in inputs]
            if AXES & attrs.keys() and types[0].rank and self.draw(3) == 3:
                attrs["from_end"] = True
            kind = infer(op, types, attrs, self.calls)
            if not takes(self.frontend, op, types, attrs, kind):
                raise Unsuitable(op.name)
        except REFUSALS:
            del self.nodes[before:]
            return False
        self.nodes.append(Node(op.name, tuple(inputs), attrs, kind))
        return True


def _broadcasts(one: tuple[Dim, ...], other: tuple[Dim, ...]) -> bool:
    return all(a == b or a == 1 or b == 1 for a, b in zip(reversed(one), reversed(other), strict=False))


def infer(op: Op, types: Sequence[TensorType], attrs: dict[str, Any], calls: int) -> TensorType:
    """The result's type: the op is evaluated on zeros at the sizes of each call."""
    shapes, dtype = [], ""
    for call in range(calls if not all(kind.is_static for kind in types) else 1):
        made = (op.once or op.evaluate)([exact(np.zeros(kind.at(call), DTYPES[kind.dtype])) for kind in types], attrs)
        shapes.append(made.shape)
        dtype = made.dtype
    if max(int(np.prod(shape)) for shape in shapes) > LARGEST_RESULT or len(shapes[0]) > LARGEST_RANK:
        raise Unsuitable(op.name)
    dims = [sizes[0] if len(set(sizes)) == 1 else tuple(sizes) for sizes in zip(*shapes, strict=True)]
    return TensorType(dtype, tuple(dims))
