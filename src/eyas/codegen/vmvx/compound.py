"""Constants, and values of several parts: complex numbers and descriptors of memrefs, tuples in `Translator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torch_mlir import ir as mlir

from eyas.codegen.vmvx.arithmetic import bits_of, float_bits, integer_bits
from eyas.errors import InternalError
from eyas.module.vmvx_assembler import Scalar

if TYPE_CHECKING:
    from eyas.codegen.vmvx.translate import Translator


def _constant(t: Translator, op: mlir.Operation) -> None:
    t.values[op.results[0]] = _number(t, op.attributes["value"], op.results[0].type)


def _number(t: Translator, attribute: mlir.Attribute, type_: mlir.Type) -> Scalar:
    if isinstance(attribute, mlir.FloatAttr):
        return t.asm.const(float_bits(attribute.value, type_))
    if not isinstance(attribute, mlir.IntegerAttr | mlir.BoolAttr):
        raise InternalError(f"a constant of type {type_} has no bytecode: {attribute}")
    return t.asm.const(integer_bits(int(attribute.value), bits_of(type_)))


def _complex_constant(t: Translator, op: mlir.Operation) -> None:
    type_ = mlir.ComplexType(op.results[0].type).element_type
    t.values[op.results[0]] = tuple(_number(t, part, type_) for part in mlir.ArrayAttr(op.attributes["value"]))


def _unset(t: Translator, op: mlir.Operation) -> None:
    t.values[op.results[0]] = None


def _create(t: Translator, op: mlir.Operation) -> None:
    t.values[op.results[0]] = tuple(t.get(operand) for operand in op.operands)


def _part(t: Translator, op: mlir.Operation) -> None:
    whole = t.get(op.operands[0])
    t.values[op.results[0]] = None if whole is None else whole[op.name == "complex.im"]


def _extract(t: Translator, op: mlir.Operation) -> None:
    value = t.get(op.operands[0])
    for position in mlir.DenseI64ArrayAttr(op.attributes["position"]):
        value = value[position] if isinstance(value, tuple) and position < len(value) else None
    t.values[op.results[0]] = value


def _insert(t: Translator, op: mlir.Operation) -> None:
    path = list(mlir.DenseI64ArrayAttr(op.attributes["position"]))
    t.values[op.results[0]] = _with(t.get(op.operands[0]), path, t.get(op.operands[1]))


def _select(t: Translator, op: mlir.Operation) -> None:
    condition = t.scalar(op.operands[0])
    a, b = (t.get(operand) for operand in list(op.operands)[1:])

    def select(one: Any, other: Any) -> Any:
        if isinstance(one, tuple) or isinstance(other, tuple):
            parts = len(one) if isinstance(one, tuple) else len(other)
            pairs = zip(one or (None,) * parts, other or (None,) * parts, strict=True)
            return tuple(select(left, right) for left, right in pairs)
        return t.asm.select(None, condition, t.flat(one)[0], t.flat(other)[0])

    t.values[op.results[0]] = select(a, b)


def _with(value: Any, path: Sequence[int], part: Any) -> Any:
    """A value with one part replaced."""
    if not path:
        return part
    parts = list(value) if isinstance(value, tuple) else []
    parts += [None] * (path[0] + 1 - len(parts))
    parts[path[0]] = _with(parts[path[0]], path[1:], part)
    return tuple(parts)


HANDLERS: dict[str, Callable[[Translator, mlir.Operation], None]] = {
    "arith.constant": _constant,
    "llvm.mlir.constant": _constant,
    "complex.constant": _complex_constant,
    "llvm.mlir.poison": _unset,
    "llvm.mlir.undef": _unset,
    "llvm.mlir.zero": _unset,
    "ub.poison": _unset,
    "complex.create": _create,
    "complex.re": _part,
    "complex.im": _part,
    "llvm.extractvalue": _extract,
    "llvm.insertvalue": _insert,
    "arith.select": _select,
    "llvm.select": _select,
}
