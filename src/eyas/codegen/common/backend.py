"""What the compiler asks of a target's code generator, and how each of them selects among its strategies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.codegen.common.fields import FieldError
from eyas.codegen.common.space import Space
from eyas.codegen.common.strategies.base import Strategy
from eyas.codegen.common.transform import reads_matrices
from eyas.dialects import codegen, flow
from eyas.errors import CompileError
from eyas.targets import Target


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
    needs: tuple[str, ...] = ()
    """What the code uses of a device that not every device of its kind has (`codegen.common.needs`)."""

    @staticmethod
    def of(
        object_: bytes, strategy: Strategy, rejected: Sequence[str], needs: tuple[str, ...] = ()
    ) -> CompiledDispatch:
        grid = tuple(
            (extent.factor if extent.is_static else (extent.factor, extent.symbols), axis.tile)
            for axis, extent in zip(strategy.grid, strategy.grid_extents, strict=True)
        )
        return CompiledDispatch(object_, grid, strategy.name, strategy.describe(), tuple(rejected), needs=needs)


class Backend(ABC):
    """The code generator of a target."""

    strategies: Sequence[type[Strategy]]
    """In the order in which they are tried; the last takes everything."""
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

    def select(
        self, function: mlir.OpView, target: Target, disabled: frozenset[str], found: Analysis | None = None
    ) -> tuple[Any, list[str]]:
        """The strategy noted on the function, or the first that applies; and why those before it did not. `found` is
        what is known of the function's loop nests, if somebody read them before."""
        found = Analysis.of(function, target.near_bytes) if found is None else found
        rejected = found.reasons
        if codegen.STRATEGY in function.attributes:
            return self._noted(function, found, target), rejected
        for strategy in self.strategies:
            if strategy.name in disabled or strategy.part_of in disabled:
                rejected.append(f"{strategy.name}: switched off")
                continue
            choice = _why_never(strategy, function, found) or strategy.choose(found, target)
            if isinstance(choice, Strategy):
                if (problem := choice.problem()) is None:
                    return choice, rejected
                choice = f"its own schedule is refused: {problem}"
            rejected.append(f"{strategy.name}: {choice}")
        raise AssertionError("the loops strategy applies to everything")

    def spaces(
        self, function: mlir.OpView, target: Target, disabled: frozenset[str], found: Analysis | None = None
    ) -> tuple[dict[str, Space], list[str]]:
        """What can be chosen for a dispatch: the space of every strategy that can lower it, in the order in which they
        are asked by default, and why the others cannot. Which of them it is, is a choice as well."""
        found = analysis_of(function, {}, target.near_bytes) if found is None else found
        spaces: dict[str, Space] = {}
        rejected = found.reasons
        for strategy in self.strategies:
            if strategy.name in disabled or strategy.part_of in disabled:
                rejected.append(f"{strategy.name}: switched off")
                continue
            space = _why_never(strategy, function, found) or strategy.space(found, target)
            if isinstance(space, str):
                rejected.append(f"{strategy.name}: {space}")
            else:
                spaces[strategy.name] = space
        return spaces, rejected

    def choice_at(
        self,
        function: mlir.OpView,
        target: Target,
        strategy: str,
        point: Mapping[str, int],
        found: Analysis | None = None,
    ) -> Strategy | str:
        """The choice that a point of a strategy's space is, or why it cannot be made."""
        found = analysis_of(function, {}, target.near_bytes) if found is None else found
        kind = next((one for one in self.strategies if one.name == strategy), None)
        if kind is None:
            return f"there is no strategy '{strategy}'; there are {', '.join(one.name for one in self.strategies)}"
        return _why_never(kind, function, found) or kind.at(found, target, point)

    def works_in_place(self, function: mlir.OpView, target: Target, disabled: frozenset[str], found: Analysis) -> bool:
        """Whether a dispatch that is expressible as loop nests may write over what it has read."""
        if codegen.STRATEGY in function.attributes:
            return self.noted_strategy(function).works_in_place
        return self.select(function, target, disabled, found)[0].works_in_place

    def noted_strategy(self, function: mlir.OpView) -> type[Strategy]:
        """The strategy that is named on a function."""
        name, where = _noted_name(function)
        strategy = next((one for one in self.strategies if one.name == name), None)
        if strategy is None:
            names = ", ".join(one.name for one in self.strategies)
            raise CompileError(f"{where} names the unknown strategy '{name}'; there are: {names}")
        return strategy

    def check_noted(self, function: mlir.OpView, found: Analysis, target: Target | None = None) -> Strategy:
        """The strategy that is noted on a function, whose schedule fits, the target too where one is given; raises
        CompileError for one that does not."""
        strategy = self.noted_strategy(function)
        try:
            never = _why_never(strategy, function, found)
            choice = never or strategy.from_attribute(function.attributes[codegen.STRATEGY].schedule, found, target)
        except FieldError as error:
            choice = str(error)
        return _or_refused(choice, function)

    def _noted(self, function: mlir.OpView, found: Analysis, target: Target) -> Strategy:
        tried = self.check_noted(function, found, target).tried()
        return _or_refused(f"tiles: {tried}" if isinstance(tried, str) else tried, function)


def _or_refused(choice: Strategy | str, function: mlir.OpView) -> Strategy:
    if isinstance(choice, str):
        name, where = _noted_name(function)
        raise CompileError(f"{where} cannot use the strategy '{name}' as noted: {choice}")
    return choice


def _why_never(strategy: type[Strategy], function: mlir.OpView, found: Analysis) -> str | None:
    """Why a strategy cannot lower a function, whatever its schedule; or None."""
    if flow.IN_PLACE in function.attributes and not strategy.writes_parts:
        return "only a part of the result is written, which no schedule of it can do"
    if found.raw is not None and found.raw.steps is not None and not strategy.takes_steps:
        return "it runs in steps, which no schedule of it can do"
    if found.raw is not None and reads_matrices(found.raw) and not strategy.takes_matrices:
        return "a constant matrix is read, which no schedule of it can do"
    return None


def _noted_name(function: mlir.OpView) -> tuple[str, str]:
    """The name of the noted strategy, and what errors call the function."""
    attribute, where = function.attributes[codegen.STRATEGY], f"executable '{function.attributes['sym_name'].value}'"
    if not isinstance(attribute, codegen.StrategyAttr):
        raise CompileError(f'{where}: {codegen.STRATEGY} is {attribute}; write #codegen.strategy<"name", {{...}}>')
    return mlir.StringAttr(attribute.strategy).value, where
