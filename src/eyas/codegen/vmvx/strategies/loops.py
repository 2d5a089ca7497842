"""Plain loops of scalar instructions: the strategy that any op of the input contract has, and the plain interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.strategy import GridAxis
from eyas.codegen.vmvx.scalar import lower_to_scalars
from eyas.codegen.vmvx.strategies.base import Strategy
from eyas.module.vmvx_assembler import Assembler
from eyas.targets import Target


@dataclass(frozen=True)
class Loops(Strategy):
    name: ClassVar[str] = "loops"
    part_of: ClassVar[str] = ""
    takes_matrices: ClassVar[bool] = True
    works_in_place: ClassVar[bool] = False

    @classmethod
    def choose(cls, kernel: Kernel | None, target: Target) -> Loops:
        return cls()

    @property
    def grid(self) -> tuple[GridAxis, ...]:
        return ()

    def lower(self, function: mlir.OpView, asm: Assembler) -> None:
        lower_to_scalars(function, asm)

    def remarks(self, target: Target) -> list[str]:
        return ["runs as plain loops of bytecode, one element at a time"]
