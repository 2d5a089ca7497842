"""`hold-small-types`: float8, float4, and integers of 2 and 4 bits are held as bytes, computed with in wider types."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch_mlir.dialects import arith, linalg

from eyas.dialects import flow
from eyas.errors import UnsupportedOpError
from eyas.ir import Pass, mlir, small_types
from eyas.ir.locations import describe_location
from eyas.ir.structured import elementwise
from eyas.ir.walk import find_ops
from eyas.program.dtypes import SMALL_IN_IR, numpy_dtype
from eyas.program.literals import by_value, resource_name

# linalg ops that only move elements, or whose bodies say what they compute.
_PLAIN_LINALG = frozenset({"generic", "fill", "transpose", "broadcast", "copy", "yield", "index", "map", "reduce"})


@dataclass(frozen=True)
class HoldSmallTypes(Pass):
    """Gives every value of such a type the element type i8, the bits in its low end. Arithmetic on it decodes its
    operands, computes in f32 (integers: in i8), and encodes its result, rounding to nearest even.

        ^bb0(%in: f32, %out: f8E5M2):                       ^bb0(%in: f32, %out: i8):
          %1 = arith.truncf %in : f32 to f8E5M2       =>      ... integer arithmetic on the bits of %in ...
          linalg.yield %1 : f8E5M2                            linalg.yield %9 : i8
    """

    name: ClassVar[str] = "hold-small-types"
    saturate: str = ""
    """A type to which what is too large is rounded down; for the others it becomes infinity or NaN."""

    def run(self, module: mlir.Module) -> None:
        found = [_Uses.of(op) for op in _operations(module.operation)]
        found = [uses for uses in found if uses is not None]
        if not found and not any(_small(argument.type) for argument in _arguments(module)):
            return
        for argument in _arguments(module):
            _retype(argument)
        for uses in found:
            for result in uses.op.results:
                _retype(result)
        for function in find_ops(module, "func.func"):
            _retype_function(function)
        for uses in found:
            with mlir.InsertionPoint(uses.op), uses.op.location:
                _rewrite(uses, self.saturate)


@dataclass(frozen=True)
class _Uses:
    """An op and the small types of its operands and results, as they were; None for other types."""

    op: mlir.Operation
    operands: tuple[str | None, ...]
    results: tuple[str | None, ...]

    @staticmethod
    def of(op: mlir.Operation) -> _Uses | None:
        operands = tuple(_small(value.type) for value in op.operands)
        results = tuple(_small(value.type) for value in op.results)
        return _Uses(op, operands, results) if any(operands) or any(results) else None


def _operations(root: mlir.Operation) -> Iterator[mlir.Operation]:
    """All ops but those in the bodies of named ops, which are made anew with them."""
    for region in root.regions if not _is_named(root) else ():
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from _operations(view.operation)


def _arguments(module: mlir.Module) -> list[mlir.Value]:
    owners = [op for op in _operations(module.operation) if not _is_named(op)]
    blocks = [block for op in owners for region in op.regions for block in region.blocks]
    return [argument for block in blocks for argument in block.arguments]


def _is_named(op: mlir.Operation) -> bool:
    dialect, _, name = op.name.partition(".")
    return dialect == "linalg" and name not in _PLAIN_LINALG


def _small(type_: mlir.Type) -> str | None:
    """The IR's name of the element type, when it is small."""
    element = type_.element_type if isinstance(type_, mlir.ShapedType) else type_
    name = str(element)
    return name if name in SMALL_IN_IR else None


def _held(type_: mlir.Type) -> mlir.Type:
    if _small(type_) is None:
        return type_
    i8 = mlir.IntegerType.get_signless(8, type_.context)
    return mlir.RankedTensorType.get(list(type_.shape), i8) if isinstance(type_, mlir.RankedTensorType) else i8


def _retype(value: mlir.Value) -> None:
    if _small(value.type):
        with value.context, mlir.Location.unknown():
            value.set_type(_held(value.type))


def _retype_function(function: mlir.OpView) -> None:
    type_ = mlir.FunctionType(mlir.TypeAttr(function.attributes["function_type"]).value)
    held = mlir.FunctionType.get([_held(t) for t in type_.inputs], [_held(t) for t in type_.results])
    function.attributes["function_type"] = mlir.TypeAttr.get(held)


def _rewrite(uses: _Uses, saturate: str) -> None:
    op = uses.op
    dialect, _, name = op.name.partition(".")
    if name == "bitcast":
        if op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.erase()
    elif op.name == "arith.constant":
        _rewrite_constant(op)
    elif _is_named(op):
        _compute_on_tensors(uses, saturate)
    elif dialect in ("arith", "math") and op.name != "arith.select":
        _compute(uses, saturate)


def _compute(uses: _Uses, saturate: str) -> None:
    """The same op on decoded operands, its results encoded; conversions are decoding and encoding by themselves."""
    op = uses.op
    unsigned = re.search(r"\.(ext|div|rem|max|min|shr|ceildiv)ui|\.uito", op.name) is not None
    if op.name == "arith.cmpi":
        unsigned = mlir.IntegerAttr(op.attributes["predicate"]).value >= 6
    operands = [
        value if small is None else _decode(small, value, unsigned)
        for value, small in zip(op.operands, uses.operands, strict=True)
    ]
    if op.name in _CONVERSIONS:
        (value,), (result,), (wanted,) = operands, uses.results, (op.results[0].type,)
        if result is not None:
            new = [_encode(op, saturate, result, value)]
        elif value.type == wanted:
            new = [value]
        else:
            new = [_converted(op, value, wanted)]
    else:
        types = [
            value.type if small is None else _wide(small) for value, small in zip(op.results, uses.results, strict=True)
        ]
        attributes = {name: op.attributes[name] for name in op.attributes}
        made = mlir.Operation.create(op.name, results=types, operands=operands, attributes=attributes)
        new = [
            value if small is None else _encode(op, saturate, small, value)
            for value, small in zip(made.results, uses.results, strict=True)
        ]
    for old, value in zip(op.results, new, strict=True):
        old.replace_all_uses_with(value)
    op.erase()


