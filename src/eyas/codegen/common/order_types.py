"""Whether a body of comparisons and choices joins shares of a reduction: tried on all values that it can tell apart.

Such a body knows of numbers only how they compare. What it makes of two or three states therefore depends on their
order alone, and a few values of each type stand for all: some that are equal, smaller, greater, extreme, not a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

Array = np.ndarray
_MOST_OUTPUTS = 2  # all states in threes must be few enough to try


def joins_its_shares(
    olds: Sequence[mlir.Value],
    news: Sequence[mlir.Value],
    steps: Sequence[mlir.Operation],
    yielded: Sequence[mlir.Value],
    inits: Sequence[object],
) -> bool:
    """Whether it does not matter where a sequence is cut, and each share may begin with the initial values."""
    if len(olds) > _MOST_OUTPUTS or any(op.name not in _OPS for op in steps):
        return False
    starts = [_constant(init) for init in inits]
    domains = [_values(old.type, start) for old, start in zip(olds, starts, strict=True)]
    states = [grid.ravel() for grid in np.meshgrid(*domains, indexing="ij")]
    initial = [
        column if start is None else np.full(1, start, column.dtype)
        for column, start in zip(states, starts, strict=True)
    ]

    def join(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        return _run(steps, yielded, dict(zip((*olds, *news), (*left, *right), strict=True)))

    a, b, c = ([column.reshape(shape) for column in states] for shape in ((-1, 1, 1), (1, -1, 1), (1, 1, -1)))
    begin = [column.reshape(-1, 1, 1) for column in initial]
    begun = join(begin, b)
    return (
        _same(join(join(a, b), c), join(a, join(b, c)))
        and _same(join(begun, begin), begun)
        and _same(join(begin, begin), begin)
    )


def _same(left: Sequence[Array], right: Sequence[Array]) -> bool:
    def equal(one: Array, other: Array) -> bool:
        one, other = np.broadcast_arrays(one, other)
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")

    return all(equal(one, other) for one, other in zip(left, right, strict=True))


def _values(type_: mlir.Type, start: float | int | None) -> Array:
    if isinstance(type_, mlir.FloatType):
        found, kind = [float("nan"), float("-inf"), -1.0, 2.0, float("inf")], np.float64
    elif type_.width == 1:
        return np.array([False, True])
    else:
        most = (1 << (type_.width - 1)) - 1
        found, kind = [-most - 1, -1, 0, 3, most], np.int64
    return np.array([*found, *([start] if start is not None and start not in found else [])], kind)


def _constant(init: object) -> float | int | None:
    """The value of an initial value, where it is known."""
    owner = init.owner if isinstance(init, mlir.Value) else None
    if owner is None or isinstance(owner, mlir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, mlir.FloatAttr | mlir.IntegerAttr | mlir.BoolAttr):
        return attribute.value
    return None


def _run(
    steps: Sequence[mlir.Operation], yielded: Sequence[mlir.Value], values: dict[mlir.Value, Array]
) -> list[Array]:
    def get(value: mlir.Value) -> Array:
        if value not in values:
            known = _constant(value)
            assert known is not None, "the ops of a body read what it makes, and constants"
            values[value] = np.asarray(known)
        return values[value]

    for op in steps:
        values[op.results[0]] = _OPS[op.name](op, *(get(one) for one in op.operands))
    return [get(one) for one in yielded]


def _unsigned(value: Array) -> Array:
    return value.astype(np.int64).view(np.uint64)


def _compare_floats(op: mlir.Operation, a: Array, b: Array) -> Array:
    """Predicates are numbered as the dialect does: ordered ones from 1 on, then unordered ones."""
    number = mlir.IntegerAttr(op.attributes["predicate"]).value
    unordered = np.isnan(a) | np.isnan(b)
    ordered = {1: a == b, 2: a > b, 3: a >= b, 4: a < b, 5: a <= b, 6: a != b, 7: np.full(unordered.shape, True)}
    if number in (0, 15):
        return np.full(unordered.shape, number == 15)
    if number <= 7:
        return ordered[number] & ~unordered
    return unordered if number == 14 else ordered[number - 7] | unordered


def _compare_integers(op: mlir.Operation, a: Array, b: Array) -> Array:
    number = mlir.IntegerAttr(op.attributes["predicate"]).value
    if number >= int(arith.CmpIPredicate.ult):
        a, b, number = _unsigned(a), _unsigned(b), number - 4
    return (a == b, a != b, a < b, a <= b, a > b, a >= b)[number]


def _plain(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda op, *operands: function(*operands)


_OPS: Mapping[str, Callable[..., Array]] = {
    "arith.constant": lambda op: np.asarray(_constant(op.results[0])),
    "arith.cmpf": _compare_floats,
    "arith.cmpi": _compare_integers,
    "arith.select": _plain(np.where),
    "arith.andi": _plain(np.bitwise_and),
    "arith.ori": _plain(np.bitwise_or),
    "arith.xori": _plain(np.bitwise_xor),
    "arith.maximumf": _plain(np.maximum),
    "arith.minimumf": _plain(np.minimum),
    "arith.maxnumf": _plain(np.fmax),
    "arith.minnumf": _plain(np.fmin),
    "arith.maxsi": _plain(np.maximum),
    "arith.minsi": _plain(np.minimum),
    "arith.maxui": lambda op, a, b: np.where(_unsigned(a) > _unsigned(b), a, b),
    "arith.minui": lambda op, a, b: np.where(_unsigned(a) < _unsigned(b), a, b),
}
