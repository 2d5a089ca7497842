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
    return _handed(at, value, distance, subgroup, gpu.ShuffleMode.XOR)


def broadcast(at: Interface, value: mlir.Value, lane: int, subgroup: int) -> mlir.Value:
    """What thread `lane` of the subgroup has."""
    return _handed(at, value, lane, subgroup, gpu.ShuffleMode.IDX)


def _handed(at: Interface, value: mlir.Value, number: int, subgroup: int, mode: gpu.ShuffleMode) -> mlir.Value:
    type_, word = value.type, mlir.IntegerType.get_signless(_WORD)
    if isinstance(type_, mlir.F32Type) or type_ == word:
        offset, width = at.constant(word, number), at.constant(word, subgroup)
        return gpu.ShuffleOp(value, offset, width, mode).shuffleResult
    if isinstance(type_, mlir.FloatType):
        wide = _handed(at, arith.ExtFOp(mlir.F32Type.get(), value).result, number, subgroup, mode)
        return arith.TruncFOp(type_, wide).result
    if type_.width < _WORD:
        wide = _handed(at, arith.ExtUIOp(word, value).result, number, subgroup, mode)
        return arith.TruncIOp(type_, wide).result
    bits = at.constant(type_, _WORD)
    halves = [arith.TruncIOp(word, one).result for one in (value, arith.ShRUIOp(value, bits).result)]
    low, high = (arith.ExtUIOp(type_, _handed(at, half, number, subgroup, mode)).result for half in halves)
    return arith.OrIOp(arith.ShLIOp(high, bits).result, low).result
