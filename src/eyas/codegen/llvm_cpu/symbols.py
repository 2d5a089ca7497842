"""Symbols of many objects as one table: who defines what, and what must be imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eyas.codegen.llvm_cpu import elf
from eyas.codegen.llvm_cpu.imports import ALLOWED_IMPORTS
from eyas.errors import InternalError

# What identifies a symbol across objects: its name, or for a local one its object and its index there.
SymbolKey = str | tuple[int, int]


@dataclass(frozen=True)
class Definition:
    """Where a symbol is. Its address is known once the linker has placed its section."""

    owner: elf.ObjectFile
    symbol: elf.Symbol

    @property
    def address(self) -> int:
        if self.symbol.section == elf.SHN_ABS:
            return self.symbol.value
        return self.owner.sections[self.symbol.section].address + self.symbol.value


class SymbolTable:
    """Global definitions by name, and the names that no object defines. Local names stay with their object."""

    def __init__(self, objects: Sequence[elf.ObjectFile], exports: Sequence[str]) -> None:
        self.definitions: dict[str, Definition] = {}
        self.imports: list[str] = []
        for owner in objects:
            for symbol in owner.symbols:
                if symbol.binding != elf.STB_LOCAL and symbol.is_defined:
                    self._define(owner, symbol)
        for name in exports:
            if name not in self.definitions:
                raise InternalError(f"no object defines the export '{name}'; defined: {', '.join(self.definitions)}")
        for owner in objects:
            for symbol in owner.symbols:
                if symbol.name and not symbol.is_defined and symbol.name not in self.definitions:
                    self._import(owner, symbol.name)

    def key(self, owner: elf.ObjectFile, index: int) -> SymbolKey:
        symbol = owner.symbols[index]
        return (id(owner), index) if symbol.binding == elf.STB_LOCAL else symbol.name

    def definition(self, owner: elf.ObjectFile, index: int) -> Definition:
        symbol = owner.symbols[index]
        return Definition(owner, symbol) if symbol.binding == elf.STB_LOCAL else self.definitions[symbol.name]

    def _define(self, owner: elf.ObjectFile, symbol: elf.Symbol) -> None:
        present = self.definitions.get(symbol.name)
        if present is None or present.symbol.binding == elf.STB_WEAK:
            self.definitions[symbol.name] = Definition(owner, symbol)
        elif symbol.binding != elf.STB_WEAK:
            raise InternalError(f"'{symbol.name}' is defined in {present.owner.name} and in {owner.name}")

    def _import(self, owner: elf.ObjectFile, name: str) -> None:
        if name not in ALLOWED_IMPORTS:
            raise InternalError(
                f"{owner.name} uses '{name}', which no object defines and the runtime does not offer; "
                f"imports can be: {', '.join(sorted(ALLOWED_IMPORTS))}"
            )
        if name not in self.imports:
            self.imports.append(name)
