"""Windows that slide over a padded image: which taps of a reduction lie inside of it.

A guard of such an access is `0 <= shift + step * position + dilation * tap < extent`, with one reduction loop for the
tap. Where what lies outside adds nothing to the reduction, the taps outside need not run at all, so a guard is a range
of taps, or for a fixed tap a range of positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Access, Nest, Statement
from eyas.ir.structured import constant_scalar
from eyas.ir.walk import defining_op

MAX_TAPS = 24
"""Taps of a window along one direction, where they are written out: code for each of them, in each tile at an edge, is
as long as all of them together. LLVM takes minutes for windows of 64."""

_NEUTRAL = {
    "arith.addf": 0.0,
    "arith.addi": 0,
    "arith.maximumf": -math.inf,
    "arith.maxnumf": -math.inf,
    "arith.minimumf": math.inf,
    "arith.minnumf": math.inf,
}
_KEEP_ZERO = ("arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "arith.sitofp", "arith.uitofp")


@dataclass(frozen=True)
class Window:
    """`0 <= shift + sum(steps[l] * index[l]) + dilation * tap < extent`, where `tap` is the index of a reduction."""

    tap: int
    dilation: int
    steps: dict[int, int]
    shift: int
    extent: int

    def rows_inside(self, loop: int, tap: int, start: int, rows: int) -> tuple[int, int]:
        """Of the rows start, start + 1, ... along `loop`, those that are inside at this tap: from and to."""
        step, first = self.steps[loop], self.shift + self.dilation * tap + self.steps[loop] * start
        low = max(0, -(first // step))  # ceil(-first / step)
        high = min(rows, -((first - self.extent) // step))
        return low, max(low, high)


def windows_of(nest: Nest) -> list[Window] | str:
    """The guards of the nest's reduction as windows, or why some guard is none."""
    statement = nest.statements[0]
    others = [access for one in nest.statements[1:] for access in (*one.inputs, *one.inits)]
    if any(isinstance(access, Access) and access.guards for access in (*others, *statement.inits)):
        return "something other than the reduction reads a padded tensor"
    found: list[Window] = []
    for position, access in enumerate(statement.inputs):
        if not isinstance(access, Access) or not access.guards:
            continue
        if not adds_nothing_outside(statement, position):
            return "what lies outside of the image is not neutral"
        for guard in access.guards:
            loops = {loop: c for loop, c in enumerate(guard.coefficients) if c}
            taps = [loop for loop in loops if loop in statement.reductions]
            if len(taps) != 1 or guard.extent.static is None or any(c < 0 for c in loops.values()):
                return "a guard is not that of a window"
            (tap,) = taps
            steps = {loop: c for loop, c in loops.items() if loop != tap}
            found.append(Window(tap, loops[tap], steps, guard.shift, guard.extent.static))
    return found


def adds_nothing_outside(statement: Statement, position: int) -> bool:
    """Whether the reduction stays as it is when input `position` has the value from outside of its guards.

    Zeros that are multiplied and added are taken for nothing, also where the other factor is not finite: a window has
    no taps outside of the image, and every library leaves them out.
    """
    access = statement.inputs[position]
    assert isinstance(access, Access)
    if statement.body is None or not isinstance(access.otherwise, mlir.Value):
        return False
    outside = constant_scalar(access.otherwise)
    arguments = list(statement.body.arguments)
    combine = defining_op(list(statement.body.operations)[-1].operands[0])
    old = arguments[len(statement.inputs)]
    if outside is None or len(statement.outputs) != 1 or combine is None or combine.name not in _NEUTRAL:
        return False
    added = [value for value in combine.operands if value != old]
    if len(added) != 1 or len(list(old.uses)) != 1 or outside != _NEUTRAL[combine.name]:
        return False
    return added[0] == arguments[position] or (outside == 0 and _is_zero_with(added[0], arguments[position]))


def _is_zero_with(value: mlir.Value, argument: mlir.Value) -> bool:
    """Whether a value is a product of the argument, converted or not."""
    if value == argument:
        return True
    op = defining_op(value)
    if op is None or op.name not in (*_KEEP_ZERO, "arith.mulf", "arith.muli"):
        return False
    return any(_is_zero_with(operand, argument) for operand in op.operands)


def strip_guards(statement: Statement) -> Statement:
    """The same statement without guards, for points that are known to be inside."""

    def strip(item: object) -> object:
        return replace(item, guards=(), otherwise=None) if isinstance(item, Access) and item.guards else item

    return replace(statement, inputs=tuple(strip(item) for item in statement.inputs))