_CONVERSIONS = frozenset(
    f"arith.{name}" for name in "extf truncf extsi extui trunci sitofp uitofp fptosi fptoui".split()
)


def _converted(op: mlir.Operation, value: mlir.Value, wanted: mlir.Type) -> mlir.Value:
    """A decoded value, an f32 or an i8, in the type that a conversion gives."""
    if isinstance(value.type, mlir.F32Type) and isinstance(wanted, mlir.FloatType):
        kind = arith.ExtFOp if mlir.FloatType(wanted).width > 32 else arith.TruncFOp
        return kind(wanted, value).result
    return mlir.Operation.create(op.name, results=[wanted], operands=[value]).results[0]


def _compute_on_tensors(uses: _Uses, saturate: str) -> None:
    """A named op, whose body is not ours to change, on decoded tensors."""
    op = uses.op
    operands = [
        value if small is None else _on_tensor(value, functools.partial(_decode, small, unsigned=False), _wide(small))
        for value, small in zip(op.operands, uses.operands, strict=True)
    ]
    types = [
        value.type if small is None else mlir.RankedTensorType.get(list(value.type.shape), _wide(small))
        for value, small in zip(op.results, uses.results, strict=True)
    ]
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = mlir.Operation.create(op.name, results=types, operands=operands, attributes=attributes, regions=1)
    linalg.fill_builtin_region(new)
    i8 = mlir.IntegerType.get_signless(8)
    for old, value, small in zip(op.results, new.results, uses.results, strict=True):
        encoded = value if small is None else _on_tensor(value, functools.partial(_encode, op, saturate, small), i8)
        old.replace_all_uses_with(encoded)
    op.erase()


def _on_tensor(value: mlir.Value, scalar: Callable[[mlir.Value], mlir.Value], element: mlir.Type) -> mlir.Value:
    return elementwise(value, element, scalar) if isinstance(value.type, mlir.RankedTensorType) else scalar(value)


def _wide(small: str) -> mlir.Type:
    return mlir.IntegerType.get_signless(8) if small.startswith("i") else mlir.F32Type.get()


def _decode(small: str, bits: mlir.Value, unsigned: bool) -> mlir.Value:
    name = SMALL_IN_IR[small]
    return small_types.decode(name.replace("i", "u") if unsigned and small.startswith("i") else name, bits)


def _encode(op: mlir.Operation, saturate: str, small: str, value: mlir.Value) -> mlir.Value:
    name = SMALL_IN_IR[small]
    if name == small_types.SCALE:
        where = describe_location(op.location)
        raise UnsupportedOpError(f"'{op.name}' at {where} is not supported: frameworks round to {name} differently")
    if op.name == "arith.uitofp":
        value = arith.UIToFPOp(mlir.F32Type.get(), value).result
    elif op.name == "arith.extsi" and mlir.IntegerType(value.type).width < 8:
        value = arith.ExtSIOp(mlir.IntegerType.get_signless(8), value).result
    return small_types.encode(name, value, saturate=name == saturate)


def _rewrite_constant(op: mlir.Operation) -> None:
    attribute = op.attributes["value"]
    if (key := resource_name(attribute)) is None:
        op.attributes["value"] = _held_constant(attribute)
        return
    # The name cannot be written a second time with another type: MLIR would change it.
    parameter = flow.ParameterOp(key=mlir.StringAttr.get(key), value=op.results[0].type)
    op.results[0].replace_all_uses_with(parameter.value)
    op.erase()


def _held_constant(attribute: mlir.Attribute) -> mlir.Attribute:
    if isinstance(attribute, mlir.FloatAttr):
        bits = np.array(attribute.value).astype(_dtype(str(attribute.type))).view(np.int8)
        return mlir.IntegerAttr.get(mlir.IntegerType.get_signless(8), int(bits))
    if isinstance(attribute, mlir.IntegerAttr):
        mask = (1 << mlir.IntegerType(attribute.type).width) - 1
        return mlir.IntegerAttr.get(mlir.IntegerType.get_signless(8), attribute.value & mask)
    type_ = mlir.RankedTensorType(attribute.type)
    return by_value(_values(attribute, type_).view(np.int8), "i8")


def _values(attribute: mlir.Attribute, type_: mlir.RankedTensorType) -> np.ndarray:
    """The numbers of `dense<...>`; the binding gives no buffer of these types."""
    element, text = str(type_.element_type), str(attribute)
    if text.startswith('dense<"0x'):
        stored = np.frombuffer(bytes.fromhex(text[9 : text.index('">')]), np.uint8)
        width = int(element[1:]) if element.startswith("i") else 8
        values = (stored & ((1 << width) - 1)).view(_dtype(element))
    else:
        printed = text[len("dense<") : text.rindex(">", 0, text.rindex(":"))]
        words = re.findall(r"0x[0-9A-Fa-f]+|[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?", printed)
        parts = [
            np.array(int(w, 16), np.uint8).view(_dtype(element))
            if w.startswith("0x")
            else np.array(float(w)).astype(_dtype(element))
            for w in words
        ]
        values = np.array(parts, _dtype(element))
    return np.broadcast_to(values.reshape(type_.shape if values.size > 1 else ()), type_.shape).copy()


def _dtype(element: str) -> np.dtype:
    return numpy_dtype(SMALL_IN_IR[element])
