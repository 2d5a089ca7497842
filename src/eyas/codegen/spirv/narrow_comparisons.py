"""Numbers that were widened to 64 bits are compared as they were before.

An index that a framework counts in 64 bits is one of 32 here, and so are its comparisons: cheaper everywhere, and right
under lavapipe 22.3, where `i64(x) <= 1` is false for every x.
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.passes.lanes import element_type, splat
from eyas.ir.walk import defining_op, find_ops

_SIGNED = ("arith.extsi", "arith.index_cast")
_UNSIGNED = ("arith.extui", "arith.index_castui")
_Compare = arith.CmpIPredicate
_SWAPPED = {
    _Compare.slt: _Compare.sgt, _Compare.sle: _Compare.sge, _Compare.sgt: _Compare.slt, _Compare.sge: _Compare.sle,
    _Compare.eq: _Compare.eq, _Compare.ne: _Compare.ne,
}  # fmt: skip
_WITHOUT_SIGN = {
    _Compare.slt: _Compare.ult, _Compare.sle: _Compare.ule, _Compare.sgt: _Compare.ugt, _Compare.sge: _Compare.uge,
    _Compare.eq: _Compare.eq, _Compare.ne: _Compare.ne,
}  # fmt: skip


def narrow_comparisons(module: mlir.Module) -> None:
    """Compares what a widening reads with the other side, if that is a constant or was widened in the same way."""
    for op in find_ops(module, "arith.cmpi"):
        predicate = _Compare(mlir.IntegerAttr(op.attributes["predicate"]).value)
        left, right = op.operands
        if predicate in _SWAPPED and _constant(left) is not None:
            left, right, predicate = right, left, _SWAPPED[predicate]
        source = defining_op(left)
        if (
            predicate not in _SWAPPED
            or source is None
            or source.name not in (*_SIGNED, *_UNSIGNED)
            or not _widens(source)
        ):
            continue
        with mlir.InsertionPoint(op), op.operation.location:
            made = _compare(predicate, source, right)
        if made is not None:
            op.results[0].replace_all_uses_with(made)
            op.operation.erase()


def _widens(cast: mlir.Operation) -> bool:
    return _bits(cast.operands[0].type) == 32 and _bits(cast.results[0].type) == 64


def _compare(predicate: arith.CmpIPredicate, source: mlir.Operation, right: mlir.Value) -> mlir.Value | None:
    narrow, signed = source.operands[0], source.name in _SIGNED
    own = predicate if signed else _WITHOUT_SIGN[predicate]
    number = _constant(right)
    if number is None:
        other = defining_op(right)
        if other is None or other.name != source.name or other.operands[0].type != narrow.type:
            return None
        return arith.cmpi(own, narrow, other.operands[0])
    bits = _bits(narrow.type)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if low <= number <= high:
        kind = element_type(narrow.type)
        stored = number if isinstance(kind, mlir.IndexType) or number < 1 << (bits - 1) else number - (1 << bits)
        return arith.cmpi(own, narrow, splat(narrow.type, mlir.IntegerAttr.get(kind, stored)))
    above = number > high
    known = {
        _Compare.slt: above, _Compare.sle: above, _Compare.sgt: not above, _Compare.sge: not above,
        _Compare.eq: False, _Compare.ne: True,
    }[predicate]  # fmt: skip
    truth = arith.cmpi(_Compare.eq, narrow, narrow)
    return truth if known else arith.cmpi(_Compare.ne, narrow, narrow)


def _constant(value: mlir.Value) -> int | None:
    made = defining_op(value)
    if made is None or made.name != "arith.constant":
        return None
    attribute = made.attributes["value"]
    if isinstance(attribute, mlir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return mlir.IntegerAttr(attribute).value


def _bits(kind: mlir.Type) -> int:
    """An index has 32 bits on a GPU."""
    element = element_type(kind)
    return 32 if isinstance(element, mlir.IndexType) else mlir.IntegerType(element).width
