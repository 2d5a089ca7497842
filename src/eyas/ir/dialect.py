"""What a dialect file needs to declare ops as class bodies (annotations are read at class creation, so such files must
not use `from __future__ import annotations`)."""

from torch_mlir.dialects.ext import Dialect, Operand, Pure, Region, Result
from torch_mlir.ir import IsTerminatorTrait, NoTerminatorTrait

__all__ = ["Dialect", "IsTerminatorTrait", "NoTerminatorTrait", "Operand", "Pure", "Region", "Result"]
