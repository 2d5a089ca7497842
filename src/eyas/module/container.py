"""The `.eyas` container: a zip of stored entries, every one digested, data aligned so that weights are mapped.

    index.bin              place, length and SHA-256 of every entry below, and its own; always the first, at byte 64
    manifest.json          provenance and statistics, for people and tools
    program.bin            the VM program (program.py)
    executables/NAME.elf   machine code, or NAME.vmvx: portable bytecode, or NAME.spirv: kernels of a GPU
    parameters.bin         the weights, each at a multiple of 64 bytes; starts on a page

A fat module has the middle three once for each target, see variants.py. The C runtime reads index.bin and never the
zip's own structures, which are there for `unzip -l` and its kin. Weights are streamed to the file one after the other,
and never all in memory at once.

    parameters, data = layout_parameters({"weight": array, ...})   # -> Parameter records with offsets, what to write
    write("model.eyas", program, executables={"cpu": elf_bytes}, parameters=data, manifest={...})
    container = read("model.eyas"); container.program; container.manifest; container.executables["cpu"]
"""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from eyas.errors import ModuleError
from eyas.module.pool import ALIGNMENT, CHUNK, Data, bytes_view, layout_parameters, stored_bytes
from eyas.module.program import Program, decode, encode
from eyas.module.variants import VARIANTS, Variant, VariantNeeds, check_names, choose, decode_variants, encode_variants

__all__ = [
    "Container",
    "Entry",
    "describe",
    "layout_parameters",
    "read",
    "stored_bytes",
    "to_bytes",
    "write",
    "write_variants",
]

VERSION, FAT_VERSION = 1, 2
PAGE = 4096
INDEX_OFFSET = 64
INDEX_NAME, MANIFEST, PROGRAM, PARAMETERS = "index.bin", "manifest.json", "program.bin", "parameters.bin"

_INDEX_MAGIC = b"EYASIDX\0"
_PADDING_ID = 0x5945  # 'EY': the extra field that holds padding
_EPOCH = (2020, 1, 1, 0, 0, 0)  # fixed, so that equal modules are equal files

# (name, alignment, pieces as (offset, data)) of one entry.
_Piece = tuple[str, int, Sequence[tuple[int, Data]]]


def write(
    target: str | os.PathLike[str] | IO[bytes],
    program: Program,
    executables: Mapping[str, bytes],
    parameters: Iterable[tuple[int, Data]] = (),
    manifest: Mapping[str, Any] | None = None,
) -> None:
    """Writes a module of one program. `parameters` are (offset in parameters.bin, array or buffer), by rising offset.

    A file is replaced only when the whole has been written.
    """
    write_variants(target, [Variant(program, executables, manifest or {})], parameters)


def write_variants(
    target: str | os.PathLike[str] | IO[bytes],
    variants: Sequence[Variant],
    parameters: Iterable[tuple[int, Data]] = (),
) -> None:
    """Writes a module with a program for each target, best first, whose offsets are those of `parameters`
    (`pool.share_parameters`). One program alone gives a plain module."""
    if not isinstance(target, (str, os.PathLike)):
        _write(target, variants, parameters)
        return
    path = Path(target)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w+b") as file:
            _write(file, variants, parameters)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def to_bytes(
    program: Program,
    executables: Mapping[str, bytes],
    parameters: Iterable[tuple[int, Data]] = (),
    manifest: Mapping[str, Any] | None = None,
) -> bytes:
    """The module as bytes, for `eyas.runtime.load`."""
    out = io.BytesIO()
    write_variants(out, [Variant(program, executables, manifest or {})], parameters)
    return out.getvalue()


def _write(file: IO[bytes], variants: Sequence[Variant], parameters: Iterable[tuple[int, Data]]) -> None:
    pieces: list[_Piece] = []
    version = VERSION if len(variants) == 1 else FAT_VERSION
    if version == FAT_VERSION:
        check_names(variants)
        pieces.append((MANIFEST, ALIGNMENT, [(0, json.dumps(_summary(variants), indent=2).encode())]))
        pieces.append((VARIANTS, ALIGNMENT, [(0, encode_variants(variants))]))
    for variant in variants:
        pieces += _variant_pieces(variant, variant.needs.folder if version == FAT_VERSION else "")
    weights = list(parameters)
    if weights:
        pieces.append((PARAMETERS, PAGE, weights))

    blank = [(bytes(32), 0, 0, name) for name, _, _ in pieces]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _add(archive, INDEX_NAME, ALIGNMENT, [(0, _encode_index(blank, version))])
        entries = [(*_add(archive, name, alignment, data), name) for name, alignment, data in pieces]
        _patch_index(archive, file, _encode_index(entries, version))


