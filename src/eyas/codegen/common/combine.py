"""Reductions whose partial results may be combined in any order: what `vector.reduction` needs to know."""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import vector

_KINDS = {
    "arith.addf": "ADD",
    "arith.addi": "ADD",
    "arith.mulf": "MUL",
    "arith.muli": "MUL",
    "arith.maximumf": "MAXIMUMF",
    "arith.minimumf": "MINIMUMF",
    "arith.maxnumf": "MAXNUMF",
    "arith.minnumf": "MINNUMF",
    "arith.maxsi": "MAXSI",
    "arith.minsi": "MINSI",
    "arith.maxui": "MAXUI",
    "arith.minui": "MINUI",
    "arith.andi": "AND",
    "arith.ori": "OR",
    "arith.xori": "XOR",
}


@dataclass(frozen=True)
class Combiner:
    """The op that joins a new value to the old one."""

    op_name: str

    def identity(self, type_: mlir.Type) -> float | int:
        """The value that changes nothing."""
        kind = _KINDS[self.op_name]
        if isinstance(type_, mlir.FloatType):
            return {"ADD": -0.0, "MUL": 1.0}.get(kind, float("-inf") if kind.startswith("MAX") else float("inf"))
        bits = type_.width
        signed_min, signed_max = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        table = {"ADD": 0, "MUL": 1, "MAXSI": signed_min, "MINSI": signed_max, "MAXUI": 0, "MINUI": -1, "AND": -1}
        return table.get(kind, 0)

    def horizontal(self, partials: list[mlir.Value]) -> mlir.Value:
        """Combines vectors, then the lanes of what is left."""
        total = partials[0]
        for partial in partials[1:]:
            total = self.join(total, partial)
        kind = getattr(vector.CombiningKind, _KINDS[self.op_name])
        reassociate = mlir.Attribute.parse("#arith.fastmath<reassoc>")
        options = {"fastmath": reassociate} if isinstance(total.type.element_type, mlir.FloatType) else {}
        return vector.ReductionOp(total.type.element_type, kind, total, **options).result

    def join(self, left: mlir.Value, right: mlir.Value) -> mlir.Value:
        return mlir.Operation.create(self.op_name, results=[right.type], operands=[left, right]).results[0]


def combines(op_name: str) -> bool:
    """Whether an op joins partial results, in any order."""
    return op_name in _KINDS


def combiner_of(body: mlir.Block | None, input_count: int) -> Combiner | None:
    """The combiner of a body that yields `combine(old, f(inputs))`, or None when it has another form."""
    if body is None:
        return None
    operations = list(body.operations)
    outputs = list(body.arguments)[input_count:]
    if len(outputs) != 1:
        return None
    old = outputs[0]
    yielded = operations[-1].operands[0].owner
    if isinstance(yielded, mlir.Block) or yielded.name not in _KINDS:
        return None
    uses = list(old.uses)
    if len(uses) != 1 or uses[0].owner != yielded or old not in list(yielded.operands):
        return None
    return Combiner(yielded.name)
