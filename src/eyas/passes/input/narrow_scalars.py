"""`narrow-scalars`: numbers that frameworks keep as f64 become as wide as the tensors they meet."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch_mlir.dialects import arith

from eyas.ir import Pass, mlir


@dataclass(frozen=True)
class NarrowScalars(Pass):
    """Folds `truncf` of a constant, and compares in the tensor's type where the constant is exact in it.

    torch's scalars are doubles. Upstream folds only truncations that lose nothing, which leaves a conversion in every
    loop body, and a comparison such as `x == -inf` widens each element.

        %c = arith.constant 1.0e-05 : f64                   %c = arith.constant 9.99999974E-6 : f32
        %0 = arith.truncf %c : f64 to f32          ->
        %w = arith.extf %x : f32 to f64                     %n = arith.constant 0xFF800000 : f32
        %1 = arith.cmpf oeq, %w, %inf : f64                 %1 = arith.cmpf oeq, %x, %n : f32
    """

    name: ClassVar[str] = "narrow-scalars"

    def run(self, module: mlir.Module) -> None:
        ops: list[mlir.Operation] = []

        def visit(op: mlir.Operation) -> mlir.WalkResult:
            if op.name in _RULES:
                ops.append(op)
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in ops:
            with mlir.InsertionPoint(op), op.location:
                replacement = _RULES[op.name](op)
            if replacement is not None:
                op.results[0].replace_all_uses_with(replacement)
                op.erase()


def _narrow_truncation(op: mlir.Operation) -> mlir.Value | None:
    value = _constant(op.operands[0])
    type_ = op.results[0].type
    if value is None or not isinstance(type_, mlir.FloatType):
        return None
    return arith.constant(type_, value)


def _narrow_comparison(op: mlir.Operation) -> mlir.Value | None:
    left, right = op.operands
    value, widened = _constant(right), left.owner
    if value is None or not isinstance(widened, mlir.OpView) or widened.operation.name != "arith.extf":
        return None
    source = widened.operands[0]
    if not _is_exact(value, source.type):
        return None
    predicate = mlir.IntegerAttr(op.attributes["predicate"])
    return arith.CmpFOp(predicate, source, arith.constant(source.type, value)).result


def _constant(value: mlir.Value) -> float | None:
    owner = value.owner
    if not isinstance(owner, mlir.OpView) or owner.operation.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, mlir.FloatAttr) else None


def _is_exact(value: float, type_: mlir.Type) -> bool:
    if math.isinf(value) or value == 0.0:
        return True
    return isinstance(type_, mlir.F32Type) and float(np.float32(value)) == value


_RULES: dict[str, Callable[[mlir.Operation], mlir.Value | None]] = {
    "arith.truncf": _narrow_truncation,
    "arith.cmpf": _narrow_comparison,
}
