"""`convert-type-operators`: operators of ours that change how elements are held become linalg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, linalg

from eyas.ir import Pass, mlir, small_types
from eyas.ir.structured import elementwise, empty_like
from eyas.ir.walk import defining_op
from eyas.passes.input.torch_values import (
    builtin_type,
    find_operators,
    operator_name,
    replace_by_tensor,
    to_tensor,
)

OPERATORS = ("eyas.encode", "eyas.decode", "eyas.bitcast", "eyas.convert", "eyas.widen", "eyas.narrow")
# As the torch importer spells it, with the element type as a second operand.
TORCH_BITCAST = "torch.eyas.bitcast"


@dataclass(frozen=True)
class ConvertTypeOperators(Pass):
    """Replaces `eyas.encode`, `eyas.decode`, `eyas.bitcast`, `eyas.convert`, `eyas.widen` and `eyas.narrow`, which
    the frontends write for types that the importer does not know or gets wrong: it sees bytes and lets these operators
    through.

        %1 = torch.operator "eyas.decode"(%0) {torch.onnx.dtype = "i4"} : (!torch.vtensor<[3],si8>)
            -> !torch.vtensor<[3],si8>
      becomes
        %b = torch_c.to_builtin_tensor %0
        %r = linalg.generic ... { %h = arith.shli %in, %c4; %v = arith.shrsi %h, %c4; linalg.yield %v }
        %1 = torch_c.from_builtin_tensor %r
    """

    name: ClassVar[str] = "convert-type-operators"

    def run(self, module: mlir.Module) -> None:
        for op in find_operators(module, *OPERATORS, TORCH_BITCAST):
            with mlir.InsertionPoint(op), op.location:
                _convert(op)


def _convert(op: mlir.Operation) -> None:
    result = builtin_type(op.results[0].type)
    assert result is not None, op
    wanted = result.element_type
    source = to_tensor(op.operands[0])
    given = defining_op(op.operands[0])
    of_literal = given is not None and given.name == "torch.vtensor.literal"
    if operator_name(op) == "eyas.convert" and source.type == result and of_literal:
        # Only the sign differs, which tensors have not: upstream would make the literal one of the other sign.
        made = linalg.copy(source, outs=[empty_like(source, result.shape, range(result.rank))])
    else:
        made = elementwise(source, wanted, lambda value: _scalar(op, value, wanted))
    replace_by_tensor(op, made)


def _scalar(op: mlir.Operation, value: mlir.Value, wanted: mlir.Type) -> mlir.Value:
    name = operator_name(op)
    if name in ("eyas.bitcast", TORCH_BITCAST):
        return _bitcast(value, wanted)
    if name == "eyas.narrow":
        return arith.trunci(wanted, value)
    if name == "eyas.convert":
        return _number(value, wanted, _flag(op, "unsigned"), _flag(op, "to_unsigned"))
    if name == "eyas.widen":
        unsigned = _flag(op, "unsigned")
        return arith.extui(wanted, value) if unsigned else arith.extsi(wanted, value)
    dtype = mlir.StringAttr(op.attributes["torch.onnx.dtype"]).value
    if name == "eyas.decode":
        return small_types.decode(dtype, value)
    saturate = _flag(op, "saturate")
    return small_types.encode(dtype, value, saturate, mlir.StringAttr(op.attributes["torch.onnx.round_mode"]).value)


def _flag(op: mlir.Operation, name: str) -> bool:
    return bool(mlir.IntegerAttr(op.attributes[f"torch.onnx.{name}"]).value)


def _number(value: mlir.Value, wanted: mlir.Type, unsigned: bool, to_unsigned: bool) -> mlir.Value:
    """The same number in another type: what does not fit an integer wraps around, or is undefined if it is a float."""
    if value.type == wanted:
        return value
    if not isinstance(value.type, mlir.IntegerType):
        f32 = mlir.F32Type.get()
        if value.type.width < f32.width:
            value = arith.extf(f32, value)
        if isinstance(wanted, mlir.IntegerType):
            return arith.fptoui(wanted, value) if to_unsigned else arith.fptosi(wanted, value)
        if value.type == wanted:
            return value
        return arith.extf(wanted, value) if wanted.width > value.type.width else arith.truncf(wanted, value)
    if isinstance(wanted, mlir.IntegerType):
        if wanted.width == 1:
            return arith.cmpi(arith.CmpIPredicate.ne, value, arith.constant(value.type, 0))
        if wanted.width < value.type.width:
            return arith.trunci(wanted, value)
        return arith.extui(wanted, value) if unsigned else arith.extsi(wanted, value)
    made = wanted if wanted.width >= 32 else mlir.F32Type.get()
    value = arith.uitofp(made, value) if unsigned else arith.sitofp(made, value)
    return value if made == wanted else arith.truncf(wanted, value)


def _bitcast(value: mlir.Value, wanted: mlir.Type) -> mlir.Value:
    i1, i8 = mlir.IntegerType.get_signless(1), mlir.IntegerType.get_signless(8)
    if value.type == wanted:
        return value
    # A bool is a byte in memory.
    if value.type == i1:
        value = arith.extui(i8, value)
    if wanted == i1:
        return arith.cmpi(arith.CmpIPredicate.ne, arith.bitcast(i8, value), arith.constant(i8, 0))
    return value if value.type == wanted else arith.bitcast(wanted, value)
