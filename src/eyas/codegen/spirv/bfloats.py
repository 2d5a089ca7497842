"""bf16 as the 16 bits that it is: few devices have the type, and all that is left to do with it is to move it."""

from __future__ import annotations

import struct

from torch_mlir import ir as mlir

from eyas.codegen.common.passes.lanes import element_type, with_element
from eyas.ir.walk import find_ops


def store_bfloats_as_integers(module: mlir.Module) -> None:
    """Makes i16 of every bf16, in memory, loops and branches. Arithmetic is in f32 by now (`arith-expand`): what reads
    and makes a bf16 are bit casts, which vanish."""
    with module.context:
        module.operation.walk(_retype)
        for op in find_ops(module, "arith.bitcast"):
            if op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.operation.erase()
        for kernel in find_ops(module, "gpu.func"):
            types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
            kernel.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))


def _retype(op: mlir.Operation) -> mlir.WalkResult:
    if op.name == "arith.constant" and _is_bfloat(op.results[0].type):
        op.attributes["value"] = _bits(op.attributes["value"])
    for result in op.results:
        _retype_value(result)
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                _retype_value(argument)
    return mlir.WalkResult.ADVANCE


def _retype_value(value: mlir.Value) -> None:
    type_ = value.type
    if isinstance(type_, mlir.MemRefType):
        if _is_bfloat(type_.element_type):
            value.set_type(
                mlir.MemRefType.get(
                    type_.shape, _as_integer(type_.element_type), layout=type_.layout, memory_space=type_.memory_space
                )
            )
    elif _is_bfloat(type_):
        value.set_type(_as_integer(type_))


def _is_bfloat(type_: mlir.Type) -> bool:
    return isinstance(element_type(type_), mlir.BF16Type)


def _as_integer(type_: mlir.Type) -> mlir.Type:
    return with_element(type_, mlir.IntegerType.get_signless(16))


def _bits(value: mlir.Attribute) -> mlir.Attribute:
    """The same bits as i16: bf16 is the upper half of an f32, and a constant of it has no more."""
    i16 = mlir.IntegerType.get_signless(16)
    if isinstance(value, mlir.FloatAttr):
        return mlir.IntegerAttr.get(i16, _upper_half(value.value))
    dense = mlir.DenseElementsAttr(value)
    assert dense.is_splat, "vectors of different bf16 constants are not made"
    type_ = _as_integer(dense.type)
    return mlir.DenseElementsAttr.get_splat(type_, _bits(dense.get_splat_value()))


def _upper_half(value: float) -> int:
    return struct.unpack("<hh", struct.pack("<f", value))[1]
