"""What values are in a softmax, told from the bodies of the ops that make them, one op at a time.

    score -> maximum of a row -> score - maximum -> exp -> sum of a row -> exp / sum

Only of exactly this may rows be taken in pieces: where the maximum of a row grows, what was summed up is scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.combine import combiner_of
from eyas.ir.structured import constant_scalar
from eyas.ir.walk import defining_op


class Kind(Enum):
    """What a value is in a softmax."""

    SCORE = auto()
    MAXIMUM = auto()
    GUARDED = auto()
    """The maximum, or 0 where all scores of a row are -inf."""
    IS_LOWEST = auto()
    """Whether the maximum is -inf."""
    SHIFTED = auto()
    WEIGHT = auto()
    SUM = auto()
    """Of a row's weights, or what is made of it alone."""
    SHARE = auto()
    """A weight divided by the sum."""
    ZERO = auto()
    LOWEST = auto()
    CONSTANT = auto()


class NotSoftmax(Exception):
    """Ops are not those of a softmax; the text says why."""


_MADE: dict[tuple[str, tuple[Kind, ...]], Kind] = {
    ("arith.subf", (Kind.SCORE, Kind.MAXIMUM)): Kind.SHIFTED,
    ("arith.subf", (Kind.SCORE, Kind.GUARDED)): Kind.SHIFTED,
    ("math.exp", (Kind.SHIFTED,)): Kind.WEIGHT,
    ("arith.divf", (Kind.WEIGHT, Kind.SUM)): Kind.SHARE,
    ("arith.select", (Kind.IS_LOWEST, Kind.ZERO, Kind.MAXIMUM)): Kind.GUARDED,
    **{(f"arith.{cast}", (kind,)): kind for cast in ("extf", "truncf") for kind in (Kind.WEIGHT, Kind.SHARE)},
}
"""What ops of a softmax make of what; comparisons, and what is made of sums, are told apart in the code."""
_FOLDED = {
    (Kind.SCORE, "arith.maximumf", float("-inf")): Kind.MAXIMUM,
    (Kind.WEIGHT, "arith.addf", 0.0): Kind.SUM,
}
_CONSTANTS = {Kind.ZERO, Kind.LOWEST, Kind.CONSTANT}


def folded_kind(body: mlir.Block, source: Kind | None, start: mlir.Value | None) -> Kind:
    """What rows of a kind are folded to by a body with one input, from a number on."""
    combiner = combiner_of(body, 1) if len(body.arguments) == 2 and len(body.operations) == 2 else None
    begins = constant_scalar(start) if start is not None else None
    if combiner is None or source is None or begins is None:
        raise NotSoftmax("rows are folded other than for a softmax")
    found = _FOLDED.get((source, combiner.op_name, float(begins)))
    if found is None:
        raise NotSoftmax(f"rows are folded by {combiner.op_name}, which is not what a softmax does there")
    return found


def made_kind(body: mlir.Block, sources: Sequence[Kind | None]) -> Kind:
    """What an elementwise body makes of inputs of some kinds; None is an input that it does not read."""
    known = dict(zip(body.arguments, sources, strict=False))
    get: Callable[[mlir.Value], Kind] = lambda value: known.get(value) or constant_kind(value)  # noqa: E731
    for view in body.operations:
        op = view.operation
        if op.name == "arith.constant":
            continue
        operands = tuple(map(get, op.operands))
        if op.name == "linalg.yield":
            return operands[0]
        known[op.results[0]] = _made(op, operands)
    raise AssertionError("a linalg body ends with linalg.yield")


def constant_kind(value: mlir.Value) -> Kind:
    """What a constant is in a softmax."""
    number = _number(value)
    if number is None:
        raise NotSoftmax("a softmax of something else than scores and constants")
    return Kind.ZERO if number == 0 else Kind.LOWEST if number == float("-inf") else Kind.CONSTANT


def _number(value: mlir.Value) -> float | int | None:
    """The number of a constant, or of a tensor that has it everywhere."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, mlir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return attribute.value if isinstance(attribute, mlir.FloatAttr | mlir.IntegerAttr) else None


def _made(op: mlir.Operation, operands: tuple[Kind, ...]) -> Kind:
    if (op.name, operands) in _MADE:
        return _MADE[op.name, operands]
    is_equal = op.name == "arith.cmpf" and op.attributes["predicate"].value == arith.CmpFPredicate.OEQ
    if is_equal and operands == (Kind.MAXIMUM, Kind.LOWEST):
        return Kind.IS_LOWEST
    if Kind.SUM in operands and set(operands) <= {Kind.SUM, *_CONSTANTS}:
        return Kind.SUM
    raise NotSoftmax(f"{op.name} of {', '.join(kind.name.lower() for kind in operands)} is not what a softmax does")
