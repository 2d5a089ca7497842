"""Compiles MLIR text for this machine and loads it in this process, for tests that run what they compile."""

from __future__ import annotations

import ctypes
import tempfile

import numpy as np

from eyas.codegen.llvm_cpu.linker import link
from eyas.codegen.llvm_cpu.llvm import emit_object
from eyas.codegen.llvm_cpu.lowering import lower_to_llvm
from eyas.ir import make_context, parse_module
from eyas.passes import parse_pipeline
from eyas.targets import Target


def compile_object(text: str, target: Target | None = None, passes: str = "") -> bytes:
    """Runs our passes (if any), lowers, and compiles to an object file."""
    target = target or Target.host()
    module = parse_module(text, make_context())
    if passes:
        parse_pipeline(passes).run(module)
        assert module.operation.verify()
    lower_to_llvm(module, target)
    return emit_object(module, target)


def load(image: bytes) -> ctypes.CDLL:
    """Loads a linked image with the system's loader."""
    ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    # A name of its own for each: the loader takes a known name for the library that it has already.
    with tempfile.NamedTemporaryFile(suffix=".so") as file:
        file.write(image)
        file.flush()
        return ctypes.CDLL(file.name)


def build(text: str, *exports: str, passes: str = "", target: Target | None = None) -> ctypes.CDLL:
    """Text to callable code."""
    target = target or Target.host()
    return load(link([compile_object(text, target, passes)], exports, target))


def memref(array: np.ndarray) -> list[object]:
    """The arguments that one memref parameter of a function becomes: two pointers, offset, sizes, strides."""
    pointer = ctypes.c_void_p(array.ctypes.data)
    sizes = [ctypes.c_int64(size) for size in array.shape]
    strides = [ctypes.c_int64(stride // array.itemsize) for stride in array.strides]
    return [pointer, pointer, ctypes.c_int64(0), *sizes, *strides]
