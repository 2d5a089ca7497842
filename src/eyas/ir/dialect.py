"""What a dialect file needs to declare ops as class bodies (annotations are read at class creation, so such files must
not use `from __future__ import annotations`)."""

from collections.abc import Iterable
from typing import Any

from torch_mlir.dialects.ext import Dialect, Operand, Pure, Region, Result
from torch_mlir.ir import Attribute, DenseI64ArrayAttr, IsTerminatorTrait, NoTerminatorTrait

IntegersAttr = Any
"""A `DenseI64ArrayAttr`; IRDL has no name for it, so the type is not checked."""


def integers(values: Iterable[int]) -> Attribute:
    """Numbers for a field of an op. As plain attributes: makers of ops take an empty list of them for none at all."""
    return Attribute(DenseI64ArrayAttr.get(list(values)))


__all__ = [
    "IntegersAttr",
    "Dialect",
    "IsTerminatorTrait",
    "NoTerminatorTrait",
    "Operand",
    "Pure",
    "Region",
    "Result",
    "integers",
]
