"""The C core by itself: its own tests, its size and dependencies, and what sanitizers say of altered modules."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from dataclasses import replace

import kernels
import numpy as np
import pytest

from eyas.module import container
from eyas.module.assembler import Direct, ProgramBuilder, Slot
from eyas.module.isa import Access, Alloc, Element, Float
from eyas.module.program import ExecutableRef, Export, Program, State
from eyas.module.signature import Signature, Symbol, TensorSpec
from eyas.module.variants import Variant

ASAN = {
    **os.environ,
    "ASAN_OPTIONS": "allocator_may_return_null=1:max_allocation_size_mb=64:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def run(command: list[str], **keywords) -> str:
    done = subprocess.run(command, capture_output=True, text=True, **keywords)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def built_tests(folder) -> list[str]:
    return sorted(str(p) for p in folder.glob("*_test") if p.name.startswith(("vm_", "module_")))


def test_c_tests_without_sanitizers(plain_build):
    """As users run the code; `make test-c` runs them all with sanitizers."""
    assert built_tests(plain_build)
    for test in built_tests(plain_build):
        run([test])


def test_library_is_small_and_needs_only_libc(plain_build, tmp_path):
    library = tmp_path / "libeyas_runtime.so"
    run(["strip", "-o", str(library), str(plain_build / "libeyas_runtime.so")])
    size = library.stat().st_size
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run(["readelf", "-d", str(library)])))
    print(f"{size} bytes, needs {sorted(needed)}")
    assert size < 1_000_000
    assert needed <= {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}
    exported = {line.split()[-1] for line in run(["nm", "-D", "--defined-only", str(library)]).splitlines()}
    assert exported and all(name.startswith("eyas_") for name in exported)


# Kernels that stay inside their bindings whatever a program passes.
SAFE_SOURCE = r"""
#include "eyas/executable.h"
__attribute__((visibility("default"))) void mix(const eyas_dispatch_t* d, const eyas_workgroup_t* w) {
  if (d->workgroup_count[0] > 64 || d->workgroup_count[1] > 64 || d->workgroup_count[2] > 64) {
    eyas_dispatch_report(d, EYAS_ERROR_FIRST_OTHER);
    return;
  }
  if (w->id[0] | w->id[1] | w->id[2]) return;
  uint64_t n = d->binding_bytes[0] < d->binding_bytes[1] ? d->binding_bytes[0] : d->binding_bytes[1];
  if (n > 4096) n = 4096;
  for (uint64_t i = 0; i < n; ++i) {
    ((unsigned char*)d->bindings[1])[i] = (unsigned char)(((unsigned char*)d->bindings[0])[i] + d->constants[0]);
  }
}
"""


def everything_program() -> tuple[Program, dict[str, bytes], list]:
    """One program that uses every instruction at least once, its executables and its weights."""
    builder = ProgramBuilder()
    exe = builder.executable(ExecutableRef("mix", kernels.FORMAT, (Export("mix", 2, 1),), ()))
    records, data = container.layout_parameters({"w": np.arange(32, dtype=np.float32), "v": np.ones(7, np.int8)})
    for record in records:
        builder.parameter(record)
    counter, memory = builder.state(State("counter", "i64", ())), builder.state(State("memory", "f32", (32,), 0))
    kept = builder.new_global()
    signature = Signature(
        (TensorSpec("x", "f32", ("n", 4)), TensorSpec("i", "i64", ())),
        (TensorSpec("y", "f32", ("n", 4)), TensorSpec("z", "i32", ("?",))),
        {"n": Symbol(1, 64, 2)},
    )
    asm = builder.function("main", signature)
    one, zero = asm.const(1), asm.const(0)
    n = asm.arg_dim(None, 0, 0)
    x, i = asm.arg(None, 0), asm.arg(None, 1)
    size = asm.buffer_bytes(None, x)
    total, (a, b, c) = asm.arena_pack(None, 3, [size, size, asm.const(128)], [0, 1, 1, 2, 2, 3])
    arena = asm.buffer_alloc(None, total, Alloc.TRANSIENT)
    out = asm.buffer_alloc(None, size, Alloc.RESULT)
    integers = asm.buffer_alloc(None, asm.const(16), Alloc.RESULT)
    value = asm.buffer_load(None, i, zero, Element.I64)
    for name in ("add", "sub", "mul", "mins", "maxs", "minu", "maxu", "and_", "or_", "xor", "shl", "shrs", "shru"):
        value = getattr(asm, name)(None, value, n)
    for name in ("eq", "ne", "lts", "les", "ltu", "leu"):
        value = asm.add(None, value, getattr(asm, name)(None, value, n))
    for name in ("divs", "divu", "rems", "remu", "ceildivs", "floordivs"):
        value = asm.add(None, value, getattr(asm, name)(None, value, asm.maxs(None, n, one)))
    real = asm.itof(None, value)
    for name in ("fadd", "fsub", "fmul", "fdiv", "frem", "fmin", "fmax", "fpow"):
        real = getattr(asm, name)(None, real, asm.utof(None, n))
    for name in ("ffloor", "fceil", "ftrunc", "fnearest", "faway", "fsqrt", "fabs", "fneg", "fexp", "flog", "flog2"):
        real = getattr(asm, name)(None, real)
    for kind in Float:
        real = asm.funpack(None, asm.fpack(None, asm.fround(None, real, kind), kind), kind)
    for name in ("feq", "flt", "fle"):
        value = asm.add(None, value, getattr(asm, name)(None, real, real))
    value = asm.add(None, value, asm.add(None, asm.ftoi(None, real), asm.ftou(None, real)))
    value = asm.select(None, asm.sext(None, value, 8), asm.zext(None, value, 16), value)
    asm.buffer_store(value, integers, asm.const(4), Element.I32)
    calls = asm.state(None, counter)
    asm.buffer_store(asm.add(None, asm.buffer_load(None, calls, zero, Element.I64), one), calls, zero, Element.I64)
    remembered = asm.state(None, memory)
    cmd, record_it, run_it = asm.global_load(None, kept), asm.label(), asm.label()
    asm.br_null(cmd, record_it)
    asm.br(run_it)
    asm.bind(record_it)
    asm.cmd_create(cmd, 2)
    weight = asm.param(None, 0)
    asm.cmd_dispatch(cmd, exe, 0, one, one, one, [one], [Slot(0), Slot(1, None, asm.const(16), Access.WRITE)])
    asm.cmd_barrier(cmd)
    asm.cmd_dispatch(
        cmd, exe, 0, one, one, one, [one], [Direct(weight, zero, asm.const(64)), Slot(1, access=Access.WRITE)]
    )
    asm.cmd_dispatch(cmd, exe, 0, one, one, one, [one], [Slot(0), Direct(remembered, access=Access.READ_WRITE)])
    asm.cmd_end(cmd)
    asm.global_store(kept, cmd)
    asm.bind(run_it)
    asm.submit(cmd, [x, arena])
    fresh = asm.cmd_create(None, 1)
    asm.cmd_fill(fresh, Direct(out, access=Access.WRITE), asm.const(0x01020304), 4)
    asm.cmd_barrier(fresh)
    asm.cmd_copy(fresh, Slot(0, a, asm.const(32)), Direct(out, zero, asm.const(32), Access.WRITE))
    asm.cmd_barrier(fresh)
    part = asm.buffer_view(None, arena, c, asm.const(64))
    asm.cmd_dispatch(fresh, exe, 0, one, one, one, [b], [Direct(x), Direct(part, access=Access.WRITE)])
    asm.cmd_end(fresh)
    asm.submit(fresh, [arena])
    same = asm.mov_ref(None, integers)
    asm.null(part)
    count, loop, done = asm.mov(None, zero), asm.label(), asm.label()
    asm.bind(loop)
    asm.br_if(asm.les(None, asm.const(3), count), done)
    asm.add(count, count, one)
    asm.br(loop)
    asm.bind(done)
    asm.check(asm.eq(None, count, asm.const(3)), "counted {}", [count])
    asm.set_result(0, out, [n, asm.const(4)])
    asm.set_result(1, same, [asm.const(4)])
    asm.return_()
    asm.fail("not reached {}", [one])
    return builder.finish(), {"mix": kernels.compile(SAFE_SOURCE)}, data


def everything_module(variants: int) -> bytes:
    """That program as a module; or as several variants of one, of which this machine can run the last."""
    program, images, data = everything_program()
    elsewhere = replace(program, executables=tuple(replace(e, format="elf-z80") for e in program.executables))
    programs = [elsewhere] * (variants - 1) + [program]
    out = io.BytesIO()
    made = [Variant(one, images, {}, f"target:{number}") for number, one in enumerate(programs)]
    container.write_variants(out, made, data)
    return out.getvalue()


@pytest.mark.parametrize("variants", [1, 3])
@pytest.mark.parametrize(("digests", "copies", "seed"), [("on", 10_000, 1), ("off", 30_000, 2), ("off", 30_000, 3)])
def test_altered_modules_under_sanitizers(
    sanitized_build, tmp_path, digests: str, copies: int, seed: int, variants: int
):
    path = tmp_path / "m.eyas"
    path.write_bytes(everything_module(variants))
    if variants > 1:  # alterations hit what no one reads more often
        copies //= 3
    options = ["--skip-digests"] if digests == "off" else []
    output = run(
        [str(sanitized_build / "eyas_fuzz_module"), str(path), str(copies), str(seed), *options], env=ASAN, timeout=600
    )
    counts = json.loads(output)
    print(counts)
    assert counts["refused"] + counts["unloadable"] + counts["loaded"] == copies + 1
    if digests == "off" and variants == 1:  # enough come through to exercise the interpreter
        assert counts["refused"] > copies // 10 and counts["called"] > copies // 20 and counts["failed"] > copies // 100
    if variants > 1:
        assert counts["refused"] > 0 and counts["called"] > 0
