"""What every strategy offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Kernel
from eyas.codegen.llvm_cpu.emit import emit_kernel
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.codegen.llvm_cpu.remarks import remarks
from eyas.codegen.llvm_cpu.schedule import GridAxis, Schedule, check_schedule
from eyas.targets import Target


@dataclass(frozen=True)
class Strategy(ABC):
    """One way to lower a dispatch. Instances are a choice: the kernel and the knobs for it."""

    name: ClassVar[str]
    part_of: ClassVar[str] = ""
    """The strategy that it is a form of, with which it is switched off."""
    takes_matrices: ClassVar[bool] = False
    """Whether kernels that read constant matrices are for it."""

    @classmethod
    @abstractmethod
    def choose(cls, kernel: Kernel | None, target: Target) -> Strategy | str:
        """The strategy with its default knobs for this kernel, or the reason why it does not apply."""

    @property
    @abstractmethod
    def grid(self) -> tuple[GridAxis, ...]:
        """How many workgroups the dispatch has, per axis."""

    @abstractmethod
    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        """Adds the entry function to the module. `function` is the dispatch function on tensors."""

    @classmethod
    def from_attribute(cls, schedule: mlir.DictAttr, kernel: Kernel | None) -> Strategy | str:
        """The strategy with knobs that were noted on the function, or why they do not fit the kernel."""
        del schedule, kernel
        return cls()

    def schedule_attribute(self) -> mlir.DictAttr:
        """The knobs, to be noted on the function."""
        return mlir.DictAttr.get({})

    @property
    def packable(self) -> tuple[int, ...]:
        """Bindings that would be read faster in panels (see `panels`), when they are weights."""
        return ()

    def describe(self) -> str:
        """Knobs in words, for `eyas explain`."""
        return ""

    def remarks(self, target: Target) -> list[str]:
        """What keeps the code from being as fast as the machine, for `eyas explain`."""
        del target
        return []


@dataclass(frozen=True)
class NestStrategy(Strategy):
    """A strategy that emits loop nests under a schedule."""

    kernel: Kernel
    schedule: Schedule

    @classmethod
    def from_attribute(cls, schedule: mlir.DictAttr, kernel: Kernel | None) -> NestStrategy | str:
        if kernel is None:
            return "it is not expressible as loop nests"
        read = Schedule.from_attribute(schedule, kernel)
        return check_schedule(read, kernel) or cls(kernel, read)

    def schedule_attribute(self) -> mlir.DictAttr:
        return self.schedule.to_attribute()

    @property
    def grid(self) -> tuple[GridAxis, ...]:
        return self.schedule.grid

    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        with mlir.InsertionPoint(module.body), function.operation.location:
            interface = Interface(
                mlir.StringAttr(function.attributes["sym_name"]).value, len(self.kernel.scalar_arguments)
            )
            emit_kernel(self.kernel, self.schedule, interface)
            interface.finish()

    def describe(self) -> str:
        tile = self.schedule.tiles[0] if self.schedule.tiles else None
        if tile is None:
            return ""
        panels = " panels" if self.schedule.packed else " staged" if self.schedule.staged else ""
        return f"width={tile.width} vectors={tile.vectors} rows={tile.unroll}{panels}"

    def remarks(self, target: Target) -> list[str]:
        return remarks(self.kernel, self.schedule, target)
