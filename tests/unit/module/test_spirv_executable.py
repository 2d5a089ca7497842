"""Executables of Vulkan devices: what is written is read, and what is damaged is refused."""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import pytest

from eyas.errors import ModuleError
from eyas.module.spirv_executable import Kernel, Term, read_executable, write_executable

CODE = struct.pack("<5I", 0x07230203, 0x00010300, 0, 8, 0) + struct.pack("<I", 0x00010038) * 3
PLAIN = Kernel("add", CODE, 3, 1, (64, 1, 1), 0b100)
RICH = Kernel(
    "größer", CODE + CODE[20:], 200, 7, (8, 4, 2), 1 << 199 | 1, 1 << 130, True, True,
    (Term(4096), Term(8, (0, 6, 6, 1, 2))), 32,
)  # fmt: skip


@pytest.mark.parametrize("kernels", [(), (PLAIN,), (RICH, PLAIN), (PLAIN, replace(PLAIN, name=""))])
def test_what_is_written_is_read(kernels: tuple[Kernel, ...]) -> None:
    assert read_executable(write_executable(kernels)) == kernels


def test_the_layout_is_that_of_the_format() -> None:
    data = write_executable([RICH])
    assert data[:4] == b"EYSV" and struct.unpack_from("<3I", data, 4) == (1, 1, len(data))
    words = struct.unpack_from("<16I", data, 16)
    name, name_bytes, code, code_bytes, bindings, constants, *local_size, flags = words[:10]
    assert data[name : name + name_bytes].decode() == "größer" and code % 4 == 0
    assert data[code : code + code_bytes] == RICH.code
    assert (bindings, constants, tuple(local_size), flags) == (200, 7, (8, 4, 2), 7)
    scratch, count, subgroup, *reserved = words[10:]
    assert (count, subgroup, reserved) == (2, 32, [0, 0, 0])
    assert struct.unpack_from("<QI5I", data, scratch + 32) == (8, 5, 0, 6, 6, 1, 2)
    assert struct.unpack_from("<4Q", data, 16 + 64) == (1, 0, 0, 1 << 7)
    assert struct.unpack_from("<4Q", data, 16 + 96) == (0, 0, 1 << 2, 0)


def patched(offset: int, value: int) -> bytes:
    data = bytearray(write_executable([RICH]))
    struct.pack_into("<I", data, offset, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("offset", "value", "said"),
    [
        (0, 0, "begins with"), (4, 2, "version 2"), (8, 2**32 - 1, "the table of kernels"),
        (12, 7, "says that it has 7"),
        (16, 2**32 - 4, "the name of kernel 0"), (20, 2**32 - 1, "the name of kernel 0"),
        (24, 2**32 - 4, "the code of kernel 0"), (28, 2**32 - 4, "the code of kernel 0"), (28, 18, "not SPIR-V"),
        (32, 257, "257 bindings"), (32, 199, "beyond its 199"), (36, 6, "a constant beyond its 6"),
        (40, 0, "0x4x2 threads"), (52, 15, "flags are 15"), (52, 3, "flags are 3"),
        (56, 2**32 - 1, "the scratch memory"), (60, 2**28, "the scratch memory"), (68, 1, "reserved"),
    ],
)  # fmt: skip
def test_damage_is_named(offset: int, value: int, said: str) -> None:
    with pytest.raises(ModuleError, match=said):
        read_executable(patched(offset, value))


def test_a_name_that_is_no_text_and_too_many_symbols() -> None:
    data = write_executable([RICH])
    name, scratch = struct.unpack_from("<I", data, 16)[0], struct.unpack_from("<I", data, 56)[0]
    with pytest.raises(ModuleError, match="not UTF-8"):
        read_executable(patched(name, 0xFFFFFFFF))
    with pytest.raises(ModuleError, match="6 symbols; at most 5"):
        read_executable(patched(scratch + 32 + 8, 6))


def test_code_lies_at_multiples_of_four() -> None:
    data = bytearray(write_executable([PLAIN]))
    at = struct.unpack_from("<I", data, 24)[0]
    data.extend(bytes(4))
    data[at + 1 : at + 1 + len(CODE)] = CODE
    struct.pack_into("<I", data, 12, len(data))
    struct.pack_into("<I", data, 24, at + 1)
    with pytest.raises(ModuleError, match="no multiple of 4"):
        read_executable(bytes(data))


@pytest.mark.parametrize("length", range(0, len(write_executable([PLAIN])), 7))
def test_what_is_cut_short_is_refused(length: int) -> None:
    with pytest.raises(ModuleError):
        read_executable(write_executable([PLAIN])[:length])


def test_random_damage_is_refused_or_read() -> None:
    """Whatever a header says, reading it ends in kernels that can be written again, or in a ModuleError."""
    chance, whole = random.Random(1), write_executable([RICH, PLAIN])
    refused = 0
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(16 + 2 * 128)
            data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        try:
            kernels = read_executable(bytes(data))
        except ModuleError:
            refused += 1
        else:
            assert read_executable(write_executable(kernels)) == kernels
    assert refused > 1000
