"""Executables of VMVX: functions of bytecode, as bytes that the runtime verifies and runs, and as text.

"EYVX", u32 version of the instruction set, u32 functions; for each: u32 + name, u32 scalars, u32 tiles, u32
bindings, u32 constants, u64 bits of the bindings that it writes to (as many as it takes, at least one),
u32 + constant data, u32 + code
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.errors import ModuleError
from eyas.module import vmvx_isa as isa
from eyas.module.vmvx_isa import Kind, Op

MAGIC = b"EYVX"


@dataclass(frozen=True)
class Function:
    """One dispatch: what it needs, and its code."""

    name: str
    scalars: int
    tiles: int
    bindings: int
    constants: int
    writes: int
    """Bit i is set when binding i may be stored to."""
    data: bytes
    code: bytes

    def encode(self) -> bytes:
        """The function's record in an executable."""
        name = self.name.encode()
        return (
            struct.pack("<I", len(name)) + name
            + struct.pack("<IIII", self.scalars, self.tiles, self.bindings, self.constants)
            + self.writes.to_bytes(_mask_bytes(self.bindings), "little")
            + struct.pack("<I", len(self.data)) + self.data + struct.pack("<I", len(self.code)) + self.code
        )  # fmt: skip


def _mask_bytes(bindings: int) -> int:
    """Bytes of the bits of a function's bindings."""
    return 8 * max(1, -(-bindings // 64))


def write_executable(functions: Sequence[Function]) -> bytes:
    return MAGIC + struct.pack("<II", isa.VERSION, len(functions)) + b"".join(one.encode() for one in functions)


def read_executable(data: bytes) -> tuple[Function, ...]:
    """The functions of an executable; raises ModuleError when it is none or is cut short."""
    reader = _Reader(data)
    magic, version = reader.bytes(4), reader.u32()
    if magic != MAGIC:
        raise ModuleError(f"not a vmvx executable: it begins with {magic!r}, which should be {MAGIC!r}")
    if version != isa.VERSION:
        raise ModuleError(f"the executable is of version {version} of the instruction set; this reads {isa.VERSION}")
    functions = tuple(reader.function() for _ in range(reader.u32()))
    reader.expect_end()
    return functions


def read_function(record: bytes) -> Function:
    """The function of one record."""
    reader = _Reader(record)
    function = reader.function()
    reader.expect_end()
    return function


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = bytes(data), 0

    def bytes(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise ModuleError(f"the executable ends at byte {len(self.data)}; {count} more are said to be at {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def u32(self) -> int:
        return struct.unpack("<I", self.bytes(4))[0]

    def function(self) -> Function:
        try:
            name = self.bytes(self.u32()).decode()
        except UnicodeDecodeError as error:
            raise ModuleError(f"a function's name is not UTF-8: {error}") from error
        counts = struct.unpack("<IIII", self.bytes(16))
        writes = int.from_bytes(self.bytes(_mask_bytes(counts[2])), "little")
        return Function(name, *counts, writes, self.bytes(self.u32()), self.bytes(self.u32()))

    def expect_end(self) -> None:
        if self.at != len(self.data):
            raise ModuleError(f"{len(self.data) - self.at} bytes follow the last function")


def iterate(code: bytes) -> Iterator[tuple[int, Op, list[int]]]:
    """(byte offset, instruction, operands) of every instruction. Labels come as byte offsets."""
    at = 0

    def take(layout: str, size: int) -> int:
        nonlocal at
        if at + size > len(code):
            raise ModuleError(f"the code ends inside an instruction, at byte {at}")
        at += size
        return struct.unpack_from(layout, code, at - size)[0]

    while at < len(code):
        start = at
        number = take("<H", 2)
        if number not in isa.BY_CODE:
            raise ModuleError(f"byte {start}: 0x{number:04X} is not an instruction")
        op = isa.BY_CODE[number]
        yield start, op, [take(LAYOUTS[o.kind], 2 * isa.UNITS[o.kind]) for o in op.operands]


LAYOUTS = {kind: {1: "<H", 2: "<I", 4: "<q"}[units] for kind, units in isa.UNITS.items()}
_EXTENTS = {isa.Extent.FULL: "full", isa.Extent.ROW: "row", isa.Extent.COLUMN: "column", isa.Extent.ONE: "one"}


def disassemble(functions: Sequence[Function]) -> str:
    """Functions as text, for people."""
    out: list[str] = []
    for function in functions:
        writes = ",".join(str(i) for i in range(function.bindings) if function.writes >> i & 1)
        out.append(
            f"function {function.name} bindings={function.bindings} writes={writes or '-'}"
            f" constants={function.constants} scalars={function.scalars} tiles={function.tiles}"
            f" data={len(function.data)}"
        )
        code = list(iterate(function.code))
        targets = {
            v for _, op, values in code for o, v in zip(op.operands, values, strict=True) if o.kind is Kind.LABEL
        }
        for at, op, values in code:
            if at in targets:
                out.append(f" L{at}:")
            texts = [_show(op, o, v) for o, v in zip(op.operands, values, strict=True)]
            count = sum(o.is_dst for o in op.operands)
            left = f"{', '.join(texts[:count])} = " if count else ""
            out.append(f"  {at:6d}  {left}{op.name} {', '.join(texts[count:])}".rstrip())
    return "\n".join(out) + "\n"


def _show(op: Op, operand: isa.Operand, value: Any) -> str:
    kind = operand.kind
    if kind in (Kind.SCALAR, Kind.SCALAR_DST):
        return f"s{value}"
    if kind in (Kind.TILE, Kind.TILE_DST):
        return f"t{value}"
    if kind is Kind.LABEL:
        return f"L{value}"
    if kind is Kind.MODES:
        count = sum(o.kind is Kind.TILE for o in op.operands)
        shapes = [_EXTENTS[isa.Extent(value >> 2 * n & 3)] for n in range(count)]
        return f"[{' '.join(shapes)} -> {_EXTENTS[isa.Extent(value >> 6 & 3)]}]"
    if operand.name == "memory" and value in set(isa.Memory):
        return isa.Memory(value).name.lower()
    if operand.name == "type" and value in set(isa.Type):
        return isa.Type(value).name.lower()
    return str(value)
