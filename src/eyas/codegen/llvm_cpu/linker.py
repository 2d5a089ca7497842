"""Links relocatable objects into one ELF image that the runtime maps without a linker of its own.

The image has up to four segments: tables and constants (R), code and import stubs (RX), slots and constants that hold
addresses (read-only once relocated), and data (RW). Only two kinds of dynamic relocation occur: 'load address plus
addend' and 'address of an imported symbol'. A call of an import goes to a stub that jumps to what its slot holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from eyas.codegen.llvm_cpu import elf
from eyas.codegen.llvm_cpu.image import DynamicSymbol, Image
from eyas.codegen.llvm_cpu.imports import ABI_SYMBOL, EXECUTABLE_ABI_VERSION
from eyas.codegen.llvm_cpu.relocations import MACHINES, USES_SLOT, Machine, Rule, Value
from eyas.codegen.llvm_cpu.symbols import Definition, SymbolKey, SymbolTable
from eyas.errors import InternalError
from eyas.targets import Target

_DROPPED = (".note", ".eh_frame", ".comment", ".llvm", ".riscv.attributes")
_SLOT_BYTES = 8
_PAGE = 0x1000  # what AArch64's ADRP calls a page, whatever the kernel uses


def link(objects: Sequence[bytes], exports: Sequence[str], target: Target, entry: str = "") -> bytes:
    """One ELF64 ET_DYN image with `exports` and the ABI version as its dynamic symbols.

    With `entry`, each object defines one export, the one in its place, under that name.

    Raises InternalError when an export is missing, a symbol is defined twice or cannot be imported, or an object has a
    relocation that the linker does not know; the message names the symbol and the object.
    """
    parsed = [elf.parse_object(data, f"object {index}") for index, data in enumerate(objects)]
    for one in parsed:
        if one.machine != target.elf_machine:
            raise InternalError(f"{one.name} is for ELF machine {one.machine}, {target} for {target.elf_machine}")
    if entry:
        for one, name in zip(parsed, exports, strict=True):
            one.rename(entry, name)
    linking = _Linking(MACHINES[target.elf_machine], parsed, list(exports), SymbolTable(parsed, exports))
    linking.sort_sections()
    linking.lay_out()
    linking.relocate()
    return linking.write()


class _Part(Enum):
    CONSTANTS = ".rodata"
    CODE = ".text"
    RELOCATED = ".data.rel.ro"
    DATA = ".data"
    ZEROS = ".bss"


@dataclass
class _Linking:
    """The state of one link. Addresses in the dictionaries are 0 until `lay_out`."""

    machine: Machine
    objects: list[elf.ObjectFile]
    exports: list[str]
    symbols: SymbolTable
    stubs: dict[str, int] = field(default_factory=dict)
    """Imported name -> address of its stub."""
    slots: dict[SymbolKey, int] = field(default_factory=dict)
    """Imported name, or key of a symbol defined here that is reached through a slot -> address of the slot."""
    slot_targets: dict[SymbolKey, Definition] = field(default_factory=dict)
    parts: dict[_Part, list[tuple[elf.ObjectFile, elf.Section]]] = field(
        default_factory=lambda: {part: [] for part in _Part}
    )
    pointer_count: int = 0
    relocations: list[bytes] = field(default_factory=list)
    """Entries of `.rela.dyn`."""

    # --- needs --------------------------------------------------------------------------------------------------------

    def sort_sections(self) -> None:
        """Sorts the kept sections by part, and finds every slot and pointer that they need."""
        self.stubs = dict.fromkeys(self.symbols.imports, 0)
        self.slots = dict.fromkeys(self.symbols.imports, 0)
        for owner in self.objects:
            for section in owner.sections:
                if section.flags & elf.SHF_ALLOC and section.size and not section.name.startswith(_DROPPED):
                    self._keep(owner, section)

    def _keep(self, owner: elf.ObjectFile, section: elf.Section) -> None:
        holds_addresses = False
        for relocation in section.relocations:
            value = self._rule(owner, section, relocation).value
            if value is Value.POINTER:
                holds_addresses = True
                self.pointer_count += 1
            elif value in USES_SLOT:
                key = self.symbols.key(owner, relocation.symbol)
                if key not in self.stubs:
                    self.slots[key] = 0
                    self.slot_targets[key] = self.symbols.definition(owner, relocation.symbol)
        self.parts[_part_of(section, holds_addresses)].append((owner, section))

    def _rule(self, owner: elf.ObjectFile, section: elf.Section, relocation: elf.Relocation) -> Rule:
        rule = self.machine.rules.get(relocation.kind)
        if rule is None:
            raise InternalError(
                f"{owner.name} has relocation {relocation.kind} of {self.machine.name} in {section.name} against "
                f"'{owner.symbols[relocation.symbol].name}', which the linker does not know"
            )
        return rule

    # --- places -------------------------------------------------------------------------------------------------------

    def lay_out(self) -> None:
        """Gives every section, slot and stub its address, in file order."""
        has_data = bool(self.parts[_Part.DATA] or self.parts[_Part.ZEROS])
        flags = 0
        for owner in self.objects:
            flags |= owner.flags
        self.image = image = Image(self.objects[0].machine, flags, self.machine.page_bytes, 7 if has_data else 6)
        self._place_tables()
        image.begin_section(".rodata", elf.SHT_PROGBITS, 0)
        self._place(_Part.CONSTANTS)
        image.begin_segment(elf.PF_R | elf.PF_X)
        image.begin_section(".text", elf.SHT_PROGBITS, elf.SHF_EXECINSTR, alignment=64)
        self._place(_Part.CODE)
        for name in self.stubs:
            self.stubs[name] = image.append(bytes(self.machine.stub_bytes), self.machine.stub_bytes)
        self.relro = image.begin_segment(elf.PF_R | elf.PF_W)
        image.begin_section(".dynamic", elf.SHT_DYNAMIC, elf.SHF_WRITE, entry_bytes=elf.DYN.size, link=".dynstr")
        image.append(self._dynamic())
        image.begin_section(".got", elf.SHT_PROGBITS, elf.SHF_WRITE, entry_bytes=_SLOT_BYTES)
        for key in self.slots:
            self.slots[key] = image.append(bytes(_SLOT_BYTES), _SLOT_BYTES)
        image.begin_section(".data.rel.ro", elf.SHT_PROGBITS, elf.SHF_WRITE)
        self._place(_Part.RELOCATED)
        if has_data:
            image.begin_segment(elf.PF_R | elf.PF_W)
            image.begin_section(".data", elf.SHT_PROGBITS, elf.SHF_WRITE)
            self._place(_Part.DATA)
            image.begin_section(".bss", elf.SHT_NOBITS, elf.SHF_WRITE)
            for _, section in self.parts[_Part.ZEROS]:
                section.address = image.reserve(section.size, section.alignment)
        image.close()

    def _place(self, part: _Part) -> None:
        seen: dict[tuple[bytes, int], int] = {}
        for _, section in self.parts[part]:
            # Kernels of one model often carry the same constant pools; equal ones are kept once.
            key = (section.data, section.alignment)
            if part is _Part.CONSTANTS and not section.relocations and key in seen:
                section.address = seen[key]
            else:
                section.address = seen[key] = self.image.append(section.data, section.alignment)

    def _place_tables(self) -> None:
        image, self.strings = self.image, elf.StringTable()
        names = [*self.stubs, *self.exports, ABI_SYMBOL]
        for name in names:
            self.strings.add(name)
        image.begin_section(".hash", elf.SHT_HASH, 0, entry_bytes=4, link=".dynsym")
        image.append(elf.hash_table(names))
        image.begin_section(".dynsym", elf.SHT_DYNSYM, 0, entry_bytes=elf.SYMBOL.size, link=".dynstr", info=1)
        image.append(bytes((len(names) + 1) * elf.SYMBOL.size))
        image.begin_section(".dynstr", elf.SHT_STRTAB, 0)
        image.append(bytes(self.strings.data), 1)
        image.begin_section(".rela.dyn", elf.SHT_RELA, 0, entry_bytes=elf.RELA.size, link=".dynsym")
        image.append(bytes((len(self.slots) + self.pointer_count) * elf.RELA.size))

    def _dynamic(self) -> bytes:
        hashes, symbols, strings, rela = (self.image.section(n) for n in (".hash", ".dynsym", ".dynstr", ".rela.dyn"))
        entries = [
            (elf.DT_HASH, hashes.address),
            (elf.DT_STRTAB, strings.address),
            (elf.DT_STRSZ, strings.size),
            (elf.DT_SYMTAB, symbols.address),
            (elf.DT_SYMENT, elf.SYMBOL.size),
            (elf.DT_RELA, rela.address),
            (elf.DT_RELASZ, rela.size),
            (elf.DT_RELAENT, elf.RELA.size),
            (elf.DT_NULL, 0),
        ]
        return b"".join(elf.DYN.pack(*entry) for entry in entries)

    # --- values -------------------------------------------------------------------------------------------------------

    def relocate(self) -> None:
        """Patches every place, and collects what only the loader can know."""
        self.import_index = {name: index for index, name in enumerate(self.stubs, start=1)}
        for key, slot in self.slots.items():
            if isinstance(key, str) and key in self.stubs:
                at = self.image.offset_of(self.stubs[key])
                self.image.data[at : at + self.machine.stub_bytes] = self.machine.make_stub(self.stubs[key], slot)
                self._relocate_to_import(slot, key)
            else:
                self._relocate_to_address(slot, self.slot_targets[key].address)
        for part, sections in self.parts.items():
            for owner, section in sections if part is not _Part.ZEROS else ():
                self._relocate_section(owner, section)

    def _relocate_section(self, owner: elf.ObjectFile, section: elf.Section) -> None:
        if not section.relocations:
            return
        base = self.image.offset_of(section.address) - section.address
        pairs: dict[int, int] = {}
        # The low half of a RISC-V pair names the place of the high half, which may come later: it waits.
        low_halves = []
        for relocation in section.relocations:
            rule, place = self._rule(owner, section, relocation), section.address + relocation.offset
            if rule.value is Value.PAIRED:
                low_halves.append((rule, place, self.symbols.definition(owner, relocation.symbol).address))
            elif rule.value is Value.POINTER:
                self._relocate_pointer(owner, section, relocation, place)
            elif rule.patch is not None:
                value = pairs[place] = self._value(rule.value, owner, relocation, place)
                try:
                    rule.patch(self.image.data, base + place, value)
                except OverflowError as error:
                    name = owner.symbols[relocation.symbol].name
                    what = f"relocation {relocation.kind} against '{name}'"
                    raise InternalError(f"{owner.name}: {what}: {error}") from None
        for rule, place, high_half in low_halves:
            assert rule.patch is not None
            rule.patch(self.image.data, base + place, pairs[high_half])

    def _value(self, kind: Value, owner: elf.ObjectFile, relocation: elf.Relocation, place: int) -> int:
        key = self.symbols.key(owner, relocation.symbol)
        if kind in USES_SLOT:
            address = self.slots[key]
        elif isinstance(key, str) and key in self.stubs:
            address = self.stubs[key]
        else:
            address = self.symbols.definition(owner, relocation.symbol).address
        address += relocation.addend
        if kind in (Value.RELATIVE, Value.SLOT_RELATIVE):
            return address - place
        if kind in (Value.PAGE, Value.SLOT_PAGE):
            return address // _PAGE * _PAGE - place // _PAGE * _PAGE
        return address

    def _relocate_pointer(
        self, owner: elf.ObjectFile, section: elf.Section, relocation: elf.Relocation, place: int
    ) -> None:
        key = self.symbols.key(owner, relocation.symbol)
        if not isinstance(key, str) or key not in self.stubs:
            self._relocate_to_address(
                place, self.symbols.definition(owner, relocation.symbol).address + relocation.addend
            )
        elif relocation.addend == 0:
            self._relocate_to_import(place, key)
        else:
            raise InternalError(f"{owner.name}: {section.name} holds import '{key}' plus {relocation.addend}")

    def _relocate_to_address(self, place: int, address: int) -> None:
        at = self.image.offset_of(place)
        self.image.data[at : at + 8] = address.to_bytes(8, "little")
        self.relocations.append(elf.RELA.pack(place, self.machine.relative, address))

    def _relocate_to_import(self, place: int, name: str) -> None:
        info = self.import_index[name] << 32 | self.machine.glob_dat
        self.relocations.append(elf.RELA.pack(place, info, 0))

    # --- file ---------------------------------------------------------------------------------------------------------

    def write(self) -> bytes:
        symbols = [DynamicSymbol(name) for name in self.stubs]
        for name in self.exports:
            one = self.symbols.definitions[name]
            symbols.append(DynamicSymbol(name, one.address, one.symbol.size, ".text"))
        symbols.append(DynamicSymbol(ABI_SYMBOL, EXECUTABLE_ABI_VERSION, kind=elf.STT_OBJECT, is_absolute=True))
        table = self.image.section(".rela.dyn")
        assert len(self.relocations) * elf.RELA.size == table.size
        self.image.data[table.offset : table.offset + table.size] = b"".join(self.relocations)
        return self.image.write(symbols, self.strings, self.relro)


def _part_of(section: elf.Section, holds_addresses: bool) -> _Part:
    if section.flags & elf.SHF_EXECINSTR:
        return _Part.CODE
    if section.kind == elf.SHT_NOBITS:
        return _Part.ZEROS
    if section.name.startswith(".data.rel.ro") or (holds_addresses and not section.flags & elf.SHF_WRITE):
        return _Part.RELOCATED
    return _Part.DATA if section.flags & elf.SHF_WRITE else _Part.CONSTANTS
