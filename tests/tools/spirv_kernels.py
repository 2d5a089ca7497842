"""Kernels in the form that the GPU code generator hands to its last step, as text, and their SPIR-V, checked."""

from __future__ import annotations

import functools
import shutil
import subprocess

import pytest

from eyas.codegen.spirv.lower import SpirvCode, lower_to_spirv
from eyas.ir import make_context, parse_module
from eyas.targets import Target

LAVAPIPE = Target.parse("vulkan:lavapipe")


@functools.cache
def context():
    return make_context()


def binding(name: str, element: str, number: int) -> str:
    """An argument that shows a binding of the dispatch."""
    return f'%{name}: memref<?x{element}> {{eyas.role = "binding", eyas.binding = {number} : i32}}'


def word(name: str, role: str = "constant") -> str:
    return f'%{name}: i32 {{eyas.role = "{role}"}}'


def kernel(arguments: list[str], body: str, threads: int = 8, attributes: str = "") -> str:
    """A module with one kernel; `%t` is the thread's number, `%i` its number in the whole grid."""
    more = f", {attributes}" if attributes else ""
    return f"""
      gpu.module @kernels {{
        gpu.func @some_dispatch({", ".join(arguments)})
            kernel attributes {{known_block_size = array<i32: {threads}, 1, 1>{more}}} {{
          %t = gpu.thread_id x
          %group = gpu.block_id x
          %threads = gpu.block_dim x
          %before = arith.muli %group, %threads : index
          %i = arith.addi %before, %t : index
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          {body}
          gpu.return
        }}
      }}"""


def elementwise(element: str, result: str, body: str) -> str:
    """`%r` of each `%x` and `%y`."""
    return kernel(
        [binding("a", element, 0), binding("b", element, 1), binding("o", result, 2)],
        f"""%x = memref.load %a[%i] : memref<?x{element}>
          %y = memref.load %b[%i] : memref<?x{element}>
          {body}
          memref.store %r, %o[%i] : memref<?x{result}>""",
    )


def lower(text: str, target: Target = LAVAPIPE) -> SpirvCode:
    """SPIR-V that the validator takes."""
    code = lower_to_spirv(parse_module(text, context()), target)
    _tool("spirv-val", code, "--target-env", "vulkan1.3" if "spirv=1.6" in code.needs else "vulkan1.1", "-")
    return code


def disassembly(text: str, target: Target = LAVAPIPE) -> str:
    return _tool("spirv-dis", lower(text, target), "--raw-id", "-")


def _tool(name: str, code: SpirvCode, *arguments: str) -> str:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed (Debian: spirv-tools)")
    done = subprocess.run([name, *arguments], input=code.code, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
    return done.stdout.decode()
