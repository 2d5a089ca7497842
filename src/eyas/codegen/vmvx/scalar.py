"""A dispatch as plain loops of scalar instructions.

Upstream bufferises and makes loops; memrefs become addresses, control flow stays structured, and `Translator` writes
instructions for what is left: arith, math, complex as pairs, scf, and the addresses of the LLVM dialect.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, func

from eyas.codegen.common.bufferize import bufferize, inline_body
from eyas.codegen.common.memrefs import descriptor, expand_strided_copies
from eyas.codegen.vmvx.translate import Translator
from eyas.ir import run_upstream
from eyas.ir.diagnostics import raise_as_compile_error
from eyas.module.vmvx_assembler import Assembler

_PIPELINE = (
    "scf-forall-to-for",
    "lower-affine",
    # Narrow floats compute in f32, as in machine code.
    "math-extend-to-supported-types{target-type=f32}",
    "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32}",
    "convert-math-to-funcs{min-width-of-fpowi-exponent=1}",
    "convert-complex-to-standard",
    "memref-expand",
    "expand-strided-metadata",
    "lower-affine",
    "canonicalize",
    "cse",
    "finalize-memref-to-llvm{use-aligned-alloc}",
    "canonicalize",
    "cse",
    "func.func(loop-invariant-code-motion)",
    "cse",
)


class Interface:
    """The entry function: its arguments are the addresses of bindings, then push constants."""

    def __init__(self, name: str, bindings: int, constants: int) -> None:
        pointer, index = mlir.Type.parse("!llvm.ptr"), mlir.IndexType.get()
        self.function = func.FuncOp(name, ([pointer] * bindings + [index] * constants, []))
        self.block = self.function.add_entry_block()
        arguments = list(self.block.arguments)
        self._pointers, self.constants = arguments[:bindings], arguments[bindings:]
        self._indices: dict[int, mlir.Value] = {}
        self.body = mlir.InsertionPoint(self.block)

    def index(self, value: int) -> mlir.Value:
        if value not in self._indices:
            with mlir.InsertionPoint.at_block_begin(self.block):
                attribute = mlir.IntegerAttr.get(mlir.IndexType.get(), value)
                self._indices[value] = arith.ConstantOp(mlir.IndexType.get(), attribute).result
        return self._indices[value]

    def binding(
        self, ordinal: int, type_: mlir.MemRefType, sizes: Sequence[mlir.Value], strides: Sequence[mlir.Value]
    ) -> mlir.Value:
        return descriptor(self._pointers[ordinal], type_, sizes, strides)


def lower_to_scalars(function: mlir.OpView, asm: Assembler) -> None:
    """Writes a dispatch function, whatever is in it."""
    module = to_loops(function, asm)
    entry = next(op for op in module.body.operations if op.operation.name == "func.func")
    Translator(module, asm).run(entry)


def to_loops(function: mlir.OpView, asm: Assembler) -> mlir.Module:
    """The dispatch in the form that `Translator` takes."""
    module = mlir.Module.create(function.operation.location)
    with mlir.InsertionPoint(module.body), function.operation.location:
        interface = Interface(asm.name, asm.bindings, asm.constants)
        with interface.body:
            inline_body(function, interface)
            func.ReturnOp([])
    bufferize(module)
    expand_strided_copies(module)
    try:
        run_upstream(module, ",".join(_PIPELINE))
    except mlir.MLIRError as error:
        raise_as_compile_error(error, "lowering to bytecode")
    return module
