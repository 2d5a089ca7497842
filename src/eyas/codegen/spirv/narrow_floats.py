"""Floats of 16 bits as the bits that they are, where all that is left to do with them is to move them.

bf16 is so on every device: few have the type. f16 is, where the target has no such type or no buffers of it.
"""

from __future__ import annotations

import struct

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math, vector

from eyas.codegen.common.passes.lanes import element_type, with_element
from eyas.ir.small_types import HALF, decode_float, encode_float
from eyas.ir.walk import find_ops


def split_conversions(module: mlir.Module, halves: bool) -> None:
    """Conversions between f64 and a type that is held as bits go through f32, as bits are made of that alone."""
    held = _held(halves)
    for op in find_ops(module, "arith.extf", "arith.truncf"):
        source, kind = op.operands[0], op.results[0].type
        ends = element_type(source.type), element_type(kind)
        if not any(isinstance(end, held) for end in ends) or not any(isinstance(end, mlir.F64Type) for end in ends):
            continue
        convert = arith.extf if op.operation.name == "arith.extf" else arith.truncf
        with mlir.InsertionPoint(op), op.operation.location:
            made = convert(kind, convert(with_element(kind, mlir.F32Type.get()), source))
        op.results[0].replace_all_uses_with(made)
        op.operation.erase()


def _held(halves: bool) -> tuple[type, ...]:
    return (mlir.BF16Type, mlir.F16Type) if halves else (mlir.BF16Type,)


def hold_as_integers(module: mlir.Module, halves: bool) -> None:
    """Makes i16 of every bf16, and of every f16 if `halves`, in memory, loops and branches. Arithmetic is in f32 by
    now: what reads and makes a bf16 are bit casts, which vanish; what converts an f16 computes with its bits."""
    held = _held(halves)
    with module.context:
        if halves:
            for op in find_ops(module, "math.fma"):
                _widen_half(op)
            for op in find_ops(module, "arith.extf", "arith.truncf"):
                _convert_half(op)
        module.operation.walk(lambda op: _retype(op, held))
        for op in find_ops(module, "arith.bitcast"):
            if op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.operation.erase()
        for kernel in find_ops(module, "gpu.func"):
            types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
            kernel.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))


def _widen_half(op: mlir.OpView) -> None:
    """A fused product and sum, which upstream takes for supported in every type, in f32."""
    kind = op.results[0].type
    if not isinstance(element_type(kind), mlir.F16Type):
        return
    wide = with_element(kind, mlir.F32Type.get())
    with mlir.InsertionPoint(op), op.operation.location:
        made = arith.truncf(kind, math.fma(*(arith.extf(wide, operand) for operand in op.operands)))
    op.results[0].replace_all_uses_with(made)
    op.operation.erase()


def _convert_half(op: mlir.OpView) -> None:
    """A conversion from or to f16, lane by lane."""
    source, kind = op.operands[0], op.results[0].type
    narrow = kind if op.operation.name == "arith.truncf" else source.type
    if not isinstance(element_type(narrow), mlir.F16Type):
        return
    i16, i32 = (mlir.IntegerType.get_signless(bits) for bits in (16, 32))

    def lane(value: mlir.Value) -> mlir.Value:
        if op.operation.name == "arith.truncf":
            return arith.bitcast(mlir.F16Type.get(), arith.trunci(i16, encode_float(HALF, value)))
        return decode_float(HALF, arith.extui(i32, arith.bitcast(i16, value)))

    with mlir.InsertionPoint(op), op.operation.location:
        if isinstance(kind, mlir.VectorType):
            lanes = range(mlir.VectorType(kind).shape[0])
            made = vector.from_elements(kind, [lane(vector.extract(source, [], [one])) for one in lanes])
        else:
            made = lane(source)
    op.results[0].replace_all_uses_with(made)
    op.operation.erase()


def _retype(op: mlir.Operation, held: tuple[type, ...]) -> mlir.WalkResult:
    if op.name == "arith.constant" and isinstance(element_type(op.results[0].type), held):
        op.attributes["value"] = _bits(op.attributes["value"])
    for result in op.results:
        _retype_value(result, held)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                _retype_value(argument, held)
    return mlir.WalkResult.ADVANCE


def _retype_value(value: mlir.Value, held: tuple[type, ...]) -> None:
    type_ = value.type
    if isinstance(type_, mlir.MemRefType):
        if isinstance(element_type(type_.element_type), held):
            element = _as_integer(type_.element_type)
            value.set_type(mlir.MemRefType.get(type_.shape, element, memory_space=type_.memory_space))
    elif isinstance(element_type(type_), held):
        value.set_type(_as_integer(type_))


def _as_integer(type_: mlir.Type) -> mlir.Type:
    return with_element(type_, mlir.IntegerType.get_signless(16))


def _bits(value: mlir.Attribute) -> mlir.Attribute:
    """The same bits as i16."""
    if isinstance(value, mlir.FloatAttr):
        if isinstance(value.type, mlir.F16Type):
            (bits,) = struct.unpack("<h", struct.pack("<e", value.value))
        else:  # the upper half of an f32
            bits = struct.unpack("<hh", struct.pack("<f", value.value))[1]
        return mlir.IntegerAttr.get(mlir.IntegerType.get_signless(16), bits)
    dense = mlir.DenseElementsAttr(value)
    assert dense.is_splat, "vectors of different constants are not made"
    return mlir.DenseElementsAttr.get_splat(_as_integer(dense.type), _bits(dense.get_splat_value()))
