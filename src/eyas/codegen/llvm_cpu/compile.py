"""Compiles one dispatch function: analyse, choose a strategy, lower, and hand over to LLVM."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir as mlir

from eyas.codegen.caution import NO_VECTORIZER
from eyas.codegen.common.analysis import generalize
from eyas.codegen.common.backend import Backend, CompiledDispatch
from eyas.codegen.common.passes.expand_bfloats import ExpandBfloats
from eyas.codegen.common.passes.expand_math import ExpandMath
from eyas.codegen.common.passes.guard_conversions import GuardConversions
from eyas.codegen.common.passes.guard_division import GuardDivision
from eyas.codegen.common.passes.guard_powers import GuardPowers
from eyas.codegen.common.passes.guard_shifts import GuardShifts
from eyas.codegen.llvm_cpu.linker import link
from eyas.codegen.llvm_cpu.llvm import emit_llvm_ir, emit_object
from eyas.codegen.llvm_cpu.lowering import lower_to_llvm
from eyas.codegen.llvm_cpu.strategies import STRATEGIES, Strategy
from eyas.ir import run_upstream
from eyas.targets import Target

__all__ = ["BACKEND", "CompiledDispatch", "compile_dispatch", "select_strategy"]

# Unrolled code is thousands of ops that use the same few indices: merging them first, and then going from the last op
# to the first, takes a tenth of the time that the canonicaliser's own order does.
_SIMPLIFY = "cse,canonicalize{top-down=false},cse"


class LlvmCpu(Backend):
    """Machine code, through LLVM."""

    strategies = STRATEGIES
    optional_steps = ("expand-math", "optimize-llvm")

    def compile(self, module: mlir.Module, target: Target, disabled: frozenset[str]) -> CompiledDispatch:
        with module.context, mlir.Location.unknown():
            lowered, strategy, rejected = _lowered(self, module, target, disabled)
            object_ = emit_object(lowered, target, _opt_level(disabled))
        return CompiledDispatch.of(object_, strategy, rejected)

    def listing(self, module: mlir.Module, target: Target, disabled: frozenset[str]) -> str:
        with module.context, mlir.Location.unknown():
            return emit_llvm_ir(_lowered(self, module, target, disabled)[0], target, 0)

    def link(self, objects: Sequence[bytes], names: Sequence[str], target: Target, entry: str) -> bytes:
        return link(objects, names, target, entry)

    def format(self, target: Target) -> str:
        return f"elf-{target.arch}"


def _lowered(
    backend: LlvmCpu, module: mlir.Module, target: Target, disabled: frozenset[str]
) -> tuple[mlir.Module, Strategy, list[str]]:
    """The dispatch in the LLVM dialect, how that was done, and why not in another way."""
    generalize(module)
    function = next(op for op in module.body.operations if op.operation.name == "func.func")
    strategy, rejected = backend.select(function, target, disabled)
    lowered = mlir.Module.create(function.operation.location)
    strategy.lower(function, lowered)
    for guard in (GuardDivision(), GuardPowers(), GuardShifts(), GuardConversions()):
        guard.run(lowered)
    if "expand-math" not in disabled:
        ExpandMath(fma=target.has_fma).run(lowered)
    ExpandBfloats().run(lowered)
    run_upstream(lowered, _SIMPLIFY)
    lower_to_llvm(lowered, target)
    return lowered, strategy, rejected


def _opt_level(disabled: frozenset[str]) -> int:
    return 0 if "optimize-llvm" in disabled else 1 if NO_VECTORIZER in disabled else 3


BACKEND = LlvmCpu()


def compile_dispatch(module: mlir.Module, target: Target, disabled: frozenset[str] = frozenset()) -> CompiledDispatch:
    """Compiles a module that holds one dispatch function. Strategies named in `disabled` are skipped, and so are
    `expand-math` (libm remains) and `optimize-llvm` (code is generated as it was lowered)."""
    return BACKEND.compile(module, target, disabled)


def select_strategy(
    function: mlir.OpView, target: Target, disabled: frozenset[str] = frozenset()
) -> tuple[Strategy, list[str]]:
    """The strategy noted on the function, or the first that applies; and why those before it did not."""
    return BACKEND.select(function, target, disabled)
