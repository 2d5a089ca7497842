"""Integer arithmetic of the IR, carried out in Python: what a loop counts, without running it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from torch_mlir import ir as mlir

_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}
_COMPARISONS: list[Callable[[int, int], bool]] = [
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]
_RESIZES = ("arith.index_cast", "arith.extsi", "arith.trunci")
Values = MutableMapping[mlir.Value, int]


def evaluate(op: mlir.Operation, values: Values) -> bool:
    """Adds the op's result to `values`, signed; False when it is not such arithmetic or an operand is not known."""
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        if not isinstance(attribute, mlir.IntegerAttr | mlir.BoolAttr):
            return False
        values[op.results[0]] = _wrap(int(attribute.value), op.results[0].type)
        return True
    if not op.results or not all(operand in values for operand in op.operands):
        return False
    given = [values[operand] for operand in op.operands]
    if op.name in _OPERATIONS:
        made = _OPERATIONS[op.name](*given)
    elif op.name == "arith.cmpi" and op.attributes["predicate"].value < len(_COMPARISONS):
        made = int(_COMPARISONS[op.attributes["predicate"].value](*given))
    elif op.name == "arith.select":
        made = given[1] if given[0] else given[2]
    elif op.name in _RESIZES:
        made = given[0]
    elif op.name == "arith.extui" and isinstance(op.operands[0].type, mlir.IntegerType):
        made = given[0] % (1 << op.operands[0].type.width)
    else:
        return False
    values[op.results[0]] = _wrap(made, op.results[0].type)
    return True


def _wrap(value: int, type_: mlir.Type) -> int:
    """As a signed number of the type's width; truth values are 0 and 1."""
    width = type_.width if isinstance(type_, mlir.IntegerType) else 64
    value %= 1 << width
    return value - (1 << width) if width > 1 and value >> (width - 1) else value
