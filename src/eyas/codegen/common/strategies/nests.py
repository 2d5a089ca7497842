"""Strategies that emit loop nests under a schedule."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import GridAxis, Schedule
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.strategies.base import Strategy

Nested = TypeVar("Nested", bound="NestStrategy")
NO_NESTS = "not expressible as loop nests"


@dataclass(frozen=True)
class NestStrategy(Strategy):
    """A kernel, with rows in the blocks that the schedule says, and the schedule."""

    kernel: Kernel
    schedule: Schedule

    @classmethod
    @abstractmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        """Why the kernel cannot run under this schedule, in a sentence that begins with the field; or None."""

    @classmethod
    def from_attribute(cls: type[Nested], schedule: mlir.Attribute, found: Analysis) -> Nested | str:
        read = Schedule.from_attribute(schedule)
        kernel = found.kernel(read.block)
        if isinstance(kernel, str):
            return f"block: {kernel}" if read.block is not None else f"tiles: {kernel}"
        return cls.check(read, kernel) or cls(kernel, read)

    def problem(self) -> str | None:
        return self.check(self.schedule, self.kernel)

    def schedule_attribute(self) -> mlir.DictAttr:
        return self.schedule.to_attribute()

    @property
    def grid(self) -> tuple[GridAxis, ...]:
        return self.schedule.grid

    @property
    def grid_extents(self) -> tuple[Size, ...]:
        return tuple(self.kernel.nests[-1].loops[axis.loop] for axis in self.schedule.grid)
