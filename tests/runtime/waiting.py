"""A module whose call waits: it counts itself in, in the memory of its argument, and ends when all are there."""

from __future__ import annotations

import time

import kernels
import numpy as np

from eyas.module.assembler import Direct, ProgramBuilder
from eyas.module.isa import Access, Alloc
from eyas.module.program import ExecutableRef, Export
from eyas.module.signature import Signature, TensorSpec

# binding 0: how many have arrived, and how many are to. It is an argument, and on a device that reads the host's memory
# the same for all. out = whether all came before the patience of some seconds was at an end.
SOURCE = r"""
#include "eyas/executable.h"
__attribute__((visibility("default"))) void meet(const eyas_dispatch_t* d, const eyas_workgroup_t* w) {
  int64_t* place = d->bindings[0]; int64_t* out = d->bindings[1];
  (void)w;
  __atomic_fetch_add(place, 1, __ATOMIC_SEQ_CST);
  for (long i = 0; i < 1l << 28; ++i) {
    if (__atomic_load_n(place, __ATOMIC_SEQ_CST) >= __atomic_load_n(place + 1, __ATOMIC_SEQ_CST)) {
      out[0] = 1;
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  out[0] = 0;
}
"""


def module() -> bytes:
    builder = ProgramBuilder()
    exe = builder.executable(ExecutableRef("waiting", kernels.FORMAT, (Export("meet", 2, 0),), ()))
    signature = Signature((TensorSpec("place", "i64", (2,)),), (TensorSpec("met", "i64", ()),))
    asm = builder.function("main", signature)
    place, out = asm.arg(None, 0), asm.buffer_alloc(None, asm.const(8), Alloc.RESULT)
    kernels.run_once(asm, exe, 0, asm.const(1), [], [Direct(place), Direct(out, access=Access.WRITE)])
    asm.set_result(0, out, [])
    return kernels.pack(builder, waiting=kernels.compile(SOURCE))


def place(count: int) -> np.ndarray:
    """Where `count` calls meet, or one call and us, who come with `arrive`."""
    return np.array([0, count], np.int64)


def wait_until_there(where: np.ndarray, count: int = 1) -> None:
    deadline = time.monotonic() + 30
    while where[0] < count:
        assert time.monotonic() < deadline, "the call did not start"
        time.sleep(0.001)


def arrive(where: np.ndarray) -> None:
    """Ends the calls that wait there."""
    wait_until_there(where)
    where[0] = where[1]
