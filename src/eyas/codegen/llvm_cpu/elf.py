"""The parts of ELF64 little-endian that the linker reads and writes. Names and numbers are those of elf.h."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from eyas.errors import InternalError

ET_REL, ET_DYN = 1, 3
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 0x6474E551, 0x6474E552
PF_X, PF_W, PF_R = 1, 2, 4
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH, SHT_DYNAMIC, SHT_NOBITS, SHT_DYNSYM = 1, 2, 3, 4, 5, 6, 8, 11
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
SHN_UNDEF, SHN_LORESERVE, SHN_ABS = 0, 0xFF00, 0xFFF1
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_OBJECT, STT_FUNC = 1, 2
DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT = 0, 4, 5, 6, 7, 8, 9
DT_STRSZ, DT_SYMENT, DT_RELACOUNT = 10, 11, 0x6FFFFFF9

FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QQq")
DYN = struct.Struct("<qQ")
IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


@dataclass(frozen=True)
class Symbol:
    """One entry of an object's symbol table; `section` is an index into the object's sections."""

    name: str
    binding: int
    kind: int
    section: int
    value: int
    size: int

    @property
    def is_defined(self) -> bool:
        return self.section != SHN_UNDEF


@dataclass(frozen=True)
class Relocation:
    """A place (`offset` in its section) to patch with the address of `symbol` (an index) plus `addend`."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass
class Section:
    """One section of an object. `address` is its place in the image, given by the linker when it keeps the section."""

    name: str
    kind: int
    flags: int
    size: int
    alignment: int
    data: bytes
    relocations: list[Relocation] = field(default_factory=list)
    address: int = -1


@dataclass(frozen=True)
class ObjectFile:
    """A relocatable object, parsed."""

    name: str
    machine: int
    flags: int
    sections: list[Section]
    symbols: list[Symbol]

    def rename(self, old: str, new: str) -> None:
        """Gives a global symbol another name."""
        self.symbols[:] = [
            replace(one, name=new) if one.name == old and one.binding != STB_LOCAL else one for one in self.symbols
        ]


def parse_object(data: bytes, name: str) -> ObjectFile:
    """Reads an ET_REL file. It comes from LLVM, so anything unexpected is a bug of ours."""
    if data[:6] != IDENT[:6]:
        raise InternalError(f"{name} is not a little-endian ELF64 file (starts with {data[:6].hex(' ')})")
    header = FILE_HEADER.unpack_from(data)
    kind, machine, table, flags, names_index = header[1], header[2], header[6], header[7], header[13]
    if kind != ET_REL:
        raise InternalError(f"{name} has ELF type {kind}; the linker takes relocatable objects (type {ET_REL})")
    headers = [SECTION_HEADER.unpack_from(data, table + index * header[11]) for index in range(header[12])]
    names = _contents(data, headers[names_index])
    sections = [Section(_string(names, h[0]), h[1], h[2], h[5], max(h[8], 1), _contents(data, h)) for h in headers]
    symbols: list[Symbol] = []
    for section, h in zip(sections, headers, strict=True):
        if section.kind == SHT_SYMTAB:
            strings = sections[h[6]].data
            for entry in SYMBOL.iter_unpack(section.data):
                symbols.append(
                    Symbol(_string(strings, entry[0]), entry[1] >> 4, entry[1] & 15, entry[3], entry[4], entry[5])
                )
        elif section.kind == SHT_RELA:
            sections[h[7]].relocations = [
                Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)
                for offset, info, addend in RELA.iter_unpack(section.data)
            ]
    return ObjectFile(name, machine, flags, sections, symbols)


def sysv_hash(name: str) -> int:
    """The hash function of DT_HASH (System V ABI, chapter 5)."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


def hash_table(names: list[str]) -> bytes:
    """A DT_HASH table for symbols 1..n with these names (symbol 0 is the null symbol)."""
    bucket_count = len(names) // 2 | 1  # odd: names that differ in one letter spread over all buckets
    buckets, chains = [0] * bucket_count, [0] * (len(names) + 1)
    for index, name in enumerate(names, start=1):
        bucket = sysv_hash(name) % bucket_count
        chains[index] = buckets[bucket]
        buckets[bucket] = index
    return struct.pack(f"<{2 + bucket_count + len(chains)}I", bucket_count, len(chains), *buckets, *chains)


class StringTable:
    """Builds a string table; equal strings share an offset."""

    def __init__(self) -> None:
        self.data = bytearray(b"\0")
        self._offsets: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self._offsets:
            self._offsets[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self._offsets[text]


def _contents(data: bytes, header: tuple[int, ...]) -> bytes:
    return b"" if header[1] == SHT_NOBITS else data[header[4] : header[4] + header[5]]


def _string(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()