def _variant_pieces(variant: Variant, folder: str) -> list[_Piece]:
    program = variant.program
    missing = [one.name for one in program.executables if one.name not in variant.executables]
    if missing:
        raise ModuleError(f"the program names executables without bytes: {', '.join(missing)}")
    text = json.dumps({"format": VERSION, **describe(program), **variant.manifest}, indent=2).encode()
    return [
        (folder + MANIFEST, ALIGNMENT, [(0, text)]),
        (folder + PROGRAM, ALIGNMENT, [(0, encode(program))]),
        *((folder + one.entry, PAGE, [(0, variant.executables[one.name])]) for one in program.executables),
    ]


def _summary(variants: Sequence[Variant]) -> dict[str, Any]:
    """What the manifest of a fat module says: which variants there are, best first."""
    functions = {one.name: str(one.signature) for one in variants[0].program.functions}
    return {
        "format": FAT_VERSION,
        "functions": functions,
        "variants": [
            {
                "name": needs.name,
                "target": needs.target,
                "executables": [
                    {"format": format_, "features": list(features)} for format_, features in needs.executables
                ],
            }
            for needs in (one.needs for one in variants)
        ],
    }


def _add(
    archive: zipfile.ZipFile, name: str, alignment: int, pieces: Sequence[tuple[int, Data]]
) -> tuple[bytes, int, int]:
    """Stores one entry with aligned data; (digest, offset, length)."""
    views = [(offset, bytes_view(data)) for offset, data in pieces]
    length = views[-1][0] + views[-1][1].nbytes
    zip64 = length > zipfile.ZIP64_LIMIT  # 2 GiB: a zip's own fields have 32 bits, which zipfile takes as signed
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    file = archive.fp
    assert file is not None
    header = file.tell() + 30 + len(name.encode()) + (20 if zip64 else 0)
    padding = -header % alignment
    if 0 < padding < 4:
        padding += alignment
    if padding:
        info.extra = struct.pack("<HH", _PADDING_ID, padding - 4) + bytes(padding - 4)
    digest = hashlib.sha256()
    with archive.open(info, "w", force_zip64=zip64) as out:
        start = file.tell()
        assert start % alignment == 0, (name, start)
        at = 0
        for offset, view in views:
            if offset < at:
                raise ModuleError(f"{name}: data at offset {offset} overlaps what ends at {at}; sort by offset")
            _put(out, digest, memoryview(bytes(offset - at)))
            _put(out, digest, view)
            at = offset + view.nbytes
    info.extra = b""  # the central directory needs no padding
    return digest.digest(), start, length


def _put(out: IO[bytes], digest: Any, view: memoryview) -> None:
    for at in range(0, view.nbytes, CHUNK):
        chunk = view[at : at + CHUNK]
        digest.update(chunk)
        out.write(chunk)


def _encode_index(entries: Sequence[tuple[bytes, int, int, str]], version: int) -> bytes:
    body = b"".join(
        digest + struct.pack("<QQI", offset, length, len(name.encode())) + name.encode()
        for digest, offset, length, name in entries
    )
    head = _INDEX_MAGIC + struct.pack("<III", version, len(entries), 20 + len(body) + 32)
    return head + body + hashlib.sha256(head + body).digest()


def _patch_index(archive: zipfile.ZipFile, file: IO[bytes], index: bytes) -> None:
    """Puts the real index where the blank one is, with its CRC in both places where a zip keeps it."""
    info = archive.infolist()[0]
    assert info.file_size == len(index)
    info.CRC = zlib.crc32(index)
    end = file.tell()
    file.seek(info.header_offset + 14)
    file.write(struct.pack("<I", info.CRC))
    file.seek(INDEX_OFFSET)
    file.write(index)
    file.seek(end)


def describe(program: Program) -> dict[str, Any]:
    """What the manifest says of a program by itself."""
    return {
        "functions": {f.name: str(f.signature) for f in program.functions},
        "executables": {
            e.name: {"format": e.format, "features": list(e.features), "exports": [x.name for x in e.exports]}
            for e in program.executables
        },
        **({"states": {s.name: f"{s.dtype}{list(s.shape)}" for s in program.states}} if program.states else {}),
        "parameters": {"count": len(program.parameters), "bytes": stored_bytes(program.parameters)},
    }


@dataclass(frozen=True)
class Entry:
    """One line of the index."""

    name: str
    offset: int
    length: int
    digest: bytes


@dataclass(frozen=True)
class Container:
    """A module's parts, for tools. The bytes of executables and parameters are views of the mapped file.

    `variants` are those of a fat module, best first; `variant` is the one that the rest is of.
    """

    manifest: dict[str, Any]
    program: Program
    executables: dict[str, memoryview]
    parameters: memoryview
    entries: tuple[Entry, ...]
    variants: tuple[VariantNeeds, ...] = ()
    variant: VariantNeeds | None = None

    def parameter(self, name: str) -> memoryview:
        """The bytes of one weight that is stored inside."""
        for parameter in self.program.parameters:
            if parameter.name == name and not parameter.external:
                return self.parameters[parameter.offset : parameter.offset + parameter.bytes]
        raise ModuleError(f"the module stores no parameter {name!r}")


