"""Sizes in rules: numbers where they are known, vectors of one element where the model has them only when it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from eyas.frontends.onnx.rewrite.rules import Builder
from eyas.frontends.onnx.symbolic import expressions as ex

Size = int | str
"""A number, or the name of a vector of one element."""


def sizes_of(value: str, b: Builder) -> list[Size]:
    """All sizes of a value whose rank is known."""
    return [b.size(value, axis) for axis in range(b.rank_of(value) or 0)]


def product(sizes: Sequence[Size], b: Builder) -> Size:
    total: Size = math.prod(size for size in sizes if isinstance(size, int))
    for size in sizes:
        if isinstance(size, str):
            total = b.times(size, total) if isinstance(total, int) else b.add("Mul", total, size)
    return total


def divided(size: Size, by: int, b: Builder) -> Size:
    """A size divided by a number, rounded down."""
    return size // by if isinstance(size, int) else b.add("Div", size, b.constant([by], np.int64))


def moved(size: Size, by: int, b: Builder) -> Size:
    """A size and a number more."""
    return size + by if isinstance(size, int) else b.add("Add", size, b.constant([by], np.int64))


def over(size: Size, step: int, b: Builder) -> Size:
    """How many steps begin within a size."""
    return divided(moved(size, step - 1, b), step, b)


def scalar(size: Size, b: Builder) -> str:
    """A size as an integer without dimensions."""
    return b.constant(size, np.int64) if isinstance(size, int) else b.reshape(size, [])


def number(size: Size, b: Builder, kind: int = TensorProto.FLOAT) -> str:
    """A size as a float, which broadcasts."""
    if isinstance(size, int):
        return b.constant(size, helper.tensor_dtype_to_np_dtype(kind))
    return b.cast(size, kind)


def line(count: Size, b: Builder, step: int = 1, shape: Sequence[int] = (-1,)) -> str:
    """0, step, 2 step, ...: so many integers, in a shape."""
    if isinstance(count, int):
        return b.constant(np.arange(count, dtype=np.int64).reshape(shape) * step)
    values = b.add("Range", b.constant(0, np.int64), scalar(count, b), b.constant(1, np.int64))
    values = values if step == 1 else b.add("Mul", values, b.constant(step, np.int64))
    return values if tuple(shape) == (-1,) else b.reshape(values, list(shape))


def filled(value: int, sizes: Sequence[Size], b: Builder) -> str:
    """A tensor of one integer."""
    return b.add("Expand", b.constant(value, np.int64), b.vector(sizes))


_OPERATORS = {"add": "Add", "mul": "Mul", "min": "Min", "max": "Max"}


def computed(size: ex.Scalar, read: Callable[[str], Size | None], b: Builder) -> Size | None:
    """An expression of dimensions, with what `read` says of each; None where it has something else than sizes have."""
    names: list[str] = []
    program = ex.as_program(size, lambda name: names.append(name) or ["dim", "i64", name])
    places = {name: read(name) for name in dict.fromkeys(names)}
    if None in places.values():
        return None
    made = _computed(program, places, b)
    return None if made is None else b.reshape(made, [1])


def _computed(program: Any, places: dict[str, Size | None], b: Builder) -> str | None:
    if not isinstance(program, list):
        return b.constant([int(program)], np.int64) if isinstance(program, int) else None
    op, type_, *parts = program
    if op == "dim":
        size = places[parts[0]]
        return b.constant([size], np.int64) if isinstance(size, int) else size
    operands = [_computed(part, places, b) for part in parts]
    if type_ != "i64" or None in operands:
        return None
    left, right = [name for name in operands if name is not None][:2] if len(operands) == 2 else ("", "")
    if op in _OPERATORS:
        return b.add(_OPERATORS[op], left, right)
    if not left or op not in ("floordiv", "ceildiv", "div", "mod"):
        return None
    if op in ("div", "mod"):
        return b.add("Div" if op == "div" else "Mod", left, right)
    # Division of integers goes towards zero; what is left of rounding down is not negative.
    left = left if op == "floordiv" else b.add("Neg", left)
    down = b.add("Div", b.add("Sub", left, b.add("Mod", left, right)), right)
    return down if op == "floordiv" else b.add("Neg", down)
