"""What every strategy of every target offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.schedule import GridAxis, Panels
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.space import Space
from eyas.targets import Target

Chosen = TypeVar("Chosen", bound="Strategy")


@dataclass(frozen=True)
class Strategy(ABC):
    """One way to lower a dispatch. Instances are a choice: the kernel and the knobs for it. How it lowers is for the
    target's own base class to say."""

    name: ClassVar[str]
    part_of: ClassVar[str] = ""
    """The strategy, or group of strategies, that it is a form of, with which it is switched off."""
    takes_matrices: ClassVar[bool] = False
    """Whether kernels that read constant matrices are for it."""
    takes_steps: ClassVar[bool] = False
    """Whether kernels whose nests run in steps are for it."""
    works_in_place: ClassVar[bool] = True
    """Whether a result may lie where an operand does that the loop nests read only before they write there."""
    writes_parts: ClassVar[bool] = False
    """Whether it can change a part of an operand and leave the rest as it is (`flow.in_place`)."""

    @classmethod
    @abstractmethod
    def choose(cls, found: Analysis, target: Target) -> Strategy | str:
        """The strategy with its default knobs for this dispatch, or the reason why it does not apply. What is chosen
        here must lower: buffers are shared and weights are packed on the strength of it."""

    @classmethod
    @abstractmethod
    def space(cls, found: Analysis, target: Target) -> Space | str:
        """What can be chosen for this dispatch, or the reason why nothing can: also where `choose` would rather leave
        it to another strategy."""

    @classmethod
    @abstractmethod
    def at(cls, found: Analysis, target: Target, point: Mapping[str, int]) -> Strategy | str:
        """The strategy with the knobs that a point of its space has, or why they do not fit."""

    @property
    @abstractmethod
    def point(self) -> dict[str, int]:
        """What was chosen here, as a point of the space; that of the default is in it."""

    @property
    @abstractmethod
    def grid(self) -> tuple[GridAxis, ...]:
        """How the dispatch is cut into workgroups."""

    @property
    def grid_extents(self) -> tuple[Size, ...]:
        """The extents of the loops that the grid cuts."""
        return ()

    @classmethod
    @abstractmethod
    def from_attribute(cls, schedule: mlir.Attribute, found: Analysis, target: Target | None = None) -> Strategy | str:
        """The strategy with knobs that were noted on the function, or why they do not fit the dispatch, or the target
        where one is given. Raises FieldError for knobs that cannot be read."""

    def tried(self: Chosen) -> Chosen | str:
        """Itself, or why it cannot be lowered after all, where only lowering it can tell."""
        return self

    def schedule_attribute(self) -> mlir.DictAttr:
        """The knobs, to be noted on the function."""
        return mlir.DictAttr.get({})

    def problem(self) -> str | None:
        """Why this choice cannot run, or None: what is chosen by default is checked as what is noted by hand."""
        return None

    @property
    def packable(self) -> tuple[Panels, ...]:
        """Bindings that would be read faster in panels (see `panels`), when they are weights, and of how many lanes."""
        return ()

    def describe(self) -> str:
        """Knobs in words, for `eyas explain`."""
        return ""

    def remarks(self, target: Target) -> list[str]:
        """What keeps the code from being as fast as the machine, for `eyas explain`."""
        del target
        return []
