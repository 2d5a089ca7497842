"""`compile-executables`: all dispatch functions become one image of machine code."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.llvm_cpu.compile import CompiledDispatch
from eyas.codegen.llvm_cpu.linker import link
from eyas.codegen.worker import Job, compile_jobs
from eyas.dialects import codegen, flow, hal
from eyas.ir import Pass
from eyas.targets import Target


@dataclass(frozen=True)
class CompileExecutables(Pass):
    """Compiles each function marked `flow.executable` for the target, in parallel, and links the objects.

    `disable` names strategies that may not be used (`contraction`, `rows`); plain loops remain.
    """

    name: ClassVar[str] = "compile-executables"
    target: str = "llvm-cpu"
    disable: tuple[str, ...] = ()
    workers: int = 0
    on_done: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    def run(self, module: mlir.Module) -> None:
        target = Target.parse(self.target)
        kernels = [op for op in module.body.operations if flow.is_executable(op)]
        if not kernels:
            return
        jobs = [Job(_name(op), _bytecode(op), str(target), self.disable) for op in kernels]
        workers = self.workers or len(os.sched_getaffinity(0))
        compiled = compile_jobs(jobs, workers, self.on_done)
        image = link([one.object for one in compiled], [job.name for job in jobs], target)
        exports = [_export(op, one) for op, one in zip(kernels, compiled, strict=True)]
        with mlir.InsertionPoint(module.body), mlir.Location.unknown():
            hal.ExecutableOp(
                mlir.StringAttr.get("kernels"),
                mlir.StringAttr.get(str(target)),
                mlir.StringAttr.get(f"elf-{target.arch}"),
                mlir.StringAttr.get(",".join(target.required_features)),
                mlir.ArrayAttr.get(exports),
                mlir.StringAttr.get(image.hex()),
            )
        for op in kernels:
            op.operation.erase()


def _name(function: mlir.OpView) -> str:
    return function.attributes["sym_name"].value


def _bytecode(function: mlir.OpView) -> bytes:
    """A module of its own with just this function."""
    single = mlir.Module.create(function.operation.location)
    with mlir.InsertionPoint(single.body):
        function.operation.clone()
    buffer = io.BytesIO()
    single.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _export(function: mlir.OpView, compiled: CompiledDispatch) -> mlir.DictAttr:
    types = mlir.FunctionType(function.attributes["function_type"].value)
    tensors = [t for t in types.inputs if isinstance(t, mlir.RankedTensorType)]
    i64 = mlir.IntegerType.get_signless(64)

    def integer(value: int) -> mlir.IntegerAttr:
        return mlir.IntegerAttr.get(i64, value)

    axes = []
    for extent, piece in compiled.grid:
        factor, symbols = (extent, ()) if isinstance(extent, int) else extent
        axes.append(mlir.DenseI64ArrayAttr.get([piece, factor, *symbols]))
    return mlir.DictAttr.get(
        {
            "name": mlir.StringAttr.get(_name(function)),
            "bindings": integer(len(tensors) + len(types.results)),
            "constants": integer(len(types.inputs) - len(tensors)),
            "grid": mlir.ArrayAttr.get(axes),
            "strategy": mlir.StringAttr.get(compiled.strategy),
            "knobs": mlir.StringAttr.get(compiled.knobs),
            "rejected": _rejected(function, compiled),
        }
    )


def _rejected(function: mlir.OpView, compiled: CompiledDispatch) -> mlir.Attribute:
    """Reasons noted when the strategy was selected, or found now when it was not."""
    if codegen.REJECTED in function.attributes:
        return function.attributes[codegen.REJECTED]
    return mlir.ArrayAttr.get([mlir.StringAttr.get(reason) for reason in compiled.rejected])
