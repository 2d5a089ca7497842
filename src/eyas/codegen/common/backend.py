"""What the compiler asks of a target's code generator, and how each of them selects among its strategies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir as mlir

from eyas.codegen.common.analyze import analyze
from eyas.codegen.common.kernel import Kernel, Unsupported
from eyas.codegen.common.normalize import normalize
from eyas.codegen.common.strategy import Strategy
from eyas.codegen.common.transform import reads_matrices
from eyas.dialects import codegen
from eyas.errors import CompileError
from eyas.ir import run_upstream
from eyas.targets import Target

_GENERALIZE = "linalg-generalize-named-ops,canonicalize,cse"


@dataclass(frozen=True)
class CompiledDispatch:
    """One dispatch's code, to be linked with that of the others, and what the host must know to call it."""

    object: bytes
    grid: tuple[tuple[int | tuple[int, tuple[int, ...]], int], ...]
    """Per axis: the extent (static, or factor and push-constant ordinals) and the piece of one workgroup."""
    strategy: str
    knobs: str
    rejected: tuple[str, ...]
    """Strategies that did not apply, with the reason."""
    caution: int = 0
    """How much was given up so that it compiled (`codegen.jobs.Caution`)."""
    given_up: str = ""
    """What happened then, for people; empty where nothing did."""

    @staticmethod
    def of(object_: bytes, strategy: Strategy, rejected: Sequence[str]) -> CompiledDispatch:
        grid = tuple(
            (axis.extent.factor if axis.extent.is_static else (axis.extent.factor, axis.extent.symbols), axis.tile)
            for axis in strategy.grid
        )
        return CompiledDispatch(object_, grid, strategy.name, strategy.describe(), tuple(rejected))


class Backend(ABC):
    """The code generator of a target."""

    strategies: Sequence[type[Strategy]]
    """In the order in which they are tried; the last takes everything."""
    takes_every_nest: bool = False
    """Whether all that is expressible as loop nests has a strategy that works in place."""
    optional_steps: tuple[str, ...] = ()
    """What else can be left out when a dispatch is compiled, in the order in which it happens."""

    @property
    def strategy_switches(self) -> tuple[str, ...]:
        """Names of strategies, and of groups of them, that a program compiles without: all but the one that takes
        everything. What a strategy is a part of comes before it."""
        names = [name for strategy in self.strategies[:-1] for name in (strategy.part_of, strategy.name) if name]
        return tuple(dict.fromkeys(names))

    @property
    def switches(self) -> tuple[str, ...]:
        """All that a dispatch can be compiled without, in the order in which it meets them."""
        return (*self.strategy_switches, *self.optional_steps)

    @abstractmethod
    def compile(self, module: mlir.Module, target: Target, disabled: frozenset[str]) -> CompiledDispatch:
        """Compiles a module that holds one dispatch function."""

    def listing(self, module: mlir.Module, target: Target, disabled: frozenset[str]) -> str:
        """The code of a dispatch as text, before the step that is not ours; empty where there is no such step."""
        del module, target, disabled
        return ""

    @abstractmethod
    def link(self, objects: Sequence[bytes], names: Sequence[str], target: Target, entry: str) -> bytes:
        """One executable of the functions called `entry` in each object, under names of their own."""

    @abstractmethod
    def format(self, target: Target) -> str:
        """What the executable is called in a module."""

    def select(self, function: mlir.OpView, target: Target, disabled: frozenset[str]) -> tuple[Any, list[str]]:
        """The strategy noted on the function, or the first that applies; and why those before it did not."""
        rejected: list[str] = []
        kernel = kernel_of(function, rejected)
        if codegen.STRATEGY in function.attributes:
            return self._noted(function, kernel), rejected
        for strategy in self.strategies:
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

    def works_in_place(self, function: mlir.OpView, target: Target, disabled: frozenset[str]) -> bool:
        """Whether a dispatch that is expressible as loop nests may write over what it has read."""
        if self.takes_every_nest and disabled.isdisjoint(self.strategy_switches):
            return True
        single = generalized(function)
        return self.select(single.body.operations[0], target, disabled)[0].works_in_place

    def _noted(self, function: mlir.OpView, kernel: Kernel | None) -> Strategy:
        attribute = function.attributes[codegen.STRATEGY]
        assert isinstance(attribute, codegen.StrategyAttr)
        name = mlir.StringAttr(attribute.strategy).value
        where = f"executable '{mlir.StringAttr(function.attributes['sym_name']).value}'"
        strategy = next((one for one in self.strategies if one.name == name), None)
        if strategy is None:
            names = ", ".join(one.name for one in self.strategies)
            raise CompileError(f"{where} names the unknown strategy '{name}'; there are: {names}")
        choice = strategy.from_attribute(mlir.DictAttr(attribute.schedule), kernel)
        if isinstance(choice, str):
            raise CompileError(f"{where} cannot use the strategy '{name}' as noted: {choice}")
        return choice


def generalize(module: mlir.Module) -> None:
    """Makes generics of named ops: the form that strategies read."""
    run_upstream(module, _GENERALIZE)


def generalized(function: mlir.OpView) -> mlir.Module:
    """A module with a copy of a dispatch function in the form that strategies read."""
    module = mlir.Module.create(function.operation.location)
    with mlir.InsertionPoint(module.body):
        function.operation.clone()
    generalize(module)
    return module


def kernel_of(function: mlir.OpView, rejected: list[str]) -> Kernel | None:
    """The function as loop nests, or None with the reason added to `rejected`."""
    try:
        kernel = analyze(function)
        normalize(kernel)
        return kernel
    except Unsupported as reason:
        rejected.append(f"loop nests: {reason}")
        return None
