"""Compiles one dispatch function: analyse, choose a strategy, lower, and hand over to LLVM."""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.analyze import analyze
from eyas.codegen.common.kernel import Kernel, Unsupported
from eyas.codegen.common.normalize import normalize
from eyas.codegen.common.transform import reads_matrices
from eyas.codegen.llvm_cpu.backend import emit_object
from eyas.codegen.llvm_cpu.lowering import lower_to_llvm
from eyas.codegen.llvm_cpu.strategies import STRATEGIES, Strategy
from eyas.dialects import codegen
from eyas.errors import CompileError
from eyas.ir import run_upstream
from eyas.passes.codegen.expand_bfloats import ExpandBfloats
from eyas.passes.codegen.expand_math import ExpandMath
from eyas.passes.codegen.guard_division import GuardDivision
from eyas.targets import Target

_GENERALIZE = "linalg-generalize-named-ops,canonicalize,cse"
# Unrolled code is thousands of ops that use the same few indices: merging them first, and then going from the last op
# to the first, takes a tenth of the time that the canonicaliser's own order does.
_SIMPLIFY = "cse,canonicalize{top-down=false},cse"


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
    """Compiles a module that holds one dispatch function. Strategies named in `disabled` are skipped, and so are
    `expand-math` (libm remains) and `optimize-llvm` (code is generated as it was lowered)."""
    with module.context, mlir.Location.unknown():
        run_upstream(module, _GENERALIZE)
        function = next(op for op in module.body.operations if op.operation.name == "func.func")
        strategy, rejected = select_strategy(function, target, disabled)
        lowered = mlir.Module.create(function.operation.location)
        strategy.lower(function, lowered)
        GuardDivision().run(lowered)
        if "expand-math" not in disabled:
            ExpandMath(fma=target.has_fma).run(lowered)
        ExpandBfloats().run(lowered)
        run_upstream(lowered, _SIMPLIFY)
        lower_to_llvm(lowered, target)
        object_ = emit_object(lowered, target, 0 if "optimize-llvm" in disabled else 3)
    grid = tuple(
        (axis.extent.factor if axis.extent.is_static else (axis.extent.factor, axis.extent.symbols), axis.tile)
        for axis in strategy.grid
    )
    return CompiledDispatch(object_, grid, strategy.name, strategy.describe(), tuple(rejected))


def generalized(function: mlir.OpView) -> mlir.Module:
    """A module with a copy of a dispatch function, its named ops as generics: the form that strategies read."""
    module = mlir.Module.create(function.operation.location)
    with mlir.InsertionPoint(module.body):
        function.operation.clone()
    run_upstream(module, _GENERALIZE)
    return module


def select_strategy(
    function: mlir.OpView, target: Target, disabled: frozenset[str] = frozenset()
) -> tuple[Strategy, list[str]]:
    """The strategy noted on the function, or the first that applies; and why those before it did not."""
    rejected: list[str] = []
    kernel = kernel_of(function, rejected)
    if codegen.STRATEGY in function.attributes:
        return _noted_strategy(function, kernel), rejected
    for strategy in STRATEGIES:
        if strategy.name in disabled or strategy.part_of in disabled:
            rejected.append(f"{strategy.name}: switched off")
            continue
        if kernel is not None and reads_matrices(kernel) and not strategy.takes_matrices:
            rejected.append(f"{strategy.name}: a constant matrix is read")
            continue
        choice = strategy.choose(kernel, target)
        if isinstance(choice, Strategy):
            return choice, rejected
        rejected.append(f"{strategy.name}: {choice}")
    raise AssertionError("the loops strategy applies to everything")


def _noted_strategy(function: mlir.OpView, kernel: Kernel | None) -> Strategy:
    attribute = function.attributes[codegen.STRATEGY]
    assert isinstance(attribute, codegen.StrategyAttr)
    name = mlir.StringAttr(attribute.strategy).value
    where = f"executable '{mlir.StringAttr(function.attributes['sym_name']).value}'"
    strategy = next((one for one in STRATEGIES if one.name == name), None)
    if strategy is None:
        names = ", ".join(one.name for one in STRATEGIES)
        raise CompileError(f"{where} names the unknown strategy '{name}'; there are: {names}")
    choice = strategy.from_attribute(mlir.DictAttr(attribute.schedule), kernel)
    if isinstance(choice, str):
        raise CompileError(f"{where} cannot use the strategy '{name}' as noted: {choice}")
    return choice


def kernel_of(function: mlir.OpView, rejected: list[str]) -> Kernel | None:
    """The function as loop nests, or None with the reason added to `rejected`."""
    try:
        kernel = analyze(function)
        normalize(kernel)
        return kernel
    except Unsupported as reason:
        rejected.append(f"loop nests: {reason}")
        return None