def read(source: str | os.PathLike[str] | bytes, verify: bool = True, variant: str | None = None) -> Container:
    """Opens a module without running it. `verify` checks every digest, and that the zip agrees with the index.
    `variant` names one of a fat module, else the first is opened."""
    data = _bytes_of(source)
    try:
        version, entries = _decode_index(data)
    except (struct.error, UnicodeDecodeError) as error:
        raise ModuleError(f"not an .eyas module: its index is damaged: {error}") from error
    parts = {e.name: data[e.offset : e.offset + e.length] for e in entries}
    if verify:
        for entry in entries:
            if hashlib.sha256(parts[entry.name]).digest() != entry.digest:
                raise ModuleError(f"{entry.name!r} was altered after the module was written")
        _check_zip(data, entries)
    variants: tuple[VariantNeeds, ...] = ()
    if version == FAT_VERSION:
        variants = decode_variants(bytes(_part(parts, VARIANTS)))
        opened = choose(variants, variant) if variant is not None else variants[0]
        folder = opened.folder
    elif variant is not None:
        raise ModuleError(f"no variant is called '{variant}': the module holds one program for one target")
    else:
        opened, folder = None, ""
    try:
        manifest = json.loads(bytes(_part(parts, folder + MANIFEST)))
    except ValueError as error:
        raise ModuleError(f"manifest.json is not JSON: {error}") from error
    program = decode(bytes(_part(parts, folder + PROGRAM)))
    executables = {one.name: _part(parts, folder + one.entry) for one in program.executables}
    parameters = parts.get(PARAMETERS, memoryview(b""))
    return Container(manifest, program, executables, parameters, entries, variants, opened)


def _bytes_of(source: str | os.PathLike[str] | bytes) -> memoryview:
    if isinstance(source, bytes):
        return memoryview(source)
    try:
        with open(source, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise ModuleError(f"{os.fspath(source)}: cannot open it: {error}") from error


def _part(parts: Mapping[str, memoryview], name: str) -> memoryview:
    if name not in parts:
        raise ModuleError(f"not an .eyas module: it has no {name}")
    return parts[name]


def _decode_index(data: memoryview) -> tuple[int, tuple[Entry, ...]]:
    start = INDEX_OFFSET
    if len(data) < start + 52 or data[:4] != b"PK\3\4" or data[start : start + 8] != _INDEX_MAGIC:
        raise ModuleError("not an .eyas module: it is not a zip that starts with index.bin")
    version, count, length = struct.unpack_from("<III", data, start + 8)
    if version not in (VERSION, FAT_VERSION):
        raise ModuleError(
            f"the module has container version {version}; this Eyas reads {VERSION} and {FAT_VERSION}: recompile it"
        )
    index = bytes(data[start : start + length])
    if length < 52 or len(index) < length or hashlib.sha256(index[:-32]).digest() != index[-32:]:
        raise ModuleError("not an .eyas module: its index is damaged")
    entries, at = [], 20
    for _ in range(count):
        digest = index[at : at + 32]
        offset, size, name_length = struct.unpack_from("<QQI", index, at + 32)
        at += 52 + name_length
        name = index[at - name_length : at].decode()
        if offset + size > len(data):
            raise ModuleError(
                f"the module is truncated: {name!r} ends at byte {offset + size}, the file at {len(data)}"
            )
        entries.append(Entry(name, offset, size, digest))
    return version, tuple(entries)


def _check_zip(data: memoryview, entries: tuple[Entry, ...]) -> None:
    """People look through the zip, the runtime through the index: both must show the same."""
    try:
        with zipfile.ZipFile(_View(data)) as archive:  # type: ignore[arg-type]
            infos = {i.filename: i for i in archive.infolist() if i.filename != INDEX_NAME}
    except zipfile.BadZipFile as error:
        raise ModuleError(f"the zip around the module is damaged: {error}") from error
    if infos.keys() != {e.name for e in entries}:
        raise ModuleError("the zip lists other entries than the module's index")
    for entry in entries:
        header = infos[entry.name].header_offset
        name_length, extra_length = struct.unpack_from("<HH", data, header + 26)
        if header + 30 + name_length + extra_length != entry.offset or infos[entry.name].file_size != entry.length:
            raise ModuleError(f"the zip and the index disagree on where {entry.name!r} is")


class _View(io.RawIOBase):
    """A memoryview as a file, without a copy."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, len(self._data))[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        part = self._data[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)
