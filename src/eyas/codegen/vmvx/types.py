"""How MLIR's element types are held in tiles and in memory."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Unsupported
from eyas.module.vmvx_isa import MEMORY_BYTES, Memory, Type

_INTEGERS = {1: Type.I8, 8: Type.I8, 16: Type.I16, 32: Type.I32, 64: Type.I64}
_STORED = {1: Memory.I8, 8: Memory.I8, 16: Memory.I16, 32: Memory.I32, 64: Memory.I64}


def tile_type(type_: mlir.Type) -> Type:
    """f16 and bf16 are f32 in tiles, an i1 is an i8 of 0 or 1, an index is 64 bits."""
    if isinstance(type_, mlir.F64Type):
        return Type.F64
    if isinstance(type_, mlir.F32Type | mlir.F16Type | mlir.BF16Type):
        return Type.F32
    if isinstance(type_, mlir.IndexType):
        return Type.I64
    if isinstance(type_, mlir.IntegerType) and type_.width in _INTEGERS:
        return _INTEGERS[type_.width]
    raise Unsupported(f"tiles do not have elements of type {type_}")


def memory_type(type_: mlir.Type) -> Memory:
    """How elements lie in memory."""
    floats = {"f64": Memory.F64, "f32": Memory.F32, "f16": Memory.F16, "bf16": Memory.BF16}
    if str(type_) in floats:
        return floats[str(type_)]
    if isinstance(type_, mlir.IntegerType) and type_.width in _STORED:
        return _STORED[type_.width]
    raise Unsupported(f"tiles do not load elements of type {type_}")


def element_bytes(type_: mlir.Type) -> int:
    return MEMORY_BYTES[memory_type(type_)]


def rounding(type_: mlir.Type) -> str | None:
    """The instruction that brings an f32 back to a narrower type, or None."""
    return {"f16": "tfround_f16_f32", "bf16": "tfround_bf16_f32"}.get(str(type_))


def is_bool(type_: mlir.Type) -> bool:
    return isinstance(type_, mlir.IntegerType) and type_.width == 1
