"""The image that the linker writes: segments, sections and dynamic tables, laid out front to back.

Addresses grow with file offsets but each segment starts on a page of its own, at an address that is congruent to its
offset, so that the file stays small and loaders can still map it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eyas.codegen.llvm_cpu import elf


@dataclass
class Segment:
    """A range of the file that is mapped with one protection (a PT_LOAD)."""

    flags: int
    offset: int
    address: int
    file_bytes: int = 0
    memory_bytes: int = 0


@dataclass
class OutputSection:
    """A named range for tools that read section headers; loaders do not need it."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int = 0
    alignment: int = 1
    entry_bytes: int = 0
    link: str = ""
    info: int = 0


@dataclass(frozen=True)
class DynamicSymbol:
    """An entry of the dynamic symbol table; an import has no section."""

    name: str
    address: int = 0
    size: int = 0
    section: str = ""
    kind: int = elf.STT_FUNC
    is_absolute: bool = False


@dataclass
class Image:
    """A file under construction: `begin_segment`, `begin_section`, then `append` or `reserve`, in file order."""

    machine: int
    flags: int
    page_bytes: int
    header_count: int
    """Number of program headers, which come first in the file."""
    data: bytearray = field(default_factory=bytearray)
    segments: list[Segment] = field(default_factory=list)
    sections: list[OutputSection] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.segments.append(Segment(elf.PF_R, 0, 0))
        self.data += bytes(elf.FILE_HEADER.size + self.header_count * elf.PROGRAM_HEADER.size)

    def begin_segment(self, flags: int) -> Segment:
        self._pad(64)
        self.close()
        previous = self.segments[-1]
        page = elf.align_up(previous.address + previous.memory_bytes, self.page_bytes)
        segment = Segment(flags, len(self.data), page + len(self.data) % self.page_bytes)
        self.segments.append(segment)
        return segment

    def begin_section(self, name: str, kind: int, flags: int, **details: int | str) -> OutputSection:
        section = OutputSection(name, kind, flags | elf.SHF_ALLOC, self.end, len(self.data), **details)  # type: ignore[arg-type]
        self.sections.append(section)
        return section

    def append(self, data: bytes, alignment: int = 8) -> int:
        """Adds bytes to the current section and says at which address they are."""
        section = self.sections[-1]
        self._pad(alignment)
        if section.size == 0:
            section.address, section.offset = self.end, len(self.data)
        address = self.end
        self.data += data
        section.size = self.end - section.address
        section.alignment = max(section.alignment, alignment)
        return address

    def reserve(self, size: int, alignment: int) -> int:
        """Adds zeros that the file does not hold (`.bss`), at the end of the last segment."""
        segment, section = self.segments[-1], self.sections[-1]
        self.close()
        address = elf.align_up(segment.address + segment.memory_bytes, alignment)
        if section.size == 0:
            section.address = address
        segment.memory_bytes = address + size - segment.address
        section.size = address + size - section.address
        section.alignment = max(section.alignment, alignment)
        return address

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.segments[-1].address + len(self.data) - self.segments[-1].offset

    def offset_of(self, address: int) -> int:
        for segment in self.segments:
            if segment.address <= address < segment.address + max(segment.file_bytes, 1):
                return address - segment.address + segment.offset
        raise AssertionError(f"address {address:#x} is in no segment")

    def write(self, symbols: Sequence[DynamicSymbol], strings: elf.StringTable, relro: Segment) -> bytes:
        """Fills in symbols and headers and returns the file. `relro` becomes read-only once it is relocated."""
        self.close()
        names = ["", *(section.name for section in self.sections), ".shstrtab"]
        self._write_symbols(symbols, strings, names)
        self._write_program_headers(relro)
        table = self._append_section_headers(names)
        elf.FILE_HEADER.pack_into(
            self.data,
            0,
            elf.IDENT,
            elf.ET_DYN,
            self.machine,
            1,
            0,
            elf.FILE_HEADER.size,
            table,
            self.flags,
            elf.FILE_HEADER.size,
            elf.PROGRAM_HEADER.size,
            self.header_count,
            elf.SECTION_HEADER.size,
            len(names),
            len(names) - 1,
        )
        return bytes(self.data)

    def section(self, name: str) -> OutputSection:
        return next(one for one in self.sections if one.name == name)

    def _pad(self, alignment: int) -> None:
        # Addresses and offsets are congruent modulo a page, and no alignment is larger than a page.
        self.data += bytes(-len(self.data) % alignment)

    def close(self) -> None:
        """Takes what was appended into the current segment's size."""
        segment = self.segments[-1]
        if segment.memory_bytes == segment.file_bytes:
            segment.file_bytes = segment.memory_bytes = len(self.data) - segment.offset

    def _write_symbols(self, symbols: Sequence[DynamicSymbol], strings: elf.StringTable, names: list[str]) -> None:
        at = self.section(".dynsym").offset
        for index, symbol in enumerate(symbols, start=1):
            where = elf.SHN_ABS if symbol.is_absolute else names.index(symbol.section)
            elf.SYMBOL.pack_into(
                self.data,
                at + index * elf.SYMBOL.size,
                strings.add(symbol.name),
                elf.STB_GLOBAL << 4 | symbol.kind,
                0,
                where,
                symbol.address,
                symbol.size,
            )

    def _write_program_headers(self, relro: Segment) -> None:
        # Whole pages become read-only, so the segment owns its last page to the end.
        relro.memory_bytes = elf.align_up(relro.address + relro.memory_bytes, self.page_bytes) - relro.address
        dynamic = self.section(".dynamic")
        headers = [(elf.PT_LOAD, one, self.page_bytes) for one in self.segments]
        headers += [
            (elf.PT_DYNAMIC, Segment(relro.flags, dynamic.offset, dynamic.address, dynamic.size, dynamic.size), 8),
            (elf.PT_GNU_RELRO, Segment(elf.PF_R, relro.offset, relro.address, relro.file_bytes, relro.memory_bytes), 1),
            (elf.PT_GNU_STACK, Segment(elf.PF_R | elf.PF_W, 0, 0), 16),
        ]
        assert len(headers) == self.header_count
        for index, (kind, one, alignment) in enumerate(headers):
            elf.PROGRAM_HEADER.pack_into(
                self.data,
                elf.FILE_HEADER.size + index * elf.PROGRAM_HEADER.size,
                kind,
                one.flags,
                one.offset,
                one.address,
                one.address,
                one.file_bytes,
                one.memory_bytes,
                alignment,
            )

    def _append_section_headers(self, names: list[str]) -> int:
        strings = elf.StringTable()
        for name in names:
            strings.add(name)
        offset = len(self.data)
        self.data += strings.data
        self._pad(8)
        table = len(self.data)
        rows = [(0,) * 10]
        for one in self.sections:
            link = names.index(one.link) if one.link else 0
            rows.append(
                (
                    strings.add(one.name),
                    one.kind,
                    one.flags,
                    one.address,
                    one.offset,
                    one.size,
                    link,
                    one.info,
                    one.alignment,
                    one.entry_bytes,
                )
            )
        rows.append((strings.add(".shstrtab"), elf.SHT_STRTAB, 0, 0, offset, len(strings.data), 0, 0, 1, 0))
        for row in rows:
            self.data += elf.SECTION_HEADER.pack(*row)
        return table
