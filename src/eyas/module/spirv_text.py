"""Executables of Vulkan devices as text, for people: what each kernel takes, and its code where a disassembler is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from eyas.module.spirv_executable import Kernel, Term

_DISASSEMBLER = "spirv-dis"


def disassemble(kernels: Sequence[Kernel]) -> str:
    """Kernels as text. The code is shown by spirv-dis, which systems have in a package of that tool's makers."""
    tool = shutil.which(_DISASSEMBLER)
    return "\n".join(f"{_heading(one)}\n{_code(one, tool)}" for one in kernels)


def _heading(kernel: Kernel) -> str:
    parts = [
        f"bindings={kernel.bindings}",
        f"writes={_numbers(kernel.writes)}",
        *([f"unaligned={_numbers(kernel.unaligned)}"] if kernel.unaligned else []),
        f"constants={kernel.constants}{' in a buffer' if kernel.constants_in_buffer else ''}",
        f"threads={'x'.join(map(str, kernel.local_size))}",
        *([f"subgroup={kernel.subgroup}"] if kernel.subgroup else []),
        *(["reports errors"] if kernel.reports_errors else []),
        *([f"scratch={' + '.join(map(_term, kernel.scratch))}"] if kernel.scratch else []),
    ]
    return f"kernel {kernel.name} {' '.join(parts)}"


def _numbers(bits: int) -> str:
    return ",".join(str(index) for index in range(bits.bit_length()) if bits >> index & 1) or "-"


def _term(term: Term) -> str:
    """`4096`, or with constants that are known at run time `8*c0*c1`."""
    return "*".join([str(term.factor), *(f"c{symbol}" for symbol in term.symbols)])


def _code(kernel: Kernel, tool: str | None) -> str:
    if tool is None:
        return f"  {len(kernel.code) // 4} words of SPIR-V; {_DISASSEMBLER} (Debian: spirv-tools) would show them\n"
    done = subprocess.run([tool, "--no-color", "-"], input=kernel.code, capture_output=True)
    text = (done.stdout if done.returncode == 0 else done.stderr).decode(errors="replace")
    return "".join(f"  {line}\n" for line in text.splitlines())
