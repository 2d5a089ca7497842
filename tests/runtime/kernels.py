"""Kernels in C for the runtime's tests, compiled by the host's C compiler, and modules made of them by hand."""

from __future__ import annotations

import functools
import platform
import subprocess
import tempfile
from pathlib import Path

from eyas.module import container
from eyas.module.assembler import Assembler, Direct, ProgramBuilder, Slot
from eyas.module.isa import Access, Alloc
from eyas.module.program import ExecutableRef, Export
from eyas.module.signature import Signature, TensorSpec
from eyas.runtime import _core

FORMAT = f"elf-{platform.machine()}"
# Devices that run them, whatever else there is on this machine.
DEVICES = [name for name, count in _core.drivers() if count and _core.Device(name).runs_format(FORMAT)]
INCLUDE = Path(__file__).parents[2] / "runtime" / "include"

SOURCE = r"""
#include "eyas/executable.h"
#define EXPORT __attribute__((visibility("default")))
typedef const eyas_dispatch_t D;
typedef const eyas_workgroup_t W;
// out[i] = a[i] + b[i], 256 elements a workgroup, constant 0 = how many.
EXPORT void add_f32(D* d, W* w) {
  const float* a = d->bindings[0]; const float* b = d->bindings[1]; float* out = d->bindings[2];
  int64_t n = d->constants[0], first = (int64_t)w->id[0] * 256, last = first + 256 < n ? first + 256 : n;
  for (int64_t i = first; i < last; ++i) out[i] = a[i] + b[i];
}
// out[i] = a[i] * constant 1.
EXPORT void scale_f32(D* d, W* w) {
  const float* a = d->bindings[0]; float* out = d->bindings[1];
  int64_t n = d->constants[0], first = (int64_t)w->id[0] * 256, last = first + 256 < n ? first + 256 : n;
  for (int64_t i = first; i < last; ++i) out[i] = a[i] * (float)d->constants[1];
}
// Bytes, whatever they mean: out = in.
EXPORT void copy_bytes(D* d, W* w) {
  const unsigned char* in = d->bindings[0]; unsigned char* out = d->bindings[1];
  if (w->id[0] == 0) for (uint64_t i = 0; i < d->binding_bytes[0]; ++i) out[i] = in[i];
}
// out[0] = how many of the i32 in are positive.
EXPORT void count_positive(D* d, W* w) {
  const int32_t* in = d->bindings[0]; int64_t* out = d->bindings[1]; int64_t count = 0;
  (void)w;
  for (int64_t i = 0; i < d->constants[0]; ++i) count += in[i] > 0;
  out[0] = count;
}
EXPORT void fails(D* d, W* w) { (void)w; eyas_dispatch_report(d, 77); }
"""

EXPORTS = (
    Export("add_f32", 3, 1),
    Export("scale_f32", 2, 2),
    Export("copy_bytes", 2, 0),
    Export("count_positive", 2, 1),
    Export("fails", 0, 0),
)
ADD, SCALE, COPY, COUNT, FAILS = range(5)


@functools.cache
def compile(source: str) -> bytes:
    """An image of C source."""
    with tempfile.TemporaryDirectory() as folder:
        path, image = Path(folder, "kernels.c"), Path(folder, "kernels.elf")
        path.write_text(source)
        flags = "-shared -nostdlib -fPIC -O2 -fvisibility=hidden -fno-builtin -Wl,--hash-style=sysv".split()
        flags += ["-Wl,--defsym=eyas_executable_abi=2", f"-I{INCLUDE}"]
        subprocess.run(["gcc", *flags, str(path), "-o", str(image)], check=True)
        return image.read_bytes()


def elf() -> bytes:
    """The image of SOURCE."""
    return compile(SOURCE)


def executable(features: tuple[str, ...] = (), format: str = FORMAT) -> ExecutableRef:
    return ExecutableRef("kernels", format, EXPORTS, features)


def groups(asm: Assembler, count):
    """Workgroups for `count` elements, 256 each."""
    return asm.ceildivs(None, count, asm.const(256))


def write_add(builder: ProgramBuilder, name: str = "main", dims=(4,), exe: int = 0) -> Assembler:
    """x + y, static shape; recorded on the first call, replayed with slots later."""
    n = 1
    for dim in dims:
        n *= dim
    spec = [TensorSpec(text, "f32", dims) for text in ("x", "y", "sum")]
    asm = builder.function(name, Signature(tuple(spec[:2]), (spec[2],)))
    one, count = asm.const(1), asm.const(n)
    slot = builder.new_global()
    out = asm.buffer_alloc(None, asm.const(4 * n), Alloc.RESULT)
    x, y = asm.arg(None, 0), asm.arg(None, 1)
    cmd = asm.global_load(None, slot)
    record, run = asm.label(), asm.label()
    asm.br_null(cmd, record)
    asm.br(run)
    asm.bind(record)
    asm.cmd_create(cmd, 3)
    bindings = [Slot(0), Slot(1), Slot(2, access=Access.WRITE)]
    asm.cmd_dispatch(cmd, exe, ADD, asm.const(-(-n // 256)), one, one, [count], bindings)
    asm.cmd_end(cmd)
    asm.global_store(slot, cmd)
    asm.bind(run)
    asm.submit(cmd, [x, y, out])
    asm.set_result(0, out, [asm.const(d) for d in dims])
    asm.return_()
    return asm


def run_once(asm: Assembler, exe: int, export: int, grid, constants, bindings: list[Direct]) -> None:
    """Records one dispatch with direct bindings and runs it."""
    one = asm.const(1)
    cmd = asm.cmd_create(None, 0)
    asm.cmd_dispatch(cmd, exe, export, grid, one, one, constants, bindings)
    asm.cmd_end(cmd)
    asm.submit(cmd, [])


def pack(builder: ProgramBuilder, parameters=(), manifest=None, **images: bytes) -> bytes:
    """The builder's program as a module's bytes, with the test kernels as its executables."""
    program = builder.finish()
    executables = {e.name: images.get(e.name, elf()) for e in program.executables}
    return container.to_bytes(program, executables, parameters, manifest)


def add_module(dims=(4,), **keywords) -> bytes:
    builder = ProgramBuilder()
    builder.executable(executable(**keywords))
    write_add(builder, dims=dims)
    return pack(builder)
