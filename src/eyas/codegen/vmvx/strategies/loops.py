"""Plain loops of scalar instructions: the strategy that any op of the input contract has, and the plain interpreter."""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.strategies.loops import PlainLoops
from eyas.codegen.vmvx.scalar import lower_to_scalars
from eyas.codegen.vmvx.strategies.base import Strategy
from eyas.module.vmvx_assembler import Assembler
from eyas.targets import Target


@dataclass(frozen=True)
class Loops(PlainLoops, Strategy):
    def lower(self, function: mlir.OpView, asm: Assembler) -> None:
        lower_to_scalars(function, asm)

    def remarks(self, target: Target) -> list[str]:
        return ["runs as plain loops of bytecode, one element at a time"]
