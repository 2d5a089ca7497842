"""Integers of 64 bits as vectors of two words, low word first: for targets that have none.

Upstream's `arith-emulate-wide-int` has the arithmetic, but no division, no loops, no branches and no memory. What they
carry becomes vectors here, which are put together and taken apart with arithmetic that the pass knows.
"""

from __future__ import annotations

from collections.abc import Callable

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, math, scf, vector

from eyas.codegen.common.passes.guard_shifts import GuardShifts
from eyas.ir import run_upstream
from eyas.ir.walk import find_ops

_EMULATION = "canonicalize,cse,arith-emulate-wide-int{widest-int-supported=32}"
_KNOWN = ("arith.", "vector.")
"""Dialects whose ops the pass converts."""


def compute_in_pairs(module: mlir.Module) -> None:
    """Leaves no i64 in a kernel."""
    i64 = mlir.IntegerType.get_signless(64, module.context)
    for op in find_ops(module, *_EXPANSIONS):
        if i64 in (op.operands[0].type, op.results[0].type):
            with mlir.InsertionPoint(op), op.operation.location:
                op.results[0].replace_all_uses_with(_EXPANSIONS[op.operation.name](op))
            op.operation.erase()
    touched: list[mlir.Operation] = []

    def note(op: mlir.Operation) -> mlir.WalkResult:
        touched.append(op)
        return mlir.WalkResult.ADVANCE

    module.operation.walk(note, mlir.WalkOrder.PRE_ORDER)
    for op in touched:
        with op.location:
            _carry_pairs(op, i64)
    run_upstream(module, _EMULATION)
    GuardShifts().run(module)  # the pass shifts words by 32 bits where nothing is to be left of them


def _carry_pairs(op: mlir.Operation, i64: mlir.Type) -> None:
    """Around an op that the pass does not know, i64 is a vector."""
    pair = mlir.VectorType.get([2], mlir.IntegerType.get_signless(32))
    for value in (*op.results, *(one for region in op.regions for block in region.blocks for one in block.arguments)):
        if isinstance(value.type, mlir.MemRefType) and value.type.element_type == i64:
            memory = mlir.MemRefType(value.type)
            value.set_type(mlir.MemRefType.get(memory.shape, pair, memory_space=memory.memory_space))
    if op.name.startswith(_KNOWN):
        return
    for position, operand in enumerate(op.operands):
        if operand.type == i64:
            with mlir.InsertionPoint(op):
                op.operands[position] = _as_pair(operand)
    for result in op.results:
        if result.type == i64:
            _make_pair(result, pair, mlir.InsertionPoint.after(op))
    for region in op.regions:
        for block in region.blocks:
            for argument in block.arguments:
                if argument.type == i64:
                    _make_pair(argument, pair, mlir.InsertionPoint.at_block_begin(block))
    if op.name == "gpu.func":
        types = [argument.type for argument in op.regions[0].blocks[0].arguments]
        op.attributes["function_type"] = mlir.TypeAttr.get(mlir.FunctionType.get(types, []))


def _make_pair(value: mlir.Value, pair: mlir.Type, place: mlir.InsertionPoint) -> None:
    """Makes a vector of a value, of which its users have the number."""
    uses = [(use.owner.operation, use.operand_number) for use in value.uses]
    i64 = value.type
    value.set_type(pair)
    if uses:
        with place:
            low, high = (arith.extui(i64, vector.extract(value, [], [word])) for word in range(2))
            number = arith.ori(low, arith.shli(high, arith.constant(i64, 32)))
        for user, position in uses:
            user.operands[position] = number


def _as_pair(number: mlir.Value) -> mlir.Value:
    i32 = mlir.IntegerType.get_signless(32)
    high = arith.shrui(number, arith.constant(number.type, 32))
    return vector.from_elements(mlir.VectorType.get([2], i32), [arith.trunci(i32, one) for one in (number, high)])


# --- what the pass has not --------------------------------------------------------------------------------------------


