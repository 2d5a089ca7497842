"""Linked images load and run on this machine, and have the right structure for the others."""

from __future__ import annotations

import ctypes
import re
import shutil
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import native  # noqa: E402

from eyas.codegen.llvm_cpu import elf, imports  # noqa: E402
from eyas.codegen.llvm_cpu.linker import link  # noqa: E402
from eyas.codegen.llvm_cpu.llvm import emit_object  # noqa: E402
from eyas.codegen.llvm_cpu.relocations import AARCH64, MACHINES, RISCV64  # noqa: E402
from eyas.errors import InternalError  # noqa: E402
from eyas.ir import make_context, parse_module  # noqa: E402
from eyas.targets import Target  # noqa: E402

ALL = ["llvm-cpu:x86_64", "llvm-cpu:aarch64", "llvm-cpu:riscv64"]

# Constants, a jump table, a table of functions (two of them imported), calls of imports, and a helper.
RICH = """
llvm.mlir.global private constant @weights(dense<[1.5, 2.5, 3.5, 4.5]> : tensor<4xf32>) : !llvm.array<4 x f32>
llvm.mlir.global private constant @table() : !llvm.array<3 x ptr> {
  %0 = llvm.mlir.poison : !llvm.array<3 x ptr>
  %1 = llvm.mlir.addressof @twice : !llvm.ptr
  %2 = llvm.mlir.addressof @sinf : !llvm.ptr
  %3 = llvm.mlir.addressof @cosf : !llvm.ptr
  %4 = llvm.insertvalue %1, %0[0] : !llvm.array<3 x ptr>
  %5 = llvm.insertvalue %2, %4[1] : !llvm.array<3 x ptr>
  %6 = llvm.insertvalue %3, %5[2] : !llvm.array<3 x ptr>
  llvm.return %6 : !llvm.array<3 x ptr>
}
llvm.func @sinf(f32) -> f32
llvm.func @cosf(f32) -> f32
llvm.func @expf(f32) -> f32
llvm.func @logf(f32) -> f32
llvm.func @tanhf(f32) -> f32
llvm.func @memcpy(!llvm.ptr, !llvm.ptr, i64) -> !llvm.ptr
llvm.func internal @twice(%x: f32) -> f32 attributes {no_inline} {
  %0 = llvm.fadd %x, %x : f32
  llvm.return %0 : f32
}
llvm.func @weight(%i: i64) -> f32 {
  %0 = llvm.mlir.addressof @weights : !llvm.ptr
  %1 = llvm.getelementptr %0[0, %i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<4 x f32>
  %2 = llvm.load %1 : !llvm.ptr -> f32
  llvm.return %2 : f32
}
llvm.func @through_table(%i: i64, %x: f32) -> f32 {
  %0 = llvm.mlir.addressof @table : !llvm.ptr
  %1 = llvm.getelementptr %0[0, %i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<3 x ptr>
  %2 = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %3 = llvm.call %2(%x) : !llvm.ptr, (f32) -> f32
  llvm.return %3 : f32
}
llvm.func @switch(%i: i32, %x: f32) -> f32 {
  llvm.switch %i : i32, ^bb0 [0: ^bb1, 1: ^bb2, 2: ^bb3, 3: ^bb4, 4: ^bb5, 5: ^bb6]
^bb0:
  llvm.return %x : f32
^bb1:
  %1 = llvm.call @sinf(%x) : (f32) -> f32
  llvm.return %1 : f32
^bb2:
  %2 = llvm.call @cosf(%x) : (f32) -> f32
  llvm.return %2 : f32
^bb3:
  %3 = llvm.call @expf(%x) : (f32) -> f32
  llvm.return %3 : f32
^bb4:
  %4 = llvm.call @logf(%x) : (f32) -> f32
  llvm.return %4 : f32
^bb5:
  %5 = llvm.call @tanhf(%x) : (f32) -> f32
  llvm.return %5 : f32
^bb6:
  %6 = llvm.call @twice(%x) : (f32) -> f32
  llvm.return %6 : f32
}
llvm.func @copy(%to: !llvm.ptr, %from: !llvm.ptr, %n: i64) {
  %0 = llvm.call @memcpy(%to, %from, %n) : (!llvm.ptr, !llvm.ptr, i64) -> !llvm.ptr
  llvm.return
}
"""
RICH_EXPORTS = ["weight", "through_table", "switch", "copy"]


def object_of(text: str, target: Target) -> bytes:
    return emit_object(parse_module(text, make_context()), target)


