"""Compiles one dispatch function to SPIR-V: analyse, choose a strategy for GPUs, emit a kernel, take the last step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis, generalize
from eyas.codegen.common.backend import Backend, CompiledDispatch
from eyas.codegen.common.bufferize import in_place_results
from eyas.codegen.common.segments import in_segments, segments_of_bindings
from eyas.codegen.gpu.segments import split_bindings
from eyas.codegen.gpu.strategies import STRATEGIES
from eyas.codegen.gpu.strategies.base import Strategy, unaligned_bindings
from eyas.codegen.gpu.trips import most_trips
from eyas.codegen.spirv.lower import lower_to_spirv
from eyas.dialects import codegen
from eyas.errors import TargetError
from eyas.ir import run_upstream
from eyas.module.spirv_executable import MAX_BINDINGS, Kernel, Term, read_executable, write_executable
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget
from eyas.targets.gpu_facts import NO_LIMIT

FORMAT = "spirv"
_SIMPLIFY = "cse,canonicalize{top-down=false},cse"


class Spirv(Backend):
    """Kernels for Vulkan devices. A dispatch's object is an executable of one kernel."""

    strategies = STRATEGIES

    def compile(self, module: mlir.Module, target: Target, disabled: frozenset[str]) -> CompiledDispatch:
        assert isinstance(target, GpuTarget)
        with module.context, mlir.Location.unknown():
            function, lowered, strategy, rejected = self._kernel(module, target, disabled)
            segments = _segments(function, target)
            split_bindings(lowered, segments, target.limits.segment_bytes)
            code = lower_to_spirv(lowered, target)
            types = mlir.FunctionType(function.attributes["function_type"].value)
            tensors = len(segments) - len(types.results)
            written = [*range(tensors, len(segments)), *in_place_results(function).values()]
            kernel = Kernel(
                name=mlir.StringAttr(function.attributes["sym_name"]).value,
                code=code.code,
                bindings=sum(segments),
                constants=len(types.inputs) - tensors,
                local_size=code.local_size,
                writes=_bits(in_segments(written, segments)),
                unaligned=_bits(in_segments(unaligned_bindings(function), segments)),
                reports_errors=code.reports_errors,
                constants_in_buffer=code.constants_in_buffer,
                scratch=tuple(Term(one.factor, one.symbols) for one in code.scratch),
                subgroup=code.subgroup,
            )
        compiled = CompiledDispatch.of(write_executable([kernel]), strategy, rejected)
        return replace(compiled, needs=code.needs)

    def listing(self, module: mlir.Module, target: Target, disabled: frozenset[str]) -> str:
        with module.context, mlir.Location.unknown():
            return str(self._kernel(module, target, disabled)[1])

    def _kernel(
        self, module: mlir.Module, target: Target, disabled: frozenset[str]
    ) -> tuple[mlir.OpView, mlir.Module, Strategy, list[str]]:
        """The dispatch function, a module with its kernel, how that was made, and why not in another way."""
        assert isinstance(target, GpuTarget)
        generalize(module)
        function = next(op for op in module.body.operations if op.operation.name == "func.func")
        strategy, rejected = self.select(function, target, disabled)
        lowered = _lowered(function, strategy)
        trips = most_trips(lowered.operation.regions[0])
        if trips > target.max_iterations:
            name = mlir.StringAttr(function.attributes["sym_name"]).value
            raise TargetError(
                f"dispatch '{name}' goes around its loops {trips} times, and the driver of this device ends them after "
                f"{target.max_iterations} rounds without saying so; Mesa 25 and later have no such limit"
            )
        return function, lowered, strategy, rejected

    def select(
        self, function: mlir.OpView, target: Target, disabled: frozenset[str], found: Analysis | None = None
    ) -> tuple[Any, list[str]]:
        assert isinstance(target, GpuTarget)
        strategy, rejected = super().select(function, target, disabled, found)
        limit = target.max_iterations
        while limit < NO_LIMIT and codegen.STRATEGY not in function.attributes and strategy.name != STRATEGIES[-1].name:
            trips = most_trips(_lowered(function, strategy).operation.regions[0])
            if trips <= limit:
                break
            reason = f"{strategy.name}: its loops go around {trips} times, the driver ends them after {limit}"
            disabled |= {strategy.name}
            strategy, rejected = super().select(function, target, disabled, found)
            rejected.append(reason)
        return strategy, rejected

    def link(self, objects: Sequence[bytes], names: Sequence[str], target: Target, entry: str) -> bytes:
        kernels = [read_executable(one)[0] for one in objects]
        assert all(one.name == entry for one in kernels)
        return write_executable([replace(one, name=name) for one, name in zip(kernels, names, strict=True)])

    def format(self, target: Target) -> str:
        return FORMAT


BACKEND = Spirv()


def _lowered(function: mlir.OpView, strategy: Strategy) -> mlir.Module:
    """A module with the kernel of a dispatch function."""
    with function.operation.context, mlir.Location.unknown():
        lowered = mlir.Module.create(function.operation.location)
        strategy.lower(function, lowered)
        run_upstream(lowered, _SIMPLIFY)
    return lowered


def _segments(function: mlir.OpView, target: GpuTarget) -> list[int]:
    """For each tensor of a dispatch, the bindings that it takes."""
    segments = segments_of_bindings(function, target)
    if sum(segments) > MAX_BINDINGS:
        name = mlir.StringAttr(function.attributes["sym_name"]).value
        raise TargetError(
            f"dispatch '{name}' binds its {len(segments)} tensors as {sum(segments)} segments of"
            f" {target.limits.segment_bytes} bytes, which is what a binding of target '{target}' shows; a dispatch has"
            f" at most {MAX_BINDINGS} bindings"
        )
    return segments


def _bits(numbers: Sequence[int]) -> int:
    return sum(1 << number for number in set(numbers))
