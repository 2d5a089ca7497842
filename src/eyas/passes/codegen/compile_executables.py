"""`compile-executables`: all dispatch functions become one executable."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from torch_mlir import ir as mlir

from eyas.cache.store import Store
from eyas.codegen.backends import backend_of
from eyas.codegen.children import OnDone, compile_jobs
from eyas.codegen.common.backend import CompiledDispatch
from eyas.codegen.common.needs import union_of_needs
from eyas.codegen.common.schedule import packed_of
from eyas.codegen.common.segments import segments_of_bindings
from eyas.codegen.dispatch_cache import DispatchCache
from eyas.codegen.jobs import Caution, Job
from eyas.dialects import codegen, flow, hal
from eyas.ir.walk import find_ops
from eyas.passes.hal.pack_weights import unpacked_key
from eyas.passes.targeted import TargetedPass
from eyas.targets import Target

_ENTRY = "dispatch"
"""What the function is called in each object file."""


@dataclass(frozen=True)
class CompileExecutables(TargetedPass):
    """Compiles each function marked `flow.executable` for the target, in parallel, and links the objects.

    `disable` names strategies that may not be used (`contraction`, `rows`); plain loops remain.
    """

    name: ClassVar[str] = "compile-executables"
    disable: tuple[str, ...] = ()
    workers: int = 0
    on_done: OnDone | None = field(default=None, compare=False, repr=False)
    on_warning: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    store: Store | None = field(default=None, compare=False, repr=False)
    """Where dispatches that were compiled before are looked for."""

    def run(self, module: mlir.Module) -> None:
        target = self.target
        backend = backend_of(target)
        kernels = [op for op in module.body.operations if flow.is_executable(op)]
        if not kernels:
            return
        jobs = [job_of(op, target, self.disable) for op in kernels]
        compiled = self._compile(jobs)
        image = backend.link([one.object for one in compiled], [job.name for job in jobs], target, _ENTRY)
        exports = [_export(op, one, target) for op, one in zip(kernels, compiled, strict=True)]
        plain = {_name(op): _packed(op) for op, one in zip(kernels, compiled, strict=True) if _gave_up_schedule(one)}
        _unpack(module, plain)
        needs = union_of_needs([*target.required_features, *(need for one in compiled for need in one.needs)])
        with mlir.InsertionPoint(module.body), mlir.Location.unknown():
            executable = hal.ExecutableOp(
                mlir.StringAttr.get("kernels"),
                mlir.StringAttr.get(str(target)),
                mlir.StringAttr.get(backend.format(target)),
                mlir.StringAttr.get(",".join(needs)),
                mlir.ArrayAttr.get(exports),
            )
            code = mlir.DenseElementsAttr.get(np.frombuffer(image, np.uint8), signless=True)
            executable.operation.attributes[hal.IMAGE] = code
        for op in kernels:
            op.operation.erase()

    def _compile(self, jobs: list[Job]) -> list[CompiledDispatch]:
        workers = self.workers or len(os.sched_getaffinity(0))
        cache = DispatchCache.of(self.store)
        if cache is None:
            return compile_jobs(jobs, workers, self.on_done, self.on_warning)
        found = cache.find(jobs)
        missing = [job for job, one in zip(jobs, found, strict=True) if one is None]
        if self.on_done is not None:
            for job, one in zip(jobs, found, strict=True):
                if one is not None:
                    self.on_done(job.name, None)
        made = compile_jobs(missing, workers, self.on_done, self.on_warning)
        cache.keep(missing, made)
        rest = iter(made)
        return [next(rest) if one is None else one for one in found]


def _name(function: mlir.OpView) -> str:
    return function.attributes["sym_name"].value


def job_of(function: mlir.OpView, target: Target, disable: tuple[str, ...]) -> Job:
    """A module of its own with just this function, under a name that all share: what is equal compiles to the same."""
    single = mlir.Module.create(function.operation.location)
    with mlir.InsertionPoint(single.body):
        copy = function.operation.clone()
        copy.attributes["sym_name"] = mlir.StringAttr.get(_ENTRY)
        # Who decided is no part of what is compiled.
        if codegen.TUNED in copy.attributes:
            del copy.attributes[codegen.TUNED]
    buffer = io.BytesIO()
    single.operation.write_bytecode(buffer)
    text = single.operation.get_asm(enable_debug_info=False, assume_verified=True)
    return Job(_name(function), buffer.getvalue(), str(target), disable, text)


def _export(function: mlir.OpView, compiled: CompiledDispatch, target: Target) -> mlir.DictAttr:
    types = mlir.FunctionType(function.attributes["function_type"].value)
    segments = segments_of_bindings(function, target)
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
            "bindings": integer(sum(segments)),
            "constants": integer(len(types.inputs) + len(types.results) - len(segments)),
            "grid": mlir.ArrayAttr.get(axes),
            "strategy": mlir.StringAttr.get(compiled.strategy),
            "knobs": mlir.StringAttr.get(compiled.knobs),
            "rejected": _rejected(function, compiled),
            **({hal.SEGMENTS: mlir.DenseI64ArrayAttr.get(segments)} if max(segments, default=1) > 1 else {}),
            **({"needs": mlir.StringAttr.get(",".join(compiled.needs))} if compiled.needs else {}),
            **({"tuned": function.attributes[codegen.TUNED]} if codegen.TUNED in function.attributes else {}),
            **({"given_up": mlir.StringAttr.get(compiled.given_up)} if compiled.given_up else {}),
        }
    )


def _gave_up_schedule(compiled: CompiledDispatch) -> bool:
    return not Caution(compiled.caution).keeps_schedule


def _packed(function: mlir.OpView) -> list[int]:
    """Bindings that the noted schedule reads in panels."""
    if codegen.STRATEGY not in function.attributes:
        return []
    return [panels.binding for panels in packed_of(function.attributes[codegen.STRATEGY].schedule)]


def _unpack(module: mlir.Module, executables: dict[str, list[int]]) -> None:
    """Gives dispatches of these executables the weights at these bindings as they were before `pack-weights`."""
    for dispatch in find_ops(module, "hal.dispatch"):
        bindings = executables.get(dispatch.operation.attributes["callee"].value, [])
        slots = list(dispatch.slots)
        for binding in bindings:
            position = len(list(dispatch.constants)) + sum(slot < 0 for slot in slots[:binding])
            parameter = dispatch.operation.operands[position].owner
            with mlir.InsertionPoint(parameter), parameter.location:
                plain = parameter.clone()
                plain.attributes["key"] = mlir.StringAttr.get(unpacked_key(parameter.attributes["key"].value))
                del plain.attributes[codegen.PANELS]
            dispatch.operation.operands[position] = plain.operation.results[0]


def _rejected(function: mlir.OpView, compiled: CompiledDispatch) -> mlir.Attribute:
    """Reasons noted when the strategy was selected, or found now when it was not."""
    if codegen.REJECTED in function.attributes:
        return function.attributes[codegen.REJECTED]
    return mlir.ArrayAttr.get([mlir.StringAttr.get(reason) for reason in compiled.rejected])