def _divide(op: mlir.OpView) -> mlir.Value:
    """Quotient or remainder, by long division of magnitudes, bit by bit."""
    name = op.operation.name
    dividend, divisor = op.operands
    signed = name in ("arith.divsi", "arith.remsi")
    if signed:
        quotient, rest = _long_division(_magnitude(dividend), _magnitude(divisor))
        # A quotient is negative if one of the two is; a remainder has the dividend's sign.
        sign = arith.xori(dividend, divisor) if name == "arith.divsi" else dividend
        return _with_sign(quotient if name == "arith.divsi" else rest, sign)
    quotient, rest = _long_division(dividend, divisor)
    return quotient if name == "arith.divui" else rest


def _long_division(dividend: mlir.Value, divisor: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
    i64, index = dividend.type, mlir.IndexType.get()
    zero, one, last = (arith.constant(i64, value) for value in (0, 1, 63))
    begin, end, step = (arith.constant(index, value) for value in (0, 64, 1))
    loop = scf.ForOp(begin, end, step, [zero, zero, dividend])
    with mlir.InsertionPoint(loop.body):
        quotient, rest, bits = loop.inner_iter_args
        top = arith.shrui(rest, last)
        rest = arith.ori(arith.shli(rest, one), arith.shrui(bits, last))
        # With the bit that left at the top, the rest is larger than any divisor.
        over = arith.ori(top, arith.extui(i64, arith.cmpi(arith.CmpIPredicate.uge, rest, divisor)))
        fits = arith.cmpi(arith.CmpIPredicate.ne, over, zero)
        rest = arith.select(fits, arith.subi(rest, divisor), rest)
        quotient = arith.ori(arith.shli(quotient, one), arith.extui(i64, fits))
        scf.YieldOp([quotient, rest, arith.shli(bits, one)])
    return loop.results[0], loop.results[1]


def _magnitude(value: mlir.Value) -> mlir.Value:
    return _with_sign(value, value)


def _with_sign(value: mlir.Value, sign: mlir.Value) -> mlir.Value:
    """The value, negated where `sign` is negative."""
    zero = arith.constant(value.type, 0)
    negative = arith.cmpi(arith.CmpIPredicate.slt, sign, zero)
    return arith.select(negative, arith.subi(zero, value), value)


def _absolute(op: mlir.OpView) -> mlir.Value:
    return _magnitude(op.operands[0])


def _to_float(op: mlir.OpView) -> mlir.Value:
    """The nearest float: 32 of the leading bits are more than it holds, if the last says whether others follow."""
    value, kind = op.operands[0], op.results[0].type
    signed = op.operation.name == "arith.sitofp"
    i32, i64 = mlir.IntegerType.get_signless(32), value.type
    number = _magnitude(value) if signed else value
    high = arith.trunci(i32, arith.shrui(number, arith.constant(i64, 32)))
    length = arith.subi(arith.constant(i32, 32), math.ctlz(high))
    wide = arith.extui(i64, length)
    leading = arith.shrui(number, wide)
    lost = arith.cmpi(arith.CmpIPredicate.ne, arith.shli(leading, wide), number)
    word = arith.ori(arith.trunci(i32, leading), arith.extui(i32, lost))
    f32 = mlir.F32Type.get()
    power = arith.shli(arith.addi(length, arith.constant(i32, 127)), arith.constant(i32, 23))
    result = arith.mulf(arith.uitofp(f32, word), arith.bitcast(f32, power))
    if signed:
        negative = arith.cmpi(arith.CmpIPredicate.slt, value, arith.constant(i64, 0))
        result = arith.select(negative, arith.negf(result), result)
    return result if kind == f32 else arith.truncf(kind, result)


_EXPANSIONS: dict[str, Callable[[mlir.OpView], mlir.Value]] = {
    "arith.divsi": _divide,
    "arith.divui": _divide,
    "arith.remsi": _divide,
    "arith.remui": _divide,
    "arith.sitofp": _to_float,
    "arith.uitofp": _to_float,
    "math.absi": _absolute,
}
