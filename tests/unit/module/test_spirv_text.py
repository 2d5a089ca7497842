"""Kernels in SPIR-V as text."""

from __future__ import annotations

import shutil
import struct

import pytest

from eyas.module.spirv_executable import Kernel, Term
from eyas.module.spirv_text import disassemble

# A header, OpCapability Shader, OpMemoryModel Logical GLSL450.
CODE = struct.pack("<10I", 0x07230203, 0x00010300, 0, 1, 0, 2 << 16 | 17, 1, 3 << 16 | 14, 0, 1)
KERNEL = Kernel("rows", CODE, 3, 2, (64, 2, 1), 0b101, 0b10, True, False, (Term(64), Term(4, (0, 1))), 8)


def test_what_a_kernel_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    heading, code = disassemble([KERNEL]).splitlines()
    assert heading == (
        "kernel rows bindings=3 writes=0,2 unaligned=1 constants=2 threads=64x2x1 subgroup=8 reports errors"
        " scratch=64 + 4*c0*c1"
    )
    assert code.strip().startswith("10 words of SPIR-V") and "spirv-dis" in code


@pytest.mark.skipif(not shutil.which("spirv-dis"), reason="needs spirv-dis: make system-deps")
def test_the_code_is_shown() -> None:
    assert "OpCapability Shader" in disassemble([KERNEL])
