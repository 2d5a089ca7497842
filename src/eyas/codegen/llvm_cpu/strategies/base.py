"""What every strategy for machine code offers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common import strategy as common
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Schedule
from eyas.codegen.common.strategy import GridAxis
from eyas.codegen.llvm_cpu.emit import emit_kernel
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.codegen.llvm_cpu.remarks import remarks
from eyas.codegen.llvm_cpu.schedule import check_schedule
from eyas.targets import Target


@dataclass(frozen=True)
class Strategy(common.Strategy):
    """One way to lower a dispatch to loops, vectors and memrefs."""

    @abstractmethod
    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        """Adds the entry function to the module. `function` is the dispatch function on tensors."""


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