def caller(name: str, callee: str) -> str:
    return f"""llvm.func @{callee}(f32) -> f32
    llvm.func @{name}(%x: f32) -> f32 {{
      %c = llvm.mlir.constant(1.25 : f32) : f32
      %0 = llvm.call @{callee}(%x) : (f32) -> f32
      %1 = llvm.fadd %0, %c : f32
      llvm.return %1 : f32
    }}"""


def float_function(library: ctypes.CDLL, name: str, *arguments: type):
    function = library[name]
    function.argtypes, function.restype = arguments, ctypes.c_float
    return function


# --- on this machine --------------------------------------------------------------------------------------------------


def test_constants_tables_jumps_and_imports_run() -> None:
    target = Target.host()
    library = native.load(link([object_of(RICH, target)], RICH_EXPORTS, target))
    weight = float_function(library, "weight", ctypes.c_int64)
    assert [weight(index) for index in range(4)] == [1.5, 2.5, 3.5, 4.5]
    x = 0.75
    through = float_function(library, "through_table", ctypes.c_int64, ctypes.c_float)
    np.testing.assert_allclose([through(i, x) for i in range(3)], [2 * x, np.sin(x), np.cos(x)], rtol=1e-6)
    switch = float_function(library, "switch", ctypes.c_int32, ctypes.c_float)
    expected = [np.sin(x), np.cos(x), np.exp(x), np.log(x), np.tanh(x), 2 * x, x]
    np.testing.assert_allclose([switch(i, x) for i in range(7)], expected, rtol=1e-6)
    source, target_bytes = ctypes.create_string_buffer(b"falcon"), ctypes.create_string_buffer(7)
    library.copy(target_bytes, source, ctypes.c_int64(7))
    assert target_bytes.value == b"falcon"


def test_abi_version_is_an_absolute_symbol_and_matches_the_header() -> None:
    library = native.load(link([object_of(RICH, Target.host())], RICH_EXPORTS, Target.host()))
    value = ctypes.cast(library[imports.ABI_SYMBOL], ctypes.c_void_p).value
    header = Path(__file__).parents[4] / "runtime/include/eyas/executable.h"
    assert value == int(re.search(r"EYAS_EXECUTABLE_ABI_VERSION (\d+)", header.read_text())[1])


def test_objects_call_each_other() -> None:
    target = Target.host()
    objects = [object_of(caller(f"f{i}", f"f{i + 1}" if i < 9 else "expf"), target) for i in range(10)]
    function = float_function(native.load(link(objects, ["f0"], target)), "f0", ctypes.c_float)
    np.testing.assert_allclose(function(0.5), np.exp(0.5) + 10 * 1.25, rtol=1e-6)


def test_data_that_changes_is_kept_apart() -> None:
    text = """
    llvm.mlir.global external @counter(41 : i64) : i64
    llvm.mlir.global external @zeros(dense<0> : tensor<512xi64>) : !llvm.array<512 x i64>
    llvm.func @next() -> i64 {
      %one = llvm.mlir.constant(1 : i64) : i64
      %z = llvm.mlir.addressof @zeros : !llvm.ptr
      %p = llvm.mlir.addressof @counter : !llvm.ptr
      %0 = llvm.load volatile %p : !llvm.ptr -> i64
      %1 = llvm.load volatile %z : !llvm.ptr -> i64
      %2 = llvm.add %0, %one : i64
      %3 = llvm.add %2, %1 : i64
      llvm.store volatile %3, %p : i64, !llvm.ptr
      llvm.return %3 : i64
    }"""
    function = native.load(link([object_of(text, Target.host())], ["next"], Target.host())).next
    function.restype = ctypes.c_int64
    assert [function(), function()] == [42, 43]


def test_a_hundred_objects_link_quickly() -> None:
    target = Target.host()
    one = object_of(RICH, target)
    objects = [
        one.replace(b"weight\0", b"wei%03d\0" % i)
        .replace(b"through_table\0", b"through_ta%03d\0" % i)
        .replace(b"switch\0", b"swi%03d\0" % i)
        .replace(b"copy\0", b"c%03d\0" % i)
        for i in range(100)
    ]
    begin = time.perf_counter()
    image = link(objects, [f"wei{i:03}" for i in range(100)], target)
    assert time.perf_counter() - begin < 1.0
    assert float_function(native.load(image), "wei077", ctypes.c_int64)(2) == 3.5


