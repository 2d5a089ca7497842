"""Reads and writes of plain loops: what `Translator` does with the LLVM dialect's addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from torch_mlir import ir as mlir

from eyas.codegen.vmvx import places
from eyas.codegen.vmvx.arithmetic import constant_of, float_bits
from eyas.codegen.vmvx.places import Place
from eyas.module.vmvx_isa import Memory
from eyas.program.literals import array_of

if TYPE_CHECKING:
    from eyas.codegen.vmvx.translate import Translator


def _address(t: Translator, op: mlir.Operation) -> None:
    """An address and steps from it; one step of elements is left to the instruction that goes there."""
    base, *dynamic = [t.scalar(operand) for operand in op.operands]
    indices = list(mlir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"]))
    sizes = places.steps(mlir.TypeAttr(op.attributes["elem_type"]).value, len(indices))
    offset = sum(index * size for index, size in zip(indices, sizes, strict=True) if index != places.DYNAMIC)
    steps = [size for index, size in zip(indices, sizes, strict=True) if index == places.DYNAMIC]
    if len(steps) == 1 and not offset and places.is_read_whole(op, steps[0]):
        t.values[op.results[0]] = Place(base, dynamic[0], steps[0])
        return
    for step, index in zip(steps, dynamic, strict=True):
        base = places.address_of(t.asm, Place(base, index, step))
    t.values[op.results[0]] = Place(base, None, 1, offset)


def _load(t: Translator, op: mlir.Operation) -> None:
    place, type_ = t.get(op.operands[0]), op.results[0].type
    if isinstance(type_, places.NARROW) and all(_is_to_f32(use.owner.operation) for use in op.results[0].uses):
        t.widened.add(op.results[0])
        t.values[op.results[0]] = places.load(t.asm, place, places.narrow_memory(type_))
        return
    made = [places.load(t.asm, place, places.memory_of(field), offset) for field, offset in places.fields_of(type_)]
    t.values[op.results[0]] = made[0] if len(made) == 1 else tuple(made)


def _store(t: Translator, op: mlir.Operation) -> None:
    place, type_ = t.get(op.operands[1]), op.operands[0].type
    if op.operands[0] in t.widened:
        places.store(t.asm, t.scalar(op.operands[0]), place, places.narrow_memory(type_))
        return
    parts = t.flat(t.get(op.operands[0]))
    if len(parts) == 1 and len(places.fields_of(type_)) > 1:
        parts *= len(places.fields_of(type_))  # never set
    for part, (field, offset) in zip(parts, places.fields_of(type_), strict=True):
        places.store(t.asm, part, place, places.memory_of(field), offset)


def _alloca(t: Translator, op: mlir.Operation) -> None:
    size = places.size_of(mlir.TypeAttr(op.attributes["elem_type"]).value)
    count = constant_of(op.operands[0])
    if count is not None:
        t.values[op.results[0]] = t.asm.local_at_entry(count * size)
        return
    number = t.asm.mul(None, t.scalar(op.operands[0]), t.asm.const(size))
    t.values[op.results[0]] = t.asm.local(None, number)


def _copy(t: Translator, op: mlir.Operation) -> None:
    t.asm.copy(*(t.scalar(operand) for operand in list(op.operands)[:3]))


def _fill(t: Translator, op: mlir.Operation) -> None:
    t.asm.fill(*(t.scalar(operand) for operand in list(op.operands)[:3]), Memory.I8)


def _global(t: Translator, op: mlir.Operation) -> None:
    symbol = t.symbols[mlir.FlatSymbolRefAttr(op.attributes["global_name"]).value]
    t.values[op.results[0]] = t.asm.data_address(_bytes_of(symbol), 64)


def _bytes_of(symbol: mlir.Operation) -> bytes:
    """The contents of a constant global."""
    value = symbol.attributes["value"]
    if isinstance(value, mlir.DenseElementsAttr | mlir.DenseResourceElementsAttr):
        return np.ascontiguousarray(array_of(value)).tobytes()
    type_ = mlir.TypeAttr(symbol.attributes["global_type"]).value
    size = places.size_of(type_)
    bits = float_bits(value.value, type_) if isinstance(value, mlir.FloatAttr) else int(value.value)  # type: ignore
    return (bits % (1 << 8 * size)).to_bytes(size, "little")


def _is_to_f32(op: mlir.Operation) -> bool:
    return op.name == "arith.extf" and isinstance(op.results[0].type, mlir.F32Type)


HANDLERS: dict[str, Callable[[Translator, mlir.Operation], None]] = {
    "llvm.getelementptr": _address,
    "llvm.load": _load,
    "llvm.store": _store,
    "llvm.alloca": _alloca,
    "llvm.intr.memcpy": _copy,
    "llvm.intr.memmove": _copy,
    "llvm.intr.memset": _fill,
    "llvm.mlir.addressof": _global,
}
