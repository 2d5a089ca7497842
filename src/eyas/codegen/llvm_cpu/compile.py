"""Compiles one dispatch function: analyse, choose a strategy, lower, and hand over to LLVM."""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.analyze import analyze
from eyas.codegen.common.kernel import Kernel, Unsupported
from eyas.codegen.common.normalize import normalize
from eyas.codegen.llvm_cpu.backend import emit_object
from eyas.codegen.llvm_cpu.lowering import lower_to_llvm
from eyas.codegen.llvm_cpu.strategies import STRATEGIES, Strategy
from eyas.ir import run_upstream
from eyas.passes.codegen.expand_math import ExpandMath
from eyas.passes.codegen.guard_division import GuardDivision
from eyas.targets import Target


@dataclass(frozen=True)
class CompiledDispatch:
    """An object file with one entry function, and what the host must know to call it."""

    object: bytes
    grid: tuple[tuple[int | tuple[int, tuple[int, ...]], int], ...]
    """Per axis: the extent (static, or factor and push-constant ordinals) and the piece of one workgroup."""
    strategy: str
    knobs: str
    rejected: tuple[str, ...]
    """Strategies that did not apply, with the reason."""


def compile_dispatch(module: mlir.Module, target: Target, disabled: frozenset[str] = frozenset()) -> CompiledDispatch:
    """Compiles a module that holds one dispatch function. Strategies named in `disabled` are skipped."""
    with module.context, mlir.Location.unknown():
        run_upstream(module, "linalg-generalize-named-ops,canonicalize,cse")
        function = next(op for op in module.body.operations if op.operation.name == "func.func")
        strategy, rejected = select_strategy(function, target, disabled)
        lowered = mlir.Module.create(function.operation.location)
        strategy.lower(function, lowered)
        GuardDivision().run(lowered)
        ExpandMath(fma=target.has_fma).run(lowered)
        run_upstream(lowered, "canonicalize,cse")
        lower_to_llvm(lowered, target)
        object_ = emit_object(lowered, target)
    grid = tuple(
        (axis.extent.static if axis.extent.is_static else (axis.extent.factor, axis.extent.symbols), axis.tile)
        for axis in strategy.grid
    )
    return CompiledDispatch(object_, grid, strategy.name, strategy.describe(), tuple(rejected))


def select_strategy(
    function: mlir.OpView, target: Target, disabled: frozenset[str] = frozenset()
) -> tuple[Strategy, list[str]]:
    """The first strategy that applies, and why those before it did not."""
    rejected: list[str] = []
    kernel = kernel_of(function, rejected)
    for strategy in STRATEGIES:
        if strategy.name in disabled:
            rejected.append(f"{strategy.name}: switched off")
            continue
        choice = strategy.choose(kernel, target)
        if isinstance(choice, Strategy):
            return choice, rejected
        rejected.append(f"{strategy.name}: {choice}")
    raise AssertionError("the loops strategy applies to everything")


def kernel_of(function: mlir.OpView, rejected: list[str]) -> Kernel | None:
    """The function as loop nests, or None with the reason added to `rejected`."""
    try:
        kernel = analyze(function)
        normalize(kernel)
        return kernel
    except Unsupported as reason:
        rejected.append(f"loop nests: {reason}")
        return None
