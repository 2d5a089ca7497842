"""What every strategy for bytecode offers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.strategies import base
from eyas.module.vmvx_assembler import Assembler

MICROKERNELS = "microkernels"
"""The group of all strategies that use tile instructions, by which they are switched off together."""


@dataclass(frozen=True)
class Strategy(base.Strategy):
    """One way to lower a dispatch to bytecode."""

    part_of: ClassVar[str] = MICROKERNELS

    @abstractmethod
    def lower(self, function: mlir.OpView, asm: Assembler) -> None:
        """Writes the dispatch. `function` is the dispatch function on tensors; bindings are its tensor arguments, then
        its results; push constants are its other arguments."""
