"""`place-maxima`: the place of a window's largest element is one in the window, whatever the element is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import defining_op, find_ops

# Predicates of arith.cmpf and arith.cmpi.
_OEQ, _UNO = 1, 14
_EQ, _SLT, _SGE = 0, 2, 5
_OPEN = mlir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class PlaceMaxima(Pass):
    """Completes the importer's search for the element of a window that is equal to the window's largest.

    It looks in the padded image, where padding is equal to a largest element of -inf, and no NaN is equal to anything.
    As in PyTorch, only what is inside of the image counts, and the last NaN wins. Only what the torch importer makes
    has this form, so this runs right after.

        %same = cmpf oeq, %element, %largest              %free = cmpi eq, %out, -1
        %found = select %same, %here, %out          ==>   %take = (isnan(%element) or %same and %free) and %inside
        %free = cmpi eq, %out, -1                         yield select %take, %here, %out
        yield select %free, %found, %out
    """

    name: ClassVar[str] = "place-maxima"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "linalg.generic"):
            search = _search(op.regions[0].blocks[0])
            if search is not None:
                _complete(search)


@dataclass(frozen=True)
class _Search:
    """The ops of a body that keeps the first place of an element that is equal to another value."""

    last: mlir.Operation
    same: mlir.Value
    free: mlir.Value
    here: mlir.Value
    out: mlir.Value
    element: mlir.Operation


def _search(body: mlir.Block) -> _Search | None:
    end = list(body.operations)[-1].operation
    last = defining_op(end.operands[0]) if len(end.operands) == 1 else None
    if last is None or last.name != "arith.select":
        return None
    found, out = defining_op(last.operands[1]), last.operands[2]
    if found is None or found.name != "arith.select" or found.operands[2] != out:
        return None
    same, free = defining_op(found.operands[0]), defining_op(last.operands[0])
    if same is None or free is None or out != body.arguments[len(body.arguments) - 1]:
        return None
    if not (_compares(free, "arith.cmpi", _EQ) and free.operands[0] == out and _is_minus_one(free.operands[1])):
        return None
    if not (_compares(same, "arith.cmpf", _OEQ) or _compares(same, "arith.cmpi", _EQ)):
        return None
    element = defining_op(same.operands[0])
    if element is None or element.name != "tensor.extract":
        return None
    return _Search(last, same.results[0], free.results[0], found.operands[1], out, element)


def _complete(search: _Search) -> None:
    with search.last.location, mlir.InsertionPoint(search.last):
        take = arith.AndIOp(search.free, search.same).result
        value = search.element.results[0]
        if isinstance(value.type, mlir.FloatType):
            take = arith.OrIOp(take, arith.CmpFOp(_UNO, value, value).result).result
        for inside in _inside(search.element):
            take = arith.AndIOp(take, inside).result
        kept = arith.SelectOp(take, search.here, search.out).result
    search.last.results[0].replace_all_uses_with(kept)


def _inside(element: mlir.Operation) -> list[mlir.Value]:
    """Whether an element of a padded image is one of the image: a truth for each end of an axis that is padded."""
    image, *place = element.operands
    pad = defining_op(image)
    if pad is None or pad.name != "tensor.pad":
        return []
    truths, amounts = [], iter(list(pad.operands)[1:])
    lows, highs = (list(mlir.DenseI64ArrayAttr(pad.attributes[name])) for name in ("static_low", "static_high"))
    # Open amounts below come first.
    begins = [next(amounts) if low == _OPEN else index_constant(low) for low in lows]
    for axis, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if low:
            truths.append(arith.CmpIOp(_SGE, place[axis], begins[axis]).result)
        if high:
            size = tensor.DimOp(pad.operands[0], index_constant(axis)).result
            truths.append(arith.CmpIOp(_SLT, place[axis], arith.AddIOp(size, begins[axis]).result).result)
    return truths


def _compares(op: mlir.Operation, name: str, predicate: int) -> bool:
    return op.name == name and mlir.IntegerAttr(op.attributes["predicate"]).value == predicate


def _is_minus_one(value: mlir.Value) -> bool:
    source = defining_op(value)
    if source is None or source.name != "arith.constant":
        return False
    return mlir.IntegerAttr(source.attributes["value"]).value == -1