def test_equal_constants_are_kept_once() -> None:
    target = Target.host()
    big = ", ".join(f"{value}.0" for value in range(4096))
    text = """llvm.mlir.global private constant @w(dense<[BIG]> : tensor<4096xf32>) : !llvm.array<4096 x f32>
    llvm.func @NAME(%i: i64) -> f32 {
      %0 = llvm.mlir.addressof @w : !llvm.ptr
      %1 = llvm.getelementptr %0[0, %i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<4096 x f32>
      %2 = llvm.load %1 : !llvm.ptr -> f32
      llvm.return %2 : f32
    }""".replace("BIG", big)
    names = [f"f{i}" for i in range(8)]
    image = link([object_of(text.replace("NAME", name), target) for name in names], names, target)
    assert len(image) < 2 * 4096 * 4
    library = native.load(image)
    assert [float_function(library, name, ctypes.c_int64)(100) for name in names] == [100.0] * 8


def test_objects_may_call_their_exports_the_same() -> None:
    target = Target.host()
    text = "llvm.func @entry() -> f32 {\n %0 = llvm.mlir.constant(NUMBER : f32) : f32\n llvm.return %0 : f32\n}"
    objects = [object_of(text.replace("NUMBER", f"{number}.0"), target) for number in range(3)]
    library = native.load(link(objects, ["a", "b", "c"], target, "entry"))
    assert [float_function(library, name)() for name in "abc"] == [0.0, 1.0, 2.0]
    with pytest.raises(InternalError, match="no object defines the export 'b'"):
        link(objects[:1] + [object_of(caller("f", "expf"), target)], ["a", "b"], target, "entry")


def test_the_runtime_offers_every_import() -> None:
    source = (Path(__file__).parents[4] / "runtime/src/hal/cpu/imports.c").read_text()
    offered = set(re.findall(r"PLAIN\((\w+)\)", source)) | set(re.findall(r'NAMED\("(\w+)"', source))
    for name in re.findall(r"FLOAT_AND_DOUBLE\((\w+)\)", source):
        offered |= {name, f"{name}f"}
    assert imports.ALLOWED_IMPORTS <= offered


# --- errors -----------------------------------------------------------------------------------------------------------


def test_unknown_import_names_symbol_and_object() -> None:
    target = Target.host()
    objects = [object_of(RICH, target), object_of(caller("f", "launch_missiles"), target)]
    with pytest.raises(InternalError, match="object 1 uses 'launch_missiles'.*imports can be: .*expf"):
        link(objects, ["f"], target)


def test_missing_export() -> None:
    with pytest.raises(InternalError, match="no object defines the export 'g'; defined: f"):
        link([object_of(caller("f", "expf"), Target.host())], ["g"], Target.host())


def test_symbol_defined_twice() -> None:
    one = object_of(caller("f", "expf"), Target.host())
    with pytest.raises(InternalError, match="'f' is defined in object 0 and in object 1"):
        link([one, one], ["f"], Target.host())


def test_object_of_another_machine() -> None:
    one = object_of(caller("f", "expf"), Target.parse("llvm-cpu:aarch64"))
    with pytest.raises(InternalError, match="object 0 is for ELF machine 183"):
        link([one], ["f"], Target.parse("llvm-cpu:x86_64"))


def test_not_an_object() -> None:
    with pytest.raises(InternalError, match="not a little-endian ELF64"):
        link([b"hello"], ["f"], Target.host())


def test_value_out_of_range() -> None:
    for machine, kind, reach in ((AARCH64, 283, 1 << 27), (RISCV64, 17, 1 << 20), (RISCV64, 16, 1 << 12)):
        patch = machine.rules[kind].patch
        patch(bytearray(4), 0, reach - 4)
        with pytest.raises(OverflowError):
            patch(bytearray(4), 0, reach)


# --- structure, for every architecture --------------------------------------------------------------------------------


