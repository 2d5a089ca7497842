"""`match-scalars`: numbers beside tensors are of the tensors' kind, whole or floating-point."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from eyas.ir import Pass, mlir
from eyas.ir.walk import defining_op, find_ops

_VTENSOR = re.compile(r"!torch\.vtensor<(.*),(\w+)>")
_COMPARISONS = tuple(f"torch.aten.{name}.Scalar" for name in ("eq", "ge", "gt", "le", "lt", "ne"))
_ARITHMETIC = (
    *(f"torch.aten.{name}" for name in ("add.Scalar", "mul.Scalar", "rsub.Scalar", "sub.Scalar")),
    *("torch.aten.add.Tensor", "torch.aten.sub.Tensor"),
)
_FLOATS = ("f16", "bf16", "f32", "f64")
# As torch counts its types.
_I64, _F32 = 4, 6


@dataclass(frozen=True)
class MatchScalars(Pass):
    """Writes comparisons of tensors with numbers so that both are whole or both are not.

    Upstream folds a comparison of a constant by reading its elements as what the number is: a whole constant beside a
    fraction ends the process, and so do fractions beside a whole number, unless they are all the same: then the
    comparison comes out wrong. Truths count as -1. Upstream makes such comparisons itself of other ops, of constants
    that it folded before, so these ops are written here as what they mean. In sums and products of fractions, negative
    whole numbers are taken for very large ones.

        %1 = torch.aten.lt.Scalar %x, %int2 : !torch.vtensor<[3],f32>, !torch.int
      becomes
        %1 = torch.aten.lt.Scalar %x, %float2.0 : !torch.vtensor<[3],f32>, !torch.float

        %1 = torch.aten.trunc %x
      becomes
        %negative = torch.aten.lt.Scalar %x, %float0.0
        %1 = torch.aten.where.self %negative, torch.aten.ceil %x, torch.aten.floor %x
    """

    name: ClassVar[str] = "match-scalars"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_COMPARISONS, *_ARITHMETIC, *_SCALARS, *_MADE, *_COUNTS):
            with mlir.InsertionPoint(op), op.operation.location:
                _match(op.operation)


def _match(op: mlir.Operation) -> None:
    element = _element(op.operands[0])
    if element is None:
        return
    if op.name in _COMPARISONS:
        _match_comparison(op, element)
    elif element not in _FLOATS or _element(op.results[0]) is None:
        return
    elif op.name in _ARITHMETIC:
        for position, operand in enumerate(op.operands):
            if (_whole(operand) or 0) < 0:
                op.operands[position] = _as_float(operand)
    elif op.name in _SCALARS:
        for position in range(1, len(op.operands)):
            op.operands[position] = _as_float(op.operands[position])
    elif op.name in _COUNTS:
        op.operands[0] = _compare("ne", op.operands[0])
    else:
        op.results[0].replace_all_uses_with(_MADE[op.name](op))
        op.erase()


def _match_comparison(op: mlir.Operation, element: str) -> None:
    number = _refined(op.operands[1])
    if element in _FLOATS:
        op.operands[1] = _as_float(number)
    elif str(number.type) == "!torch.float":
        op.operands[0] = _convert(op.operands[0], "f32", _F32)
    elif element == "i1" and not (op.name in ("torch.aten.eq.Scalar", "torch.aten.ne.Scalar") and _whole(number) == 0):
        op.operands[0] = _convert(op.operands[0], "si64", _I64)


def _trunc(op: mlir.Operation) -> mlir.Value:
    return _toward_zero(op.operands[0], op.results[0].type)


def _frac(op: mlir.Operation) -> mlir.Value:
    x, type_ = op.operands[0], op.results[0].type
    return _make("torch.aten.sub.Tensor", type_, x, _toward_zero(x, type_), _constant(1))


def _fmod(op: mlir.Operation) -> mlir.Value:
    (x, by), type_ = op.operands, op.results[0].type
    times = _toward_zero(_make("torch.aten.div.Tensor", type_, x, by), type_)
    return _make("torch.aten.sub.Tensor", type_, x, _make("torch.aten.mul.Tensor", type_, times, by), _constant(1))


def _toward_zero(x: mlir.Value, type_: mlir.Type) -> mlir.Value:
    down, up = _make("torch.aten.floor", type_, x), _make("torch.aten.ceil", type_, x)
    return _make("torch.aten.where.self", type_, _compare("lt", x), up, down)


def _sign(op: mlir.Operation) -> mlir.Value:
    x, type_ = op.operands[0], op.results[0].type
    positive = _make("torch.aten.where.Scalar", type_, _compare("gt", x), _constant(1.0), _constant(0.0))
    return _make("torch.aten.where.ScalarSelf", type_, _compare("lt", x), _constant(-1.0), positive)


_MADE: dict[str, Callable[[mlir.Operation], mlir.Value]] = {
    "torch.aten.fix": _trunc,
    "torch.aten.fmod.Tensor": _fmod,
    "torch.aten.frac": _frac,
    "torch.aten.sgn": _sign,
    "torch.aten.sign": _sign,
    "torch.aten.trunc": _trunc,
}
"""Ops that upstream compares with the whole number 0, and what they are made of instead."""

_COUNTS = ("torch.aten.count_nonzero", "torch.aten.count_nonzero.dim_IntList")
"""Such ops that take truths as well."""

_SCALARS = ("torch.aten.softplus", "torch.aten.threshold")
"""Ops whose operands after the first are numbers that upstream compares with it."""


def _compare(name: str, x: mlir.Value) -> mlir.Value:
    """With zero."""
    return _make(f"torch.aten.{name}.Scalar", _with_element(x, "i1"), x, _constant(0.0))


def _convert(x: mlir.Value, element: str, code: int) -> mlir.Value:
    return _make("torch.prims.convert_element_type", _with_element(x, element), x, _constant(code))


def _as_float(number: mlir.Value) -> mlir.Value:
    number = _refined(number)
    if str(number.type) != "!torch.int":
        return number
    value = _whole(number)
    if value is not None:
        return _constant(float(value))
    return _make("torch.aten.Float.Scalar", mlir.Type.parse("!torch.float"), number)


def _refined(number: mlir.Value) -> mlir.Value:
    """A number as what it was before its kind was forgotten."""
    op = defining_op(number)
    return op.operands[0] if op is not None and op.name == "torch.derefine" else number


def _whole(number: mlir.Value) -> int | None:
    op = defining_op(number)
    return mlir.IntegerAttr(op.attributes["value"]).value if op and op.name == "torch.constant.int" else None


def _constant(value: float | int) -> mlir.Value:
    whole = isinstance(value, int)
    attribute = (
        mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), value)
        if whole
        else mlir.FloatAttr.get(mlir.F64Type.get(), value)
    )
    kind = "int" if whole else "float"
    type_ = mlir.Type.parse(f"!torch.{kind}")
    return mlir.Operation.create(f"torch.constant.{kind}", results=[type_], attributes={"value": attribute}).result


def _make(name: str, type_: mlir.Type, *operands: mlir.Value) -> mlir.Value:
    return mlir.Operation.create(name, results=[type_], operands=list(operands)).result


def _element(value: mlir.Value) -> str | None:
    """The element type of a tensor; None when it is not known."""
    match = _VTENSOR.fullmatch(str(value.type))
    return match.group(2) if match else None


def _with_element(value: mlir.Value, element: str) -> mlir.Type:
    match = _VTENSOR.fullmatch(str(value.type))
    assert match is not None, value
    return mlir.Type.parse(f"!torch.vtensor<{match.group(1)},{element}>")
