"""Memory of plain loops: addresses as the LLVM dialect computes them, and instructions that read and write there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import llvm

from eyas.errors import InternalError
from eyas.module.vmvx_assembler import Assembler, Scalar
from eyas.module.vmvx_isa import MEMORY_BYTES, Memory

DYNAMIC = -(1 << 31)
"""Stands in a getelementptr's list of indices for one that is an operand."""


NARROW = (mlir.F16Type, mlir.BF16Type)


@dataclass(frozen=True)
class Place:
    """An address that is not computed yet: `base`, and elements of `size` bytes from there, or bytes."""

    base: Scalar
    index: Scalar | None
    size: int
    offset: int = 0


def memory_of(type_: mlir.Type) -> Memory:
    """How a scalar of this type lies in memory; f16 and bf16 move as their bits."""
    if isinstance(type_, mlir.F64Type):
        return Memory.F64
    if isinstance(type_, mlir.F32Type):
        return Memory.F32
    if isinstance(type_, NARROW):
        return Memory.I16
    bits = type_.width if isinstance(type_, mlir.IntegerType) else 64
    return {1: Memory.U8, 8: Memory.I8, 16: Memory.I16, 32: Memory.I32, 64: Memory.I64}[bits]


def narrow_memory(type_: mlir.Type) -> Memory:
    """How an f16 or bf16 lies in memory when it is an f32 in a register."""
    return Memory.F16 if isinstance(type_, mlir.F16Type) else Memory.BF16


def fields_of(type_: mlir.Type) -> list[tuple[mlir.Type, int]]:
    """Scalars that a value of this type consists of, each with its offset in bytes: a complex number has two."""
    if isinstance(type_, llvm.StructType):
        fields: list[tuple[mlir.Type, int]] = []
        for field in type_.body or []:
            size = MEMORY_BYTES[memory_of(field)]
            end = fields[-1][1] + MEMORY_BYTES[memory_of(fields[-1][0])] if fields else 0
            fields.append((field, -(-end // size) * size))
        return fields
    return [(type_, 0)]


def size_of(type_: mlir.Type) -> int:
    """Bytes from one element of this type to the next."""
    if isinstance(type_, llvm.ArrayType):
        return type_.num_elements * size_of(type_.element_type)
    fields = fields_of(type_)
    align = max((MEMORY_BYTES[memory_of(field)] for field, _ in fields), default=1)
    end = max((offset + MEMORY_BYTES[memory_of(field)] for field, offset in fields), default=0)
    return -(-end // align) * align


def steps(type_: mlir.Type, count: int) -> list[int]:
    """Bytes of one step of each index of a getelementptr: the first goes over whole elements, others into arrays."""
    found = [size_of(type_)]
    while len(found) < count:
        if not isinstance(type_, llvm.ArrayType):
            raise InternalError(f"plain loops do not know how to go into {type_}")
        type_ = type_.element_type
        found.append(size_of(type_))
    return found


def address_of(asm: Assembler, place: Place | Scalar) -> Scalar:
    """The address in a register."""
    if isinstance(place, Scalar):
        return place
    address = place.base
    if place.index is not None:
        address = asm.madd(None, place.index, asm.const(place.size), address)
    return asm.add(None, address, asm.const(place.offset)) if place.offset else address


def load(asm: Assembler, place: Place | Scalar, memory: Memory, offset: int = 0) -> Scalar:
    if isinstance(place, Scalar):
        return asm.load(None, place, offset, memory)
    if place.index is None:
        return asm.load(None, place.base, place.offset + offset, memory)
    if place.size == MEMORY_BYTES[memory] and place.offset + offset == 0:
        return asm.load_at(None, place.base, place.index, memory)
    return asm.load(None, address_of(asm, place), offset, memory)


def store(asm: Assembler, value: Scalar, place: Place | Scalar, memory: Memory, offset: int = 0) -> None:
    if isinstance(place, Scalar):
        asm.store(value, place, offset, memory)
    elif place.index is None:
        asm.store(value, place.base, place.offset + offset, memory)
    elif place.size == MEMORY_BYTES[memory] and place.offset + offset == 0:
        asm.store_at(value, place.base, place.index, memory)
    else:
        asm.store(value, address_of(asm, place), offset, memory)


def is_read_whole(op: mlir.Operation, size: int) -> bool:
    """Whether an address is only used to read and write elements of `size` bytes there, so that those instructions may
    compute it on their own."""
    users: Iterable[mlir.Operation] = (use.owner.operation for use in op.results[0].uses)
    for user in users:
        if user.name == "llvm.load":
            type_ = user.results[0].type
        elif user.name == "llvm.store" and user.operands[0] != op.results[0]:
            type_ = user.operands[0].type
        else:
            return False
        if isinstance(type_, llvm.StructType) or MEMORY_BYTES[memory_of(type_)] != size:
            return False
    return True
