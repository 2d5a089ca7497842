"""`order-nans`: sorts, places of extremes and clamps treat NaN as PyTorch and NumPy do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith

from eyas.ir import Pass, mlir
from eyas.ir.walk import defining_op, find_ops

# Predicates of arith.cmpf.
_OEQ, _OGT, _OGE, _OLT, _OLE, _ORD, _UGT, _ULT, _UNO = 1, 2, 3, 4, 5, 7, 9, 11, 14


@dataclass(frozen=True)
class OrderNans(Pass):
    """Completes the importer's comparisons, which are false for every NaN.

    In a sort NaN is greater than all numbers; for argmax and argmin the first NaN wins, as it does for the extreme
    itself; a NaN that is clamped stays. Only what the torch importer makes has these forms, so this runs right after.

        %keep = arith.cmpf ole, %a, %b                   %keep = cmpf ole, %a, %b or isnan(%b)
        %new = arith.cmpf ogt, %in, %out           ==>   %new = cmpf ogt, %in, %out or isnan(%in) and not isnan(%out)
    """

    name: ClassVar[str] = "order-nans"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "tm_tensor.sort"):
            _complete(op.regions[0].blocks[0], _sorted)
        for op in find_ops(module, "linalg.generic"):
            body = op.regions[0].blocks[0]
            _clamp(op, body)
            if any(inner.operation.name in ("arith.maximumf", "arith.minimumf") for inner in body.operations):
                _complete(body, _first)


def _clamp(op: mlir.OpView, body: mlir.Block) -> None:
    """For `x < bound ? bound : x`, which the importer alone writes with a comparison that is true for every NaN."""
    selects = [list(op.operands) for op in body.operations if op.operation.name == "arith.select"]
    for compare in [op for op in body.operations if op.operation.name == "arith.cmpf"]:
        predicate, (value, bound) = mlir.IntegerAttr(compare.attributes["predicate"]).value, compare.operands
        if predicate not in (_ULT, _UGT) or [compare.result, bound, value] not in selects:
            continue
        if _is_number(op, bound):  # one instruction of most machines, which keeps its second operand when it is NaN
            i64 = mlir.IntegerType.get_signless(64, compare.context)
            compare.attributes["predicate"] = mlir.IntegerAttr.get(i64, _OLT if predicate == _ULT else _OGT)
        else:
            with compare.location, mlir.InsertionPoint.after(compare.operation):
                # A bound that is NaN still wins over a number.
                ordered = arith.CmpFOp(_ORD, value, value)
                both = arith.AndIOp(compare.result, ordered.result)
            compare.result.replace_all_uses_except(both.result, both.operation)


def _is_number(op: mlir.OpView, bound: mlir.Value) -> bool:
    """Whether a bound is a constant that is not NaN, by itself or as the only element of a tensor."""
    if isinstance(bound.owner, mlir.Block):
        bound = op.operands[mlir.BlockArgument(bound).arg_number]
    source = defining_op(bound)
    if source is None or source.name != "arith.constant":
        return False
    attribute = source.attributes["value"]
    if isinstance(attribute, mlir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return isinstance(attribute, mlir.FloatAttr) and attribute.value == attribute.value


def _complete(body: mlir.Block, more) -> None:
    for compare in [op for op in body.operations if op.operation.name == "arith.cmpf"]:
        predicate, (left, right) = mlir.IntegerAttr(compare.attributes["predicate"]).value, compare.operands
        with compare.location, mlir.InsertionPoint.after(compare.operation):
            extra = more(body, predicate, left, right)
            if extra is None:
                continue
            both = arith.OrIOp(compare.result, extra)
        compare.result.replace_all_uses_except(both.result, both.operation)


def _sorted(body: mlir.Block, predicate: int, left: mlir.Value, right: mlir.Value) -> mlir.Value | None:
    if predicate in (_OLE, _OGE):
        return _is_nan(right if predicate == _OLE else left)
    return None


def _first(body: mlir.Block, predicate: int, left: mlir.Value, right: mlir.Value) -> mlir.Value | None:
    """For `in > out` beside `max(in, out)`, or less than beside the minimum."""
    extreme = {_OGT: "arith.maximumf", _OLT: "arith.minimumf"}.get(predicate)
    pairs = [list(op.operands) for op in body.operations if op.operation.name == extreme]
    if [left, right] not in pairs and [right, left] not in pairs:
        return None
    ordered = arith.CmpFOp(arith.CmpFPredicate(_OEQ), right, right).result
    return arith.AndIOp(_is_nan(left), ordered).result


def _is_nan(value: mlir.Value) -> mlir.Value:
    return arith.CmpFOp(arith.CmpFPredicate(_UNO), value, value).result
