"""`fold-index-ranges`: size arithmetic that the signature's bounds decide disappears."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.ir import Pass
from eyas.ir.walk import constant_int, entry_block, functions
from eyas.passes.dispatch.shapes import SIGNATURE

_Range = tuple[int, int]
_UNBOUNDED = (1 << 63) - 1
# arith.cmpi predicates eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge; unsigned ones hold for ranges that are not
# negative.
_LESS = {2: (0, 1, False), 3: (0, 1, True), 4: (1, 0, False), 5: (1, 0, True)}


@dataclass(frozen=True)
class FoldIndexRanges(Pass):
    """Propagates the range of each dimension (not negative, and inside its symbol's bounds) through index arithmetic.

    Frameworks write slices of dynamic tensors with clamps that only matter for sizes which cannot occur; folding them
    makes equal sizes visibly equal.

        %1 = arith.cmpi slt, %dim, %c0       // false
        %2 = arith.select %1, %x, %dim       // %dim
        %3 = arith.minsi %2, %c512           // %dim, when the symbol is at most 512
    """

    name: ClassVar[str] = "fold-index-ranges"

    def run(self, module: mlir.Module) -> None:
        for function in functions(module):
            bounds, dims = {}, []
            if SIGNATURE in function.attributes:
                signature = ast.literal_eval(function.attributes[SIGNATURE].value)
                bounds = signature["symbols"]
                dims = [argument[2] for argument in signature["arguments"]]
            ranges: dict[mlir.Value, _Range] = {}
            for op in list(entry_block(function).operations):
                _visit(op.operation, ranges, bounds, dims)


def _visit(op: mlir.Operation, ranges: dict[mlir.Value, _Range], bounds: dict, dims: list) -> None:
    if op.name == "tensor.dim":
        ranges[op.results[0]] = _dim_range(op, bounds, dims)
        return
    if not op.name.startswith("arith.") or len(op.results) != 1:
        return
    if op.name == "arith.constant":
        value = constant_int(op.results[0])
        if value is not None:
            ranges[op.results[0]] = (value, value)
        return
    known = [ranges.get(operand) for operand in op.operands]
    replacement = _fold(op, known)
    if replacement is not None:
        op.results[0].replace_all_uses_with(replacement)
        if replacement in ranges:
            ranges[op.results[0]] = ranges[replacement]
        elif (value := constant_int(replacement)) is not None:
            ranges[replacement] = (value, value)
        return
    inferred = _infer(op.name, known)
    if inferred is not None:
        ranges[op.results[0]] = inferred


def _dim_range(op: mlir.Operation, bounds: dict, dims: list) -> _Range:
    source, dim = op.operands[0], constant_int(op.operands[1])
    if isinstance(source.owner, mlir.Block) and dim is not None:
        number = mlir.BlockArgument(source).arg_number
        symbol = dims[number][dim] if number < len(dims) and dim < len(dims[number]) else None
        if symbol in bounds:
            low, high = bounds[symbol]
            return (low, high if high is not None else _UNBOUNDED)
    return (0, _UNBOUNDED)


def _fold(op: mlir.Operation, known: list[_Range | None]) -> mlir.Value | None:
    """The operand or constant that the op must be equal to."""
    if op.name == "arith.select" and (condition := constant_int(op.operands[0])) is not None:
        return op.operands[1] if condition else op.operands[2]
    ranges = [one for one in known if one is not None]
    if len(ranges) != 2 or len(known) != 2:
        return None
    if op.name == "arith.cmpi":
        outcome = _compare(op.attributes["predicate"].value, ranges)
        if outcome is not None:
            with mlir.InsertionPoint(op), op.location:
                return arith.ConstantOp(mlir.IntegerType.get_signless(1), mlir.BoolAttr.get(outcome)).result
    if op.name in ("arith.minsi", "arith.maxsi"):
        (low_a, high_a), (low_b, high_b) = ranges
        smaller = 0 if high_a <= low_b else 1 if high_b <= low_a else None
        if smaller is not None:
            return op.operands[smaller if op.name == "arith.minsi" else 1 - smaller]
    return None


def _compare(predicate: int, ranges: list[_Range]) -> bool | None:
    if predicate not in _LESS:
        return None
    left, right, or_equal = _LESS[predicate]
    (low_a, high_a), (low_b, high_b) = ranges[left], ranges[right]
    if high_a < low_b or (or_equal and high_a <= low_b):
        return True
    if low_a > high_b or (not or_equal and low_a >= high_b):
        return False
    return None


def _infer(name: str, known: list[_Range | None]) -> _Range | None:
    ranges = [one for one in known if one is not None]
    if name == "arith.select":  # its condition has no range
        if len(ranges) < 2 or known[1] is None or known[2] is None:
            return None
        return (min(known[1][0], known[2][0]), max(known[1][1], known[2][1]))
    if len(ranges) != len(known):
        return None
    if name in ("arith.index_cast", "arith.extsi", "arith.extui"):
        return ranges[0]
    if len(ranges) != 2:
        return None
    (low_a, high_a), (low_b, high_b) = ranges
    if name == "arith.addi":
        return (low_a + low_b, min(high_a + high_b, _UNBOUNDED))
    if name == "arith.muli" and low_a >= 0 and low_b >= 0:
        return (low_a * low_b, min(high_a * high_b, _UNBOUNDED))
    if name == "arith.minsi":
        return (min(low_a, low_b), min(high_a, high_b))
    if name == "arith.maxsi":
        return (max(low_a, low_b), max(high_a, high_b))
    return None
