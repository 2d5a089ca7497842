"""What a dialect file needs to declare ops as class bodies (annotations are read at class creation, so such files must
not use `from __future__ import annotations`)."""

from typing import Any

from torch_mlir.dialects.ext import Dialect, Operand, Pure, Region, Result
from torch_mlir.ir import IsTerminatorTrait, NoTerminatorTrait

IntegersAttr = Any
"""A `DenseI64ArrayAttr`; IRDL has no name for it, so the type is not checked."""

__all__ = ["IntegersAttr", "Dialect", "IsTerminatorTrait", "NoTerminatorTrait", "Operand", "Pure", "Region", "Result"]
