"""What a table of instructions is made of: the rows of `isa.py` and `vmvx_isa.py`, as they are written and as they are
printed. Imports nothing but the standard library, so that a build needs only Python.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=enum.Enum)


@dataclass(frozen=True)
class Operand(Generic[K]):
    """One operand: a name, a kind, and whether it is a list (a 16-bit count, then the elements)."""

    name: str
    kind: K
    is_list: bool = False

    @property
    def is_dst(self) -> bool:
        return self.kind.name.endswith("_DST")

    @property
    def letter(self) -> str:
        return self.kind.value + ("*" if self.is_list else "")

    def __str__(self) -> str:
        return f"{self.name}:{self.letter}"


@dataclass(frozen=True)
class Op(Generic[K]):
    """One instruction of a table."""

    name: str
    code: int
    operands: tuple[Operand[K], ...]
    doc: str
    terminator: bool = False

    @property
    def format(self) -> str:
        """The operands as the C decoder reads them, for example `Rii*b*`."""
        return "".join(operand.letter for operand in self.operands)

    @property
    def text(self) -> str:
        """The operands as the table has them, for example `dst:R bytes:i`."""
        return " ".join(map(str, self.operands))


def parse_operands(text: str, kinds: type[K]) -> tuple[Operand[K], ...]:
    """The operands that `Op.text` prints."""
    parts = (part.split(":") for part in text.split())
    return tuple(Operand(name, kinds(letter[0]), letter.endswith("*")) for name, letter in parts)


def markdown_kinds(units: Mapping[K, int], doc: Mapping[K, str]) -> Iterable[str]:
    """The kinds of operands, as a table of a reference page."""
    yield "| letter | units | meaning |"
    yield "|---|---|---|"
    for kind, count in units.items():
        yield f"| `{kind.value}` | {count} | {doc[kind]} |"
