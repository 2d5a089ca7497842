"""Executables of Vulkan devices: kernels in SPIR-V with what a driver must know to call each, as bytes and back.

header: "EYSV", u32 version, u32 kernels, u32 bytes in all. Then a record of 128 bytes for each kernel, then what the
records point to (offsets are from the beginning): names, code at multiples of 4, terms of scratch memory. Everything is
little endian. The entry point of the code is called `main`; a kernel is found by the name in its record.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from eyas.errors import ModuleError

MAGIC, VERSION = b"EYSV", 1
MAX_BINDINGS, MAX_SYMBOLS = 256, 5
SPIRV_MAGIC = 0x07230203

# What a record's flags say.
_REPORTS_ERRORS, _CONSTANTS_BUFFER, _SCRATCH = 1, 2, 4
_HEADER = struct.Struct("<4sIII")
# Name and code (offset and bytes of each), bindings, constants, local size, flags, terms (offset and count), subgroup,
# three words that are 0, and a bit for each binding: whether it is written, whether it may start anywhere.
_RECORD = struct.Struct("<16I32s32s")
_TERM = struct.Struct("<QI5I")


@dataclass(frozen=True)
class Term:
    """A product of a number and push constants."""

    factor: int
    symbols: tuple[int, ...] = ()
    """Ordinals of the constants."""


@dataclass(frozen=True)
class Kernel:
    """One dispatch: its code, and what the driver binds and passes."""

    name: str
    code: bytes
    bindings: int
    constants: int
    """32-bit words of the dispatch; those that the driver adds are not counted."""
    local_size: tuple[int, int, int]
    """Threads of a workgroup."""
    writes: int
    """Bit i is set when binding i is written."""
    unaligned: int = 0
    """Bit i is set when binding i may start at any offset: the driver rounds down and passes the rest as a word."""
    reports_errors: bool = False
    """Whether the error word is bound, and its tag passed."""
    constants_in_buffer: bool = False
    """Whether words lie in a buffer, because there are more than push constants hold."""
    scratch: tuple[Term, ...] = ()
    """Terms whose sum is how many bytes of scratch memory a dispatch is given; none: it is given no such buffer."""
    subgroup: int = 0
    """The size of subgroups that the code was made for; 0: any."""

    @property
    def flags(self) -> int:
        return (
            (_REPORTS_ERRORS if self.reports_errors else 0)
            | (_CONSTANTS_BUFFER if self.constants_in_buffer else 0)
            | (_SCRATCH if self.scratch else 0)
        )


def write_executable(kernels: Sequence[Kernel]) -> bytes:
    """The bytes of an executable."""
    records, data = bytearray(), bytearray()
    start = _HEADER.size + _RECORD.size * len(kernels)

    def place(content: bytes) -> int:
        data.extend(bytes(-len(data) % 8))
        data.extend(content)
        return start + len(data) - len(content)

    for kernel in kernels:
        name = kernel.name.encode()
        terms = b"".join(map(_encode_term, kernel.scratch))
        records += _RECORD.pack(
            place(name), len(name), place(kernel.code), len(kernel.code),
            kernel.bindings, kernel.constants, *kernel.local_size, kernel.flags,
            place(terms) if terms else 0, len(kernel.scratch), kernel.subgroup, 0, 0, 0,
            kernel.writes.to_bytes(32, "little"), kernel.unaligned.to_bytes(32, "little"),
        )  # fmt: skip
    return _HEADER.pack(MAGIC, VERSION, len(kernels), start + len(data)) + records + data


def _encode_term(term: Term) -> bytes:
    assert len(term.symbols) <= MAX_SYMBOLS, f"a term of {len(term.symbols)} symbols"
    return _TERM.pack(term.factor, len(term.symbols), *term.symbols, *[0] * (MAX_SYMBOLS - len(term.symbols)))


def read_executable(data: bytes) -> tuple[Kernel, ...]:
    """The kernels of an executable; raises ModuleError for one that is none, is cut short, or contradicts itself."""
    data = bytes(data)
    if len(data) < _HEADER.size:
        raise ModuleError(f"not a SPIR-V executable: it has {len(data)} bytes")
    magic, version, count, total = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ModuleError(f"not a SPIR-V executable: it begins with {magic!r}, which should be {MAGIC!r}")
    if version != VERSION:
        raise ModuleError(f"the SPIR-V executable is of version {version}; this reads {VERSION}")
    if total != len(data):
        raise ModuleError(f"the SPIR-V executable has {len(data)} bytes and says that it has {total}")
    _slice(data, _HEADER.size, count * _RECORD.size, "the table of kernels")
    return tuple(_read_kernel(data, _HEADER.size + i * _RECORD.size, f"kernel {i}") for i in range(count))


def _read_kernel(data: bytes, at: int, where: str) -> Kernel:
    *words, writes, unaligned = _RECORD.unpack_from(data, at)
    name_at, name_bytes, code_at, code_bytes, bindings, constants, x, y, z, flags = words[:10]
    terms_at, term_count, subgroup, *reserved = words[10:]
    try:
        name = _slice(data, name_at, name_bytes, f"the name of {where}").decode()
    except UnicodeDecodeError as error:
        raise ModuleError(f"the name of {where} is not UTF-8: {error}") from error
    terms = _slice(data, terms_at, term_count * _TERM.size, f"the scratch memory of {where}")
    kernel = Kernel(
        name, _slice(data, code_at, code_bytes, f"the code of {where}"), bindings, constants, (x, y, z),
        int.from_bytes(writes, "little"), int.from_bytes(unaligned, "little"),
        bool(flags & _REPORTS_ERRORS), bool(flags & _CONSTANTS_BUFFER),
        tuple(_read_term(terms, i, where) for i in range(term_count)), subgroup,
    )  # fmt: skip
    problem = _problem(kernel, code_at, flags, reserved)
    if problem:
        raise ModuleError(f"{where}, '{kernel.name}': {problem}")
    return kernel


def _read_term(terms: bytes, index: int, where: str) -> Term:
    factor, count, *symbols = _TERM.unpack_from(terms, index * _TERM.size)
    if count > MAX_SYMBOLS:
        raise ModuleError(f"the scratch memory of {where} has a term of {count} symbols; at most {MAX_SYMBOLS}")
    return Term(factor, tuple(symbols[:count]))


def _problem(kernel: Kernel, code_at: int, flags: int, reserved: Sequence[int]) -> str | None:
    """What contradicts itself in a record, or None."""
    if len(kernel.code) < 20 or len(kernel.code) % 4 or int.from_bytes(kernel.code[:4], "little") != SPIRV_MAGIC:
        return "its code is not SPIR-V"
    if code_at % 4:
        return f"its code is at byte {code_at}, which is no multiple of 4"
    if kernel.bindings > MAX_BINDINGS:
        return f"it has {kernel.bindings} bindings; at most {MAX_BINDINGS}"
    if (kernel.writes | kernel.unaligned) >> kernel.bindings:
        return f"it speaks of bindings beyond its {kernel.bindings}"
    if 0 in kernel.local_size:
        return f"its workgroups have {'x'.join(map(str, kernel.local_size))} threads"
    if flags != kernel.flags or any(reserved):
        return (
            f"its flags are {flags}, with {len(kernel.scratch)} terms of scratch memory, and reserved words {reserved}"
        )
    if any(symbol >= kernel.constants for term in kernel.scratch for symbol in term.symbols):
        return f"its scratch memory depends on a constant beyond its {kernel.constants}"
    return None


def _slice(data: bytes, at: int, count: int, what: str) -> bytes:
    if count > len(data) or at > len(data) - count:
        raise ModuleError(f"the executable has {len(data)} bytes; {what} is said to be {count} at {at}")
    return data[at : at + count]
