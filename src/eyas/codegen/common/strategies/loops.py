"""Plain loops: the strategy that any op of the input contract has, and which has nothing to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.fields import Fields
from eyas.codegen.common.schedule import GridAxis
from eyas.codegen.common.space import Space
from eyas.codegen.common.strategies.base import Strategy
from eyas.targets import Target

Plain = TypeVar("Plain", bound="PlainLoops")


@dataclass(frozen=True)
class PlainLoops(Strategy):
    """One workgroup, element by element."""

    name: ClassVar[str] = "loops"
    part_of: ClassVar[str] = ""
    takes_matrices: ClassVar[bool] = True
    takes_steps: ClassVar[bool] = True
    works_in_place: ClassVar[bool] = False
    writes_parts: ClassVar[bool] = True

    @classmethod
    def choose(cls: type[Plain], found: Analysis, target: Target) -> Plain:
        del found, target
        return cls()

    @classmethod
    def space(cls, found: Analysis, target: Target) -> Space | str:
        del found, target
        return Space(cls.name, (), ())

    @classmethod
    def at(cls: type[Plain], found: Analysis, target: Target, point: Mapping[str, int]) -> Plain | str:
        space = cls.space(found, target)
        return space if isinstance(space, str) else space.problem(point, laws_only=True) or cls(**point)

    @property
    def point(self) -> dict[str, int]:
        return {}

    @classmethod
    def from_attribute(
        cls: type[Plain], schedule: mlir.Attribute, found: Analysis, target: Target | None = None
    ) -> Plain | str:
        del found, target
        Fields(schedule, "", ())
        return cls()

    @property
    def grid(self) -> tuple[GridAxis, ...]:
        return ()
