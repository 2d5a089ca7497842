"""`convert-sizes`: integers that a frontend computes from dimensions become scalar arithmetic."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from torch_mlir.dialects import arith, math, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import defining_op, find_ops
from eyas.passes.input.torch_values import builtin_type, find_operators, replace_by_tensor, to_tensor

TENSOR = "eyas.sizes"
SCALAR = "eyas.size"

# The importer sees through lists of this length, and makes scalars of their elements.
_PROGRAM = "torch.onnx.program"


def write_scalars(module: mlir.Module) -> None:
    """Before the importer: each element of `eyas.sizes` is a scalar of its own, in a tensor that the importer sees
    through, so that shapes made of them are scalars again."""
    for op in find_operators(module, TENSOR):
        with mlir.InsertionPoint(op), op.location:
            program = json.loads(mlir.StringAttr(op.attributes[_PROGRAM]).value)
            elements = [_element(op, one) for one in program]
            result = op.results[0]
            type_ = builtin_type(result.type)
            assert type_ is not None, op
            if type_.rank == 0:
                made = _torch("torch.prim.NumToTensor.Scalar", result.type, elements)
            else:
                listed = _torch("torch.prim.ListConstruct", mlir.Type.parse("!torch.list<int>"), elements)
                none = _torch("torch.constant.none", mlir.Type.parse("!torch.none"), [])
                false = _torch(
                    "torch.constant.bool",
                    mlir.Type.parse("!torch.bool"),
                    [],
                    value=mlir.IntegerAttr.get(mlir.IntegerType.get_signless(1), 0),
                )
                kind = {32: 3, 64: 4}[mlir.IntegerType(type_.element_type).width]
                made = _torch("torch.aten.tensor", result.type, [listed, _integer(kind), none, false])
            result.replace_all_uses_with(made)
            op.erase()


def _element(op: mlir.Operation, program: Any) -> mlir.Value:
    if isinstance(program, int):
        return _integer(program)
    attributes = {"name": mlir.StringAttr.get(SCALAR), _PROGRAM: mlir.StringAttr.get(json.dumps(program))}
    return _torch("torch.operator", mlir.Type.parse("!torch.int"), list(op.operands), **attributes)


def _integer(value: int) -> mlir.Value:
    type_ = mlir.IntegerType.get_signless(64)
    return _torch("torch.constant.int", mlir.Type.parse("!torch.int"), [], value=mlir.IntegerAttr.get(type_, value))


def _torch(op: str, type_: mlir.Type, operands: list[mlir.Value], **attributes: mlir.Attribute) -> mlir.Value:
    made = mlir.Operation.create(op, results=[type_], operands=operands, attributes=attributes)
    return made.results[0]


@dataclass(frozen=True)
class ConvertSizes(Pass):
    """Replaces `eyas.size`, whose attribute is an expression of dimensions of its operands, by arith, and the tensors
    of such scalars that the importer did not see through by `tensor.from_elements`.

        %1 = torch.operator "eyas.size"(%0) {torch.onnx.program = "['floordiv', 'i64', ['dim', 'i64', 0, 2], 2]"}
      becomes
        %b = torch_c.to_builtin_tensor %0
        %d = tensor.dim %b, %c2
        %i = arith.index_cast %d : index to i64
        %q = arith.floordivsi %i, %c2_i64
        %1 = torch_c.from_i64 %q
    """

    name: ClassVar[str] = "convert-sizes"

    def run(self, module: mlir.Module) -> None:
        for op in find_operators(module, SCALAR):
            with mlir.InsertionPoint(op), op.location:
                if any(True for _ in op.results[0].uses):
                    program = json.loads(mlir.StringAttr(op.attributes[_PROGRAM]).value)
                    value = _Scalars(op).make(program)
                    op.results[0].replace_all_uses_with(_torch("torch_c.from_i64", op.results[0].type, [value]))
            op.erase()
        for view in find_ops(module, "torch.aten.tensor"):
            listed = defining_op(view.operation.operands[0])
            if listed is not None and listed.name == "torch.prim.ListConstruct":
                with mlir.InsertionPoint(view), view.operation.location:
                    _gather(view.operation, list(listed.operands))


def _gather(op: mlir.Operation, elements: list[mlir.Value]) -> None:
    type_ = builtin_type(op.results[0].type)
    if type_ is None or type_.rank != 1 or not isinstance(type_.element_type, mlir.IntegerType):
        return
    i64 = mlir.IntegerType.get_signless(64)
    values = [_torch("torch_c.to_i64", i64, [element]) for element in elements]
    if type_.element_type != i64:
        values = [arith.trunci(type_.element_type, value) for value in values]
    made = tensor.FromElementsOp(mlir.RankedTensorType.get([len(values)], type_.element_type), values).result
    replace_by_tensor(op, made)


class _Scalars:
    """Builds an expression: [operation, type of the result, operands...]."""

    def __init__(self, op: mlir.Operation):
        self.op = op
        self.made: dict[str, mlir.Value] = {}

    def make(self, program: Any, like: str = "i64") -> mlir.Value:
        key = json.dumps([program, like])
        if key not in self.made:
            self.made[key] = self._make(program, like)
        return self.made[key]

    def _make(self, program: Any, like: str) -> mlir.Value:
        if not isinstance(program, list):
            type_ = _type(like)
            if isinstance(type_, mlir.IntegerType):
                return arith.ConstantOp(type_, mlir.IntegerAttr.get(type_, int(program))).result
            return arith.ConstantOp(type_, mlir.FloatAttr.get(type_, float(program))).result
        name, type_, *args = program
        if name == "dim":
            size = tensor.dim(to_tensor(self.op.operands[args[0]]), index_constant(args[1]))
            return arith.index_cast(mlir.IntegerType.get_signless(64), size)
        if name == "select":
            return arith.select(self.make(args[0], "bool"), self.make(args[1], type_), self.make(args[2], type_))
        if name in _PREDICATES:
            return self._compare(name, args)
        if name in ("int", "float"):
            return self._convert(name, type_, args[0])
        operands = [self.make(arg, type_) for arg in args]
        table = _INTEGER if type_ in ("i64", "bool") else _FLOAT
        return table[name](*operands)

    def _compare(self, name: str, args: list[Any]) -> mlir.Value:
        kinds = [arg[1] for arg in args if isinstance(arg, list)]
        kind = next((one for one in kinds if one.startswith("f")), kinds[0])
        left, right = (self.make(arg, kind) for arg in args)
        integer, real = _PREDICATES[name]
        return arith.cmpf(real, left, right) if kind.startswith("f") else arith.cmpi(integer, left, right)

    def _convert(self, name: str, type_: str, program: Any) -> mlir.Value:
        source = program[1] if isinstance(program, list) else "f64" if isinstance(program, float) else "i64"
        value = self.make(program, source)
        if name == "int":
            return value if source == "i64" else arith.fptosi(_type("i64"), value)
        if source == type_:
            return value
        if source == "bool":
            return arith.uitofp(_type(type_), value)
        if source == "i64":
            return arith.sitofp(_type(type_), value)
        return arith.extf(_type(type_), value) if type_ == "f64" else arith.truncf(_type(type_), value)


def _type(name: str) -> mlir.Type:
    return {
        "bool": lambda: mlir.IntegerType.get_signless(1),
        "i64": lambda: mlir.IntegerType.get_signless(64),
        "f32": mlir.F32Type.get,
        "f64": mlir.F64Type.get,
    }[name]()


def _modulo(a: mlir.Value, b: mlir.Value) -> mlir.Value:
    return arith.subi(a, arith.muli(arith.floordivsi(a, b), b))


_P, _F = arith.CmpIPredicate, arith.CmpFPredicate
_PREDICATES = {
    "eq": (_P.eq, _F.OEQ),
    "ne": (_P.ne, _F.UNE),
    "lt": (_P.slt, _F.OLT),
    "le": (_P.sle, _F.OLE),
    "gt": (_P.sgt, _F.OGT),
    "ge": (_P.sge, _F.OGE),
}
_INTEGER = {
    "add": arith.addi,
    "sub": arith.subi,
    "mul": arith.muli,
    "div": arith.divsi,
    "floordiv": arith.floordivsi,
    "ceildiv": arith.ceildivsi,
    "mod": _modulo,
    "min": arith.minsi,
    "max": arith.maxsi,
    "and": arith.andi,
    "or": arith.ori,
}
_FLOAT = {
    "add": arith.addf,
    "sub": arith.subf,
    "mul": arith.mulf,
    "div": arith.divf,
    "min": arith.minimumf,
    "max": arith.maximumf,
    "neg": arith.negf,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": math.roundeven,
    "sqrt": math.sqrt,
    "abs": math.absf,
}