@dataclass
class Loaded:
    """An image as a loader sees it: memory at address 0, symbols, and dynamic relocations by place."""

    data: bytes
    memory: bytearray = field(default_factory=bytearray)
    symbols: dict[str, tuple[int, int]] = field(default_factory=dict)
    relocations: dict[int, tuple[int, str, int]] = field(default_factory=dict)
    segments: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        header = elf.FILE_HEADER.unpack_from(self.data)
        self.machine = header[2]
        assert header[1] == elf.ET_DYN
        rows = [elf.PROGRAM_HEADER.unpack_from(self.data, header[5] + i * header[9]) for i in range(header[10])]
        self.segments = [row for row in rows if row[0] == elf.PT_LOAD]
        self.headers = {row[0]: row for row in rows}
        self.memory = bytearray(max(row[3] + row[6] for row in self.segments))
        for row in self.segments:
            self.memory[row[3] : row[3] + row[5]] = self.data[row[2] : row[2] + row[5]]
        dynamic = self.headers[elf.PT_DYNAMIC]
        tags = dict(elf.DYN.iter_unpack(bytes(self.memory[dynamic[3] : dynamic[3] + dynamic[6]])))
        strings = tags[elf.DT_STRTAB]
        count = struct.unpack_from("<I", self.memory, tags[elf.DT_HASH] + 4)[0]
        names = []
        for index in range(count):
            entry = elf.SYMBOL.unpack_from(self.memory, tags[elf.DT_SYMTAB] + index * elf.SYMBOL.size)
            end = self.memory.index(0, strings + entry[0])
            names.append(self.memory[strings + entry[0] : end].decode())
            self.symbols[names[-1]] = (entry[3], entry[4])
        table = bytes(self.memory[tags[elf.DT_RELA] : tags[elf.DT_RELA] + tags[elf.DT_RELASZ]])
        for place, info, addend in elf.RELA.iter_unpack(table):
            self.relocations[place] = (info & 0xFFFFFFFF, names[info >> 32], addend)
        self.names = names
        self.tags = tags

    def word(self, address: int) -> int:
        return struct.unpack_from("<I", self.memory, address)[0]


@pytest.mark.parametrize("target", ALL)
def test_image_obeys_the_loaders_rules(target: str) -> None:
    parsed = Target.parse(target)
    image = Loaded(link([object_of(RICH, parsed)], RICH_EXPORTS, parsed))
    machine = MACHINES[parsed.elf_machine]
    assert image.machine == parsed.elf_machine
    end = 0
    for row in image.segments:
        assert row[2] % machine.page_bytes == row[3] % machine.page_bytes
        assert row[3] // machine.page_bytes * machine.page_bytes >= end, "two segments share a page"
        assert row[1] & 3 != 3, "writable and executable"
        end = row[3] + row[6]
    relro = image.headers[elf.PT_GNU_RELRO]
    assert (relro[3] + relro[6]) % machine.page_bytes == 0
    assert image.headers[elf.PT_GNU_STACK][1] == elf.PF_R | elf.PF_W
    writable = next(row for row in image.segments if row[1] & elf.PF_W)
    assert {kind for kind, _, _ in image.relocations.values()} == {machine.relative, machine.glob_dat}
    for place, (kind, name, addend) in image.relocations.items():
        assert writable[3] <= place < writable[3] + writable[5]
        assert (name in imports.ALLOWED_IMPORTS) == (kind == machine.glob_dat)
        assert kind == machine.relative or addend == 0
    assert image.symbols[imports.ABI_SYMBOL] == (elf.SHN_ABS, imports.EXECUTABLE_ABI_VERSION)
    for name in RICH_EXPORTS:
        assert image.segments[1][3] <= image.symbols[name][1] < image.segments[1][3] + image.segments[1][5]


@pytest.mark.parametrize("target", ALL)
def test_hash_table_finds_every_symbol(target: str) -> None:
    parsed = Target.parse(target)
    image = Loaded(link([object_of(RICH, parsed)], RICH_EXPORTS, parsed))
    at = image.tags[elf.DT_HASH]
    buckets = image.word(at)
    for name in image.names[1:]:
        index = image.word(at + 8 + 4 * (elf.sysv_hash(name) % buckets))
        while image.names[index] != name:
            index = image.word(at + 8 + 4 * (buckets + index))
            assert index, f"{name} is not in its chain"


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def adrp_target(image: Loaded, at: int) -> int:
    word = image.word(at)
    assert word >> 31 == 1 and word >> 24 & 0x1F == 0x10
    return (at & ~0xFFF) + (signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21) << 12)


def auipc_target(image: Loaded, at: int) -> int:
    assert image.word(at) & 0x7F == 0x17
    return at + signed(image.word(at) & 0xFFFFF000, 32) + signed(image.word(at + 4) >> 20, 12)


def test_aarch64_call_reaches_the_import() -> None:
    target = Target.parse("llvm-cpu:aarch64")
    image = Loaded(link([object_of(caller("f", "expf"), target)], ["f"], target))
    start = image.symbols["f"][1]
    call = next(at for at in range(start, start + 64, 4) if image.word(at) >> 26 == 0x25)
    stub = call + (signed(image.word(call) & 0x3FFFFFF, 26) << 2)
    slot = adrp_target(image, stub) + ((image.word(stub + 4) >> 10 & 0xFFF) << 3)
    assert image.word(stub + 8) == 0xD61F0200  # br x16
    assert image.relocations[slot] == (AARCH64.glob_dat, "expf", 0)


