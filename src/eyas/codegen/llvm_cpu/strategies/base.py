"""What every strategy for machine code offers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Schedule
from eyas.codegen.common.space import Constraint, Knob
from eyas.codegen.common.strategies import base, nests
from eyas.codegen.llvm_cpu.emit import NestEmitter, emit_kernel
from eyas.codegen.llvm_cpu.interface import Interface
from eyas.codegen.llvm_cpu.llvm import SCALAR
from eyas.codegen.llvm_cpu.remarks import remarks
from eyas.codegen.llvm_cpu.schedule import check_schedule
from eyas.codegen.llvm_cpu.space import tile_constraints, tile_knobs
from eyas.targets import Target


@dataclass(frozen=True)
class Strategy(base.Strategy):
    """One way to lower a dispatch to loops, vectors and memrefs."""

    @abstractmethod
    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        """Adds the entry function to the module. `function` is the dispatch function on tensors."""


@dataclass(frozen=True)
class NestStrategy(nests.NestStrategy, Strategy):
    """A strategy that emits loop nests under a schedule, each by `emitter`."""

    emitter: ClassVar[type[NestEmitter]] = NestEmitter

    @classmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        if not cls.emitter.takes_guards and any(nest.guards for nest in kernel.nests):
            return "tiles: small tiles of a nest stick out of their tensor, for which there is the strategy transforms"
        return check_schedule(schedule, kernel)

    @classmethod
    def check_target(cls, schedule: Schedule, kernel: Kernel, target: Target) -> str | None:
        most = getattr(target, "integer_dot", 1)
        for number, tile in enumerate(schedule.tiles):
            if tile.dot > most:
                return (
                    f"tiles[{number}].dot is {tile.dot}; instructions of '{target}' multiply at most {most} neighbours"
                )
        return None

    def tile_knobs(self, number: int, target: Target) -> list[Knob]:
        return tile_knobs(self.kernel, number, self.schedule.tiles[number], target)

    def tile_constraints(self, number: int, target: Target) -> list[Constraint]:
        return tile_constraints(self.kernel, number, target)

    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        with mlir.InsertionPoint(module.body), function.operation.location:
            name = mlir.StringAttr(function.attributes["sym_name"]).value
            interface = Interface(name, len(self.kernel.scalar_arguments))
            emit_kernel(self.kernel, self.schedule, interface, self.emitter)
            if any(tile.width == 1 and tile.unroll > 1 for tile in self.schedule.tiles):
                # Rows without lanes are meant: LLVM would make vectors of them, with gathers that take longer.
                interface.function.attributes[SCALAR] = mlir.UnitAttr.get()
            interface.finish()

    def describe(self) -> str:
        tile = self.schedule.tiles[0] if self.schedule.tiles else None
        if tile is None:
            return ""
        panels = " panels" if self.schedule.packed else " staged" if self.schedule.staged else ""
        dot = f" dot={tile.dot}" if tile.dot > 1 else ""
        return f"width={tile.width} vectors={tile.vectors} rows={tile.unroll}{dot}{panels}"

    def remarks(self, target: Target) -> list[str]:
        return remarks(self.kernel, self.schedule, target)
