"""Sums of products in a nest, as `tcontract` sees them: rows of one operand times columns of another."""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.kernel import Access, Nest
from eyas.codegen.common.sizes import ZERO
from eyas.codegen.vmvx.types import rounding
from eyas.ir.walk import defining_op
from eyas.module.vmvx_isa import CONTRACTIONS

LEVELS = 3
"""Loops that one instruction runs."""
_EXTENSIONS = {"arith.extf": "", "arith.extsi": "s", "arith.extui": "u"}
STEPS = {name: step for name, *_, step in CONTRACTIONS}
"""Elements of a column that lie together, by instruction."""


@dataclass(frozen=True)
class Product:
    """`out[row, lane] += left[row] * right[lane]`, summed by an instruction `tcontract_<kind>`."""

    kind: str
    left: Access
    right: Access
    right_input: int
    """Which input of the statement `right` is."""


def product_of(nest: Nest, lane: int, row: int | None) -> Product | str:
    """The product that a nest begins with, for columns along `lane` and rows along `row`; or why it is none."""
    statement = nest.statements[0]
    if not statement.reductions or lane in statement.reductions or row in statement.reductions:
        return "no sum with rows and columns"
    combiner = combiner_of(statement.body, len(statement.inputs))
    if combiner is None or combiner.op_name not in ("arith.addf", "arith.addi") or statement.body is None:
        return "no sum of products"
    if rounding(statement.element_types[0]) is not None:
        return "a sum in a type of 16 bits"
    arguments = list(statement.body.arguments)
    combine = defining_op(list(statement.body.operations)[-1].operands[0])
    assert combine is not None
    (added,) = (operand for operand in combine.operands if operand != arguments[len(statement.inputs)])
    times = defining_op(added)
    if times is None or times.name not in ("arith.mulf", "arith.muli"):
        return "no sum of products"
    factors = [_factor(operand, arguments) for operand in times.operands]
    if None in factors:
        return "a factor is computed"
    accesses = []
    for factor in factors:
        assert factor is not None
        access = statement.inputs[factor[0]]
        if not isinstance(access, Access):
            return "a factor is not in memory"
        accesses.append((access, *factor))
    for (left, _, left_kind), (right, number, right_kind) in (accesses, accesses[::-1]):
        if left.strides[lane] == ZERO and right.strides[lane] != ZERO and (row is None or right.strides[row] == ZERO):
            kind = _kind(left, left_kind, right, right_kind, statement.element_types[0])
            if kind is None:
                return "element types without an instruction"
            return Product(kind, left, right, number)
    return "no operand is the same for all columns"


def _factor(value: mlir.Value, arguments: list[mlir.Value]) -> tuple[int, str] | None:
    """The argument that a factor is, and how it was extended."""
    owner, kind = defining_op(value), "="
    if owner is not None and owner.name in _EXTENSIONS:
        kind, value = _EXTENSIONS[owner.name], owner.operands[0]
    return (arguments.index(value), kind) if value in arguments else None


def _kind(left: Access, left_kind: str, right: Access, right_kind: str, sum_type: mlir.Type) -> str | None:
    types, total = (str(left.storage.element), str(right.storage.element)), str(sum_type)
    if left_kind == right_kind == "=" and types in (("f32", "f32"), ("f64", "f64")):
        return types[0] if total == types[0] else None
    if left_kind == right_kind == "" and types in (("f16", "f16"), ("bf16", "bf16")) and total == "f32":
        return types[0]
    if types == ("i8", "i8") and total == "i32" and left_kind in ("s", "u") and right_kind in ("s", "u"):
        return f"{left_kind}8{right_kind}8"
    return None
