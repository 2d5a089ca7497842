"""Integers of 8 and 16 bits in registers of 32, sign-extended: for targets that do not compute with them."""

from __future__ import annotations

from collections.abc import Collection

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.passes.lanes import element_type, splat, with_element
from eyas.ir.walk import find_ops

_WRAP = ("arith.addi", "arith.subi", "arith.muli", "arith.shli", "arith.trunci", "arith.index_cast")
"""Their results may have more bits than the type: the upper ones are made copies of the sign again."""
_UNSIGNED = ("arith.divui", "arith.remui", "arith.shrui", "arith.maxui", "arith.minui", "arith.uitofp", "arith.extui")
"""These read their operands without a sign."""
_UNSIGNED_PREDICATES = range(6, 10)  # ult, ule, ugt, uge


def compute_in_words(module: mlir.Module, widths: Collection[int]) -> None:
    """Makes i32 of every integer of `widths` bits. None is in memory any more (`keep_in_words`)."""
    narrow: dict[mlir.Value, int] = {}
    touched: list[mlir.Operation] = []

    def note(op: mlir.Operation) -> mlir.WalkResult:
        blocks = [block for region in op.regions for block in region.blocks]
        made = [*op.results, *(argument for block in blocks for argument in block.arguments)]
        for value in made:
            element = element_type(value.type)
            if isinstance(element, mlir.IntegerType) and element.width in widths:
                narrow[value] = element.width
        if any(value in narrow for value in (*op.operands, *op.results)):
            touched.append(op)
        return mlir.WalkResult.ADVANCE

    module.operation.walk(note, mlir.WalkOrder.PRE_ORDER)
    if not narrow:
        return
    i32 = mlir.IntegerType.get_signless(32, module.context)
    for value in narrow:
        value.set_type(with_element(value.type, i32))
    for op in touched:
        with op.location:
            _rewrite(op, narrow)
    for op in find_ops(module, "arith.extsi", "arith.extui", "arith.trunci"):
        if op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.operation.erase()


def _rewrite(op: mlir.Operation, narrow: dict[mlir.Value, int]) -> None:
    if op.name == "arith.constant":
        op.attributes["value"] = _as_word(op.attributes["value"], op.results[0].type)
        return
    unsigned = op.name in (*_UNSIGNED, "arith.index_castui") or (
        op.name == "arith.cmpi" and mlir.IntegerAttr(op.attributes["predicate"]).value in _UNSIGNED_PREDICATES
    )
    if unsigned:
        for position, operand in enumerate(op.operands):
            if operand in narrow:
                with mlir.InsertionPoint(op):
                    op.operands[position] = _without_sign(operand, narrow[operand])
    if op.results and op.results[0] in narrow and (op.name in _WRAP or unsigned):
        narrow[_extend_result(op, narrow[op.results[0]])] = narrow[op.results[0]]


def _without_sign(value: mlir.Value, width: int) -> mlir.Value:
    return arith.andi(value, _constant(value.type, (1 << width) - 1))


def _extend_result(op: mlir.Operation, width: int) -> mlir.Value:
    result = op.results[0]
    uses = [(use.owner.operation, use.operand_number) for use in result.uses]
    with mlir.InsertionPoint.after(op):
        shift = _constant(result.type, 32 - width)
        extended = arith.shrsi(arith.shli(result, shift), shift)
    for user, position in uses:
        user.operands[position] = extended
    return extended


def _as_word(value: mlir.Attribute, type_: mlir.Type) -> mlir.Attribute:
    if isinstance(value, mlir.IntegerAttr):
        return mlir.IntegerAttr.get(type_, value.value)
    dense = mlir.DenseElementsAttr(value)
    assert dense.is_splat, "vectors of different constants are not made"
    element = mlir.IntegerAttr.get(element_type(type_), mlir.IntegerAttr(dense.get_splat_value()).value)
    return mlir.DenseElementsAttr.get_splat(type_, element)


def _constant(type_: mlir.Type, value: int) -> mlir.Value:
    return splat(type_, mlir.IntegerAttr.get(element_type(type_), value))
