"""Values that threads of a subgroup hand to each other, whatever their width: devices do that with words of 32 bits."""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu

from eyas.codegen.gpu.interface import Interface

_WORD = 32


def can_shuffle(type_: mlir.Type) -> bool:
    """Whether values of this type can be handed over."""
    if isinstance(type_, (mlir.F32Type, mlir.F16Type, mlir.BF16Type)):
        return True
    return isinstance(type_, mlir.IntegerType) and type_.width in (1, 8, 16, 32, 64)


def shuffle(at: Interface, value: mlir.Value, distance: int, subgroup: int) -> mlir.Value:
    """What the thread has whose number differs in the bit `distance`."""
    type_, word = value.type, mlir.IntegerType.get_signless(_WORD)
    if isinstance(type_, mlir.F32Type) or type_ == word:
        offset, width = at.constant(word, distance), at.constant(word, subgroup)
        return gpu.ShuffleOp(value, offset, width, gpu.ShuffleMode.XOR).shuffleResult
    if isinstance(type_, mlir.FloatType):
        wide = shuffle(at, arith.ExtFOp(mlir.F32Type.get(), value).result, distance, subgroup)
        return arith.TruncFOp(type_, wide).result
    if type_.width < _WORD:
        wide = shuffle(at, arith.ExtUIOp(word, value).result, distance, subgroup)
        return arith.TruncIOp(type_, wide).result
    bits = at.constant(type_, _WORD)
    halves = [arith.TruncIOp(word, one).result for one in (value, arith.ShRUIOp(value, bits).result)]
    low, high = (arith.ExtUIOp(type_, shuffle(at, half, distance, subgroup)).result for half in halves)
    return arith.OrIOp(arith.ShLIOp(high, bits).result, low).result
