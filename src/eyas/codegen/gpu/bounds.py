"""How large an index of a dispatch can get, as a sum of products of its push constants.

Scratch memory is sized by that: the host knows push constants when it records a dispatch, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch_mlir import ir as mlir

from eyas.codegen.common.sizes import Size
from eyas.codegen.gpu.flat_memory import Bound, plus, times
from eyas.ir.walk import constant_int

_LEFT = ("arith.subi", "arith.divui", "arith.divsi", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui")
_SAME = ("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
_EITHER = ("arith.minsi", "arith.minui", "arith.remsi", "arith.remui")
_BOTH = ("arith.maxsi", "arith.maxui")


class Bounds:
    """Of values in a function on memrefs. Sizes and offsets are not negative."""

    def __init__(self, constants: Mapping[mlir.Value, int], size_of: Callable[[mlir.Value, int], Bound | None]):
        self._constants, self._size_of = constants, size_of

    def of(self, value: mlir.Value) -> Bound | None:
        """None where it depends on data."""
        known = constant_int(value)
        if known is not None:
            return (Size(max(known, 0)),)
        if value in self._constants:
            return (Size(1, (self._constants[value],)),)
        if isinstance(value.owner, mlir.Block):
            return self._of_argument(mlir.BlockArgument(value))
        op = value.owner.operation
        operands = list(op.operands)
        if op.name == "memref.dim":
            axis = constant_int(operands[1])
            return None if axis is None else self._size_of(operands[0], axis)
        if op.name in _SAME or op.name in _LEFT:
            return self.of(operands[0])
        if op.name in _EITHER:
            return self._least(*operands)
        if op.name in _BOTH:
            return self._larger(*operands)
        if op.name == "arith.select":
            return self._larger(*operands[1:])
        if op.name in ("arith.addi", "arith.muli"):
            left, right = map(self.of, operands)
            if left is None or right is None:
                return None
            return plus(left, right) if op.name == "arith.addi" else times(left, right)
        return None

    def _of_argument(self, value: mlir.BlockArgument) -> Bound | None:
        """A loop's counter is below where the loop ends."""
        loop = value.owner.owner.operation
        if loop.name == "scf.for" and value.arg_number == 0:
            return self.of(loop.operands[1])
        if loop.name == "scf.parallel":
            return self.of(loop.operands[len(value.owner.arguments) + value.arg_number])
        return None

    def _larger(self, left: mlir.Value, right: mlir.Value) -> Bound | None:
        first, second = self.of(left), self.of(right)
        if first is None or second is None:
            return None
        return first if first == second else plus(first, second)

    def _least(self, left: mlir.Value, right: mlir.Value) -> Bound | None:
        """One of the two: that without symbols, if there is one."""
        found = [one for one in (self.of(left), self.of(right)) if one is not None]
        static = [one for one in found if all(term.is_static for term in one)]
        return (static or found or [None])[0]
