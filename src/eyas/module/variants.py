"""The variants of a fat module: one program for each target, and variants.bin, by which the runtime chooses among them.

variants.bin                     names, targets and needs of all variants, best first
variants/NAME/manifest.json      and program.bin, executables/...: what a module of one program has at its root
parameters.bin                   shared
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.errors import ModuleError
from eyas.module.program import Program

VARIANTS, FOLDER = "variants.bin", "variants"

_MAGIC = b"EYASVAR\0"


@dataclass(frozen=True)
class Variant:
    """One program with all that only it uses. `target` is what it was compiled for, and what people call it."""

    program: Program
    executables: Mapping[str, bytes]
    manifest: Mapping[str, Any]
    target: str = ""

    @property
    def needs(self) -> VariantNeeds:
        """What a device must offer to run it."""
        executables = tuple((one.format, one.features) for one in self.program.executables)
        return VariantNeeds(folder_name(self.target), self.target, executables)


@dataclass(frozen=True)
class VariantNeeds:
    """One line of variants.bin."""

    name: str
    """Its folder below `variants/`."""
    target: str
    executables: tuple[tuple[str, tuple[str, ...]], ...]
    """Format and features of each."""

    @property
    def folder(self) -> str:
        return f"{FOLDER}/{self.name}/"


def folder_name(target: str) -> str:
    """A target's text as the name of a folder: `llvm-cpu:x86_64:znver4:-avx2` -> `llvm-cpu-x86_64-znver4-no-avx2`."""
    text = re.sub(r"(^|[:,])-", r"\1no-", target)
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).strip("-") or "variant"


def check_names(variants: Sequence[Variant]) -> None:
    """Refuses variants that nobody could tell apart."""
    seen: dict[str, str] = {}
    for variant in variants:
        name = variant.needs.name
        if name in seen:
            raise ModuleError(f"two variants are for the targets '{seen[name]}' and '{variant.target}': give each once")
        seen[name] = variant.target


def encode_variants(variants: Sequence[Variant]) -> bytes:
    """The bytes of variants.bin."""
    out = bytearray(_MAGIC + struct.pack("<I", len(variants)))

    def text(value: str) -> None:
        data = value.encode()
        out.extend(struct.pack("<I", len(data)) + data)

    for needs in (one.needs for one in variants):
        text(needs.name)
        text(needs.target)
        out.extend(struct.pack("<I", len(needs.executables)))
        for format_, features in needs.executables:
            text(format_)
            out.extend(struct.pack("<I", len(features)))
            for feature in features:
                text(feature)
    return bytes(out)


def decode_variants(data: bytes) -> tuple[VariantNeeds, ...]:
    """The inverse."""
    if data[:8] != _MAGIC:
        raise ModuleError("variants.bin is damaged")
    at = 8

    def number() -> int:
        nonlocal at
        (value,) = struct.unpack_from("<I", data, at)
        at += 4
        return value

    def text() -> str:
        nonlocal at
        length = number()
        at += length
        if at > len(data):
            raise ModuleError("variants.bin is damaged: it ends too early")
        return data[at - length : at].decode()

    try:
        found = []
        for _ in range(number()):
            name, target = text(), text()
            executables = tuple((text(), tuple(text() for _ in range(number()))) for _ in range(number()))
            found.append(VariantNeeds(name, target, executables))
        return tuple(found)
    except (struct.error, UnicodeDecodeError) as error:
        raise ModuleError(f"variants.bin is damaged: {error}") from error


def choose(variants: Sequence[VariantNeeds], wanted: str) -> VariantNeeds:
    """The variant of that name or target, or the only one that contains it; as the runtime chooses."""
    for one in variants:
        if wanted in (one.name, one.target):
            return one
    similar = [one for one in variants if wanted in one.name or wanted in one.target]
    if len(similar) == 1:
        return similar[0]
    names = ", ".join(one.target for one in variants)
    raise ModuleError(f"{'more than one' if similar else 'no'} variant is called '{wanted}'; the module has: {names}")
