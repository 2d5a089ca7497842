"""Numbers in the IR: constants and attributes made from them, and the bytes that elements take."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith


def index_constant(value: int) -> mlir.Value:
    """An `arith.constant` of type index, at the insertion point."""
    return arith.ConstantOp(mlir.IndexType.get(), value).result


def i64_attribute(value: int) -> mlir.IntegerAttr:
    return mlir.IntegerAttr.get(mlir.IntegerType.get_signless(64), value)


def element_bytes(type_: mlir.Type) -> int:
    """Bytes of one element in memory, where none shares a byte with another."""
    if isinstance(type_, mlir.ComplexType):
        return 2 * element_bytes(type_.element_type)
    if isinstance(type_, mlir.IndexType):
        return 8
    assert isinstance(type_, mlir.IntegerType | mlir.FloatType), type_
    return -(-type_.width // 8)
