"""How often one thread of a kernel goes around its loops, all of them together: some drivers stop counting at a point,
end the loops and go on with what they have (`GpuTarget.max_iterations`)."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.ir.walk import constant_int

ROUNDS = "eyas.rounds"
"""On a loop: how often it goes around as a rule, where its bounds do not say it."""

_UNKNOWN = 16
"""Rounds of a loop whose number is not known before it runs."""


def most_trips(region: mlir.Region) -> int:
    """An estimate from above, where the bounds of loops are known."""
    total = 0
    for block in region.blocks:
        for view in block.operations:
            op = view.operation
            inside = sum(most_trips(one) for one in op.regions)
            total += _rounds(op) * (1 + inside) if op.name in ("scf.for", "scf.while") else inside
    return total


def _rounds(op: mlir.Operation) -> int:
    if ROUNDS in op.attributes:
        return mlir.IntegerAttr(op.attributes[ROUNDS]).value
    if op.name == "scf.while":
        return _UNKNOWN
    low, high, step = (constant_int(value) for value in list(op.operands)[:3])
    if high is None or not step:
        return _UNKNOWN
    return max(0, -(-(high - (low or 0)) // step))