def test_aarch64_address_of_a_constant() -> None:
    target = Target.parse("llvm-cpu:aarch64")
    image = Loaded(link([object_of(RICH, target)], RICH_EXPORTS, target))
    start = image.symbols["weight"][1]
    low = image.word(start + 4) >> 10 & 0xFFF  # adrp x, page; add x, x, low
    assert struct.unpack_from("<4f", image.memory, adrp_target(image, start) + low) == (1.5, 2.5, 3.5, 4.5)


def test_riscv64_call_reaches_the_import() -> None:
    target = Target.parse("llvm-cpu:riscv64")
    image = Loaded(link([object_of(caller("f", "expf"), target)], ["f"], target))
    start = image.symbols["f"][1]
    call = next(at for at in range(start, start + 64, 2) if image.word(at) & 0xFFF == 0x097)  # auipc ra
    stub = auipc_target(image, call)
    assert image.word(stub + 8) == 0x000E0067  # jr t3
    assert image.relocations[auipc_target(image, stub)] == (RISCV64.glob_dat, "expf", 0)


def test_riscv64_address_of_a_constant() -> None:
    target = Target.parse("llvm-cpu:riscv64")
    image = Loaded(link([object_of(RICH, target)], RICH_EXPORTS, target))
    start = image.symbols["weight"][1]
    high = next(at for at in range(start, start + 32, 2) if image.word(at) & 0x7F == 0x17)
    # The low half may be scheduled later; find the addi on the same register.
    register = image.word(high) >> 7 & 31
    low = next(
        at
        for at in range(high + 4, start + 40, 2)
        if image.word(at) & 0x707F == 0x13 and image.word(at) >> 15 & 31 == register
    )
    address = high + signed(image.word(high) & 0xFFFFF000, 32) + signed(image.word(low) >> 20, 12)
    assert struct.unpack_from("<4f", image.memory, address) == (1.5, 2.5, 3.5, 4.5)


@pytest.mark.parametrize("target", ALL)
def test_binary_tools_accept_the_image(target: str, tmp_path: Path) -> None:
    if not shutil.which("readelf"):
        pytest.skip("readelf is not installed")
    parsed = Target.parse(target)
    path = tmp_path / "image.so"
    path.write_bytes(link([object_of(RICH, parsed)], RICH_EXPORTS, parsed))
    done = subprocess.run(["readelf", "-aW", str(path)], capture_output=True, text=True, check=True)
    assert "arning" not in done.stderr + done.stdout and "rror" not in done.stderr
    if target == ALL[0] and shutil.which("objdump"):
        done = subprocess.run(["objdump", "-d", str(path)], capture_output=True, text=True, check=True)
        assert "<weight>:" in done.stdout


MAIN = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  void* image = dlopen(argv[1], RTLD_NOW);
  if (!image) { puts(dlerror()); return 1; }
  float (*weight)(long) = dlsym(image, "weight");
  float (*table)(long, float) = dlsym(image, "through_table");
  float (*select)(int, float) = dlsym(image, "switch");
  for (int i = 0; i < 4; ++i) printf("%.4f ", weight(i));
  for (int i = 0; i < 3; ++i) printf("%.4f ", table(i, 0.75f));
  for (int i = 0; i < 7; ++i) printf("%.4f ", select(i, 0.75f));
}
"""


@pytest.mark.parametrize("arch", ["aarch64", "riscv64"])
def test_image_runs_under_emulation(arch: str, tmp_path: Path) -> None:
    compiler, emulator = shutil.which(f"{arch}-linux-gnu-gcc"), shutil.which(f"qemu-{arch}")
    if not compiler or not emulator:
        pytest.skip(f"needs {arch}-linux-gnu-gcc and qemu-{arch}")
    target = Target.parse(f"llvm-cpu:{arch}")
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "image.so").write_bytes(link([object_of(RICH, target)], RICH_EXPORTS, target))
    subprocess.run([compiler, "main.c", "-o", "main", "-ldl"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [emulator, "-L", f"/usr/{arch}-linux-gnu", "main", "./image.so"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    x = 0.75
    expected = [
        1.5,
        2.5,
        3.5,
        4.5,
        2 * x,
        np.sin(x),
        np.cos(x),
        np.sin(x),
        np.cos(x),
        np.exp(x),
        np.log(x),
        np.tanh(x),
        2 * x,
        x,
    ]
    np.testing.assert_allclose([float(one) for one in done.stdout.split()], expected, atol=1e-4)
