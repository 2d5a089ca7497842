"""Writes a function of tile instructions as a tree of loops, in which what does not change goes outside by itself.

Scalars and tiles are values. An instruction that only computes is written to the innermost loop in which one of its
operands is made, and only once: what is around a loop costs nothing inside of it, so emitters write addresses and loads
where they are used. Each tile instruction says what rows and columns it works on; `shape` is written where they change.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from eyas.module.vmvx_isa import Extent, Type, modes


@dataclass(eq=False)
class Scope:
    """What is inside of one loop."""

    depth: int
    items: list[Item] = field(default_factory=list)
    known: dict[tuple[Any, ...], Scalar | Tile] = field(default_factory=dict)


@dataclass(eq=False)
class Scalar:
    """A number of 64 bits, known when it is a constant."""

    scope: Scope
    constant: int | None = None


@dataclass(eq=False)
class Tile:
    """Elements of a type: one for each of `rows` and `columns`, where None means that all of them share one."""

    type: Type
    rows: Scalar | None
    columns: Scalar | None
    scope: Scope
    is_variable: bool = False
    """Whether instructions change it; what reads it stays where it is written."""
    filled: Scalar | None = None
    """What all of its elements are, when they are one scalar."""
    counts_from: Scalar | None = None
    """Where the columns of a row of neighbours begin, when that is what it is: start, start + 1, ..."""

    @property
    def extent(self) -> Extent:
        return extent_of(self.rows, self.columns)


@dataclass(eq=False)
class Instruction:
    name: str
    operands: list[Any]
    shape: tuple[Scalar | None, Scalar | None] | None
    """Rows and columns that must be set, each None when they do not matter; None for a scalar instruction."""
    result: Scalar | Tile | None = None


@dataclass(eq=False)
class Loop:
    index: Scalar
    low: Scalar
    limit: Scalar
    step: Scalar
    at_least_once: bool
    body: Scope


Item = Instruction | Loop

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "mins": min,
    "maxs": max,
    "lts": lambda a, b: int(a < b),
    "les": lambda a, b: int(a <= b),
    "and": lambda a, b: a & b,
    "divs": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0,
}


class Builder:
    """The function while it is written. `finish` hands it to an assembler."""

    def __init__(self) -> None:
        self.root = Scope(0)
        self.stack = [self.root]

    # Scalars.

    def const(self, value: int) -> Scalar:
        return self._known(self.root, ("const", value), lambda: Scalar(self.root, value))

    def const_f32(self, value: float) -> Scalar:
        return self.const(struct.unpack("<I", struct.pack("<f", value))[0])

    def const_f64(self, value: float) -> Scalar:
        return self.const(struct.unpack("<q", struct.pack("<d", value))[0])

    def scalar(self, name: str, *operands: Scalar | int) -> Scalar:
        """The result of a scalar instruction that only computes."""
        folded = self._fold(name, operands)
        if folded is not None:
            return folded
        scope = self._innermost(operands)
        return self._known(scope, (name, *operands), lambda: self._append(scope, name, Scalar(scope), operands, None))

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        return self.scalar("add", a, b)

    def sub(self, a: Scalar, b: Scalar) -> Scalar:
        return self.scalar("sub", a, b)

    def mul(self, a: Scalar, b: Scalar) -> Scalar:
        return self.scalar("mul", a, b)

    def min(self, a: Scalar, b: Scalar) -> Scalar:
        return self.scalar("mins", a, b)

    def max(self, a: Scalar, b: Scalar) -> Scalar:
        return self.scalar("maxs", a, b)

    def div(self, a: Scalar, b: Scalar) -> Scalar:
        return self.scalar("divs", a, b)

    def ceil_div(self, a: Scalar, b: int) -> Scalar:
        """a / b rounded up, for b > 0 and a of either sign."""
        if b == 1:
            return a
        positive = self.div(self.add(a, self.const(b - 1)), self.const(b))
        return self.scalar("select", self.scalar("les", a, self.const(0)), self.div(a, self.const(b)), positive)

    def _fold(self, name: str, operands: Sequence[Scalar | int]) -> Scalar | None:
        values = [one.constant if isinstance(one, Scalar) else one for one in operands]
        if name in _FOLDED and len(values) == 2 and values[0] is not None and values[1] is not None:
            return self.const(_FOLDED[name](values[0], values[1]))
        if name == "select" and values[0] is not None:
            return operands[1] if values[0] else operands[2]  # type: ignore[return-value]
        first, second = operands[0] if operands else None, operands[1] if len(operands) > 1 else None
        if (name in ("add", "sub") and values[1] == 0) or (name in ("mul", "divs") and values[1] == 1):
            return first  # type: ignore[return-value]
        if (name == "add" and values[0] == 0) or (name == "mul" and values[0] == 1):
            return second  # type: ignore[return-value]
        if name == "mul" and 0 in values[:2]:
            return self.const(0)
        if name in ("mins", "maxs") and first is second:
            return first  # type: ignore[return-value]
        return None

    def local(self, count_bytes: Scalar) -> Scalar:
        """The address of memory of the workgroup's own."""
        return self._append(self.root, "local", Scalar(self.root), (count_bytes,), None)

    def data(self, data: bytes) -> Scalar:
        """The address of constant data."""
        return self._known(
            self.root, ("data", data), lambda: self._append(self.root, "data", Scalar(self.root), (data,), None)
        )

    # Tiles.

    def tile(self, name: str, type_: Type, *operands: Tile, extra: Sequence[int] = ()) -> Tile:
        """An instruction for each element: dst, operands, `extra` immediates, modes."""
        rows = next((one.rows for one in operands if one.rows is not None), None)
        columns = next((one.columns for one in operands if one.columns is not None), None)
        shape = modes(extent_of(rows, columns), *(one.extent for one in operands))
        return self.pure(name, type_, rows, columns, (*operands, *extra, shape))

    def pure(
        self, name: str, type_: Type, rows: Scalar | None, columns: Scalar | None,
        operands: Sequence[Scalar | Tile | int], shape: tuple[Scalar | None, Scalar | None] | None = None,
        stays: bool = False,
    ) -> Tile:  # fmt: skip
        """The tile that an instruction makes, at the place where it changes; with `stays`, here."""
        if stays or any(isinstance(one, Tile) and one.is_variable for one in operands):
            scope = self.stack[-1]
            return self._append(scope, name, Tile(type_, rows, columns, scope), operands, shape or (rows, columns))
        needed = [one for one in (*operands, *(shape or (rows, columns))) if one is not None]
        scope = self._innermost(needed)
        key = (name, type_, rows, columns, *operands)
        return self._known(
            scope, key,
            lambda: self._append(scope, name, Tile(type_, rows, columns, scope), operands, shape or (rows, columns)),
        )  # fmt: skip

    def variable(self, type_: Type, rows: Scalar | None, columns: Scalar | None) -> Tile:
        """A tile that instructions change; `assign` gives it its first value."""
        return Tile(type_, rows, columns, self.stack[-1], True)

    def assign(self, target: Tile, source: Tile) -> None:
        """target = source, repeated to the target's shape."""
        shape = modes(target.extent, source.extent)
        self.change(target, "tmov", (source, int(target.type), shape))

    def change(
        self, target: Tile, name: str, operands: Sequence[Scalar | Tile | int],
        shape: tuple[Scalar | None, Scalar | None] | None = None,
    ) -> None:  # fmt: skip
        """An instruction that writes (and may read) a variable."""
        assert target.is_variable
        shape = shape or (target.rows, target.columns)
        self.stack[-1].items.append(Instruction(name, [target, *operands], shape, target))

    def effect(
        self, name: str, operands: Sequence[Scalar | Tile | int], shape: tuple[Scalar | None, Scalar | None] | None
    ) -> None:
        """An instruction that is there for what it does: a store, a check."""
        self.stack[-1].items.append(Instruction(name, list(operands), shape))

    def here(self, name: str, operands: Sequence[Scalar | Tile | int]) -> Scalar:
        """A scalar that an instruction makes here."""
        scope = self.stack[-1]
        return self._append(scope, name, Scalar(scope), operands, None)

    def fill(self, value: Scalar, type_: Type, rows: Scalar | None = None, columns: Scalar | None = None) -> Tile:
        """A tile whose elements are all one scalar."""
        operands = (value, int(type_), modes(extent_of(rows, columns)))
        made = self.pure("tfill", type_, rows, columns, operands, (rows, columns))
        made.filled = value
        return made

    # Loops.

    @contextmanager
    def loop(self, low: Scalar, limit: Scalar, step: Scalar, at_least_once: bool = False) -> Iterator[Scalar]:
        """A loop around what is written inside; gives its index. One that runs once is none."""
        constants = (low.constant, limit.constant, step.constant)
        if None not in constants and 0 < constants[1] - constants[0] <= constants[2]:  # type: ignore[operator]
            yield low
            return
        if limit is step and low.constant == 0 and at_least_once:
            yield low
            return
        known = constants[0] is not None and constants[1] is not None and constants[0] < constants[1]
        body = Scope(len(self.stack))
        index = Scalar(body)
        self.stack.append(body)
        yield index
        self.stack.pop()
        self.stack[-1].items.append(Loop(index, low, limit, step, at_least_once or known, body))

    # Placement.

    def _innermost(self, operands: Sequence[Any]) -> Scope:
        return self.stack[max((one.scope.depth for one in operands if isinstance(one, Scalar | Tile)), default=0)]

    def _known(self, scope: Scope, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        if key not in scope.known:
            scope.known[key] = make()
        return scope.known[key]

    def _append(self, scope: Scope, name: str, result: Any, operands: Sequence[Any], shape: Any) -> Any:
        scope.items.append(Instruction(name, [result, *operands], shape, result))
        return result


def extent_of(rows: Scalar | None, columns: Scalar | None) -> Extent:
    if rows is None:
        return Extent.ONE if columns is None else Extent.ROW
    return Extent.COLUMN if columns is None else Extent.FULL
