"""Runs a scalar linalg body on tiles: each op becomes the same op on all elements.

What is the same along rows or columns stays so until it meets a tile that is not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Unsupported
from eyas.codegen.vmvx.builder import Builder, Scalar, Tile, extent_of
from eyas.codegen.vmvx.types import is_bool, rounding, tile_type
from eyas.ir.structured import constant_scalar
from eyas.ir.walk import constant_int, defining_op
from eyas.module.vmvx_isa import FLOATS, TYPE_BYTES, Type, modes

BINARY = {
    "arith.addf": "add", "arith.subf": "sub", "arith.mulf": "mul", "arith.divf": "div", "arith.remf": "rem",
    "arith.maximumf": "maximum", "arith.minimumf": "minimum", "arith.maxnumf": "maxnum", "arith.minnumf": "minnum",
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.divsi": "divs", "arith.divui": "divu",
    "arith.remsi": "rems", "arith.remui": "remu", "arith.maxsi": "maxs", "arith.minsi": "mins", "arith.maxui": "maxu",
    "arith.minui": "minu", "arith.andi": "and", "arith.ori": "or", "arith.xori": "xor", "arith.shli": "shl",
    "arith.shrsi": "shrs", "arith.shrui": "shru", "math.powf": "pow", "math.atan2": "atan2",
    "math.copysign": "copysign",
}  # fmt: skip
# On i1, which is 0 or 1 here and 0 or -1 to signed ops.
BINARY_OF_BOOLS = {
    "arith.addi": "xor", "arith.subi": "xor", "arith.muli": "and", "arith.andi": "and", "arith.ori": "or",
    "arith.xori": "xor", "arith.maxui": "or", "arith.minui": "and", "arith.maxsi": "and", "arith.minsi": "or",
}  # fmt: skip
_UNARY = {
    "arith.negf": "neg", "math.absf": "abs", "math.absi": "abs", "math.sqrt": "sqrt", "math.rsqrt": "rsqrt",
    "math.cbrt": "cbrt", "math.exp": "exp", "math.exp2": "exp2", "math.expm1": "expm1", "math.log": "log",
    "math.log2": "log2", "math.log10": "log10", "math.log1p": "log1p", "math.sin": "sin", "math.cos": "cos",
    "math.tan": "tan", "math.asin": "asin", "math.acos": "acos", "math.atan": "atan", "math.sinh": "sinh",
    "math.cosh": "cosh", "math.tanh": "tanh", "math.asinh": "asinh", "math.acosh": "acosh", "math.atanh": "atanh",
    "math.erf": "erf", "math.erfc": "erfc", "math.floor": "floor", "math.ceil": "ceil", "math.trunc": "trunc",
    "math.round": "round", "math.roundeven": "roundeven", "math.ctlz": "clz", "math.cttz": "ctz",
    "math.ctpop": "popcount",
}  # fmt: skip
_CASTS = {
    "arith.extf": "extf", "arith.truncf": "truncf", "arith.extsi": "sext", "arith.extui": "zext",
    "arith.trunci": "trunc", "arith.sitofp": "sitofp", "arith.uitofp": "uitofp", "arith.fptosi": "fptosi",
    "arith.fptoui": "fptoui", "arith.index_cast": "sext", "arith.index_castui": "zext",
}  # fmt: skip
_FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_SIGNED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}


@dataclass(frozen=True)
class Place:
    """Where a body runs: what its indices, outside values and reads at computed positions are."""

    builder: Builder
    index: Callable[[int], Tile]
    outside: Callable[[mlir.Value], Tile]
    extract: Callable[[mlir.Operation, list[Tile]], Tile]


def evaluate(
    body: mlir.Block | None, arguments: list[Tile | None], place: Place, wanted: mlir.Value | None = None
) -> list[Tile]:
    """The tiles that the body yields for these arguments, or the `wanted` value of it; a missing body yields its first
    argument."""
    if body is None:
        assert arguments[0] is not None
        return [arguments[0]]
    values: dict[mlir.Value, Tile | None] = dict(zip(body.arguments, arguments, strict=True))
    evaluator = _Evaluator(place, values)
    if wanted is not None and wanted in values:
        return [evaluator.get(wanted)]
    for view in body.operations:
        op = view.operation
        if op.name == "linalg.yield":
            return [evaluator.get(operand) for operand in op.operands]
        evaluator.run(op)
        if wanted is not None and wanted in list(op.results):
            return [evaluator.get(wanted)]
    if wanted is not None:
        return [evaluator.get(wanted)]
    raise AssertionError("a linalg body ends with linalg.yield")


def run_op(op: mlir.Operation, operands: list[Tile], builder: Builder) -> Tile:
    """One op of arith or math on tiles."""
    name, source = op.name, op.operands[0].type if len(op.operands) else None
    result = op.results[0].type
    if name in _CASTS:
        return _cast(builder, name, operands[0], source, result)
    if name == "arith.cmpf":
        return _compare_floats(builder, _FLOAT_PREDICATES[op.attributes["predicate"].value], operands)
    if name == "arith.cmpi":
        predicate = _INTEGER_PREDICATES[op.attributes["predicate"].value]
        if is_bool(source):  # true is less than false where there is a sign
            predicate = _SIGNED.get(predicate, predicate)
        return builder.tile(f"ticmp_{predicate}_{_text(operands[0].type)}", Type.I8, *operands)
    if name == "arith.select":
        return builder.tile("tpick", operands[1].type, *operands, extra=(TYPE_BYTES[operands[1].type],))
    power = constant_power(op)
    if power is not None:
        return _rounded(builder, _power(builder, operands[0], power), result)
    if name in _SPECIAL:
        return _SPECIAL[name](builder, operands, result)
    if name in BINARY:
        table = BINARY_OF_BOOLS if is_bool(result) else BINARY
        if name not in table:
            raise Unsupported(f"{name} of i1 has no tile instruction")
        return _rounded(builder, _arith(builder, table[name], *operands), result)
    if name in _UNARY:
        if is_bool(result):
            raise Unsupported(f"{name} of i1 has no tile instruction")
        return _rounded(builder, _arith(builder, _UNARY[name], *operands), result)
    raise Unsupported(f"{name} has no tile instruction")


# select(x < c, c, x) and its kin, by whether x is chosen where the comparison holds: where x is NaN the result is x or
# c, and which zero it is of two is nobody's promise.
_CLAMPS = {
    ("olt", False): "maximum", ("ole", False): "maximum", ("ogt", False): "minimum", ("oge", False): "minimum",
    ("ult", False): "maxnum", ("ule", False): "maxnum", ("ugt", False): "minnum", ("uge", False): "minnum",
    ("ogt", True): "maxnum", ("oge", True): "maxnum", ("olt", True): "minnum", ("ole", True): "minnum",
    ("ugt", True): "maximum", ("uge", True): "maximum", ("ult", True): "minimum", ("ule", True): "minimum",
}  # fmt: skip
# c < x is x > c.
_SWAPPED = str.maketrans("lg", "gl")


def clamp_of(op: mlir.Operation, get: Callable[[mlir.Value], Tile]) -> str | None:
    """The one instruction that bounds a number by a constant, where a comparison and a choice do that."""
    compare = defining_op(op.operands[0]) if op.name == "arith.select" else None
    if compare is None or compare.name != "arith.cmpf":
        return None
    predicate = _FLOAT_PREDICATES[compare.attributes["predicate"].value]
    value, bound = compare.operands
    if _is_number(get(value)):
        value, bound, predicate = bound, value, predicate.translate(_SWAPPED)
    chosen = [op.operands[1] == value, op.operands[2] == value]
    others = [op.operands[1] == bound, op.operands[2] == bound]
    if chosen != others[::-1] or sum(chosen) != 1 or not _is_number(get(bound)):
        return None
    return _CLAMPS.get((predicate, chosen[0]))


def _is_number(tile: Tile) -> bool:
    """Whether a tile is a constant that is not NaN."""
    if tile.filled is None or tile.filled.constant is None:
        return False
    code, bits = ("<f", "<i") if tile.type is Type.F32 else ("<d", "<q")
    (value,) = struct.unpack(code, struct.pack(bits.upper(), tile.filled.constant % (1 << 8 * TYPE_BYTES[tile.type])))
    return value == value


_MOST_MULTIPLIED = 16


def constant_power(op: mlir.Operation) -> int | None:
    """The exponent of a power that is better multiplied out; a square is exact, others are what `fpowi` may be."""
    if op.name == "math.fpowi":
        power = constant_int(op.operands[1])
        return power if power is not None and 1 <= power <= _MOST_MULTIPLIED else None
    return 2 if op.name == "math.powf" and constant_scalar(op.operands[1]) == 2 else None


def _power(builder: Builder, base: Tile, power: int) -> Tile:
    if power == 1:
        return base
    half = _power(builder, base, power // 2)
    square = _arith(builder, "mul", half, half)
    return _arith(builder, "mul", square, base) if power % 2 else square


def constant_bits(builder: Builder, attribute: mlir.Attribute, type_: mlir.Type) -> Scalar:
    """The scalar that holds a constant."""
    if isinstance(attribute, mlir.FloatAttr):
        return builder.const_f64(attribute.value) if tile_type(type_) is Type.F64 else _f32(builder, attribute.value)
    if isinstance(attribute, mlir.IntegerAttr | mlir.BoolAttr):
        return builder.const(int(bool(attribute.value)) if is_bool(type_) else int(attribute.value))
    raise Unsupported(f"a constant of type {type_}")


def _f32(builder: Builder, value: float) -> Scalar:
    try:
        return builder.const_f32(value)
    except OverflowError:
        return builder.const(struct.unpack("<I", struct.pack("<f", float("inf") if value > 0 else float("-inf")))[0])


class _Evaluator:
    def __init__(self, place: Place, values: dict[mlir.Value, Tile | None]):
        self.place, self.values = place, values

    def get(self, value: mlir.Value) -> Tile:
        if value not in self.values:
            self.values[value] = self.place.outside(value)
        found = self.values[value]
        assert found is not None, "a body reads an output that has no initial value"
        return found

    def run(self, op: mlir.Operation) -> None:
        builder = self.place.builder
        if op.name == "linalg.index":
            made = self.place.index(op.attributes["dim"].value)
        elif op.name == "cf.assert":
            check_all(builder, self.get(op.operands[0]))
            return
        elif op.name == "arith.constant":
            bits = constant_bits(builder, op.attributes["value"], op.results[0].type)
            made = builder.fill(bits, tile_type(op.results[0].type))
        elif op.name == "tensor.extract":
            made = self.place.extract(op, [self.get(operand) for operand in list(op.operands)[1:]])
        elif (bound := clamp_of(op, self.get)) is not None:
            made = _arith(builder, bound, self.get(op.operands[1]), self.get(op.operands[2]))
        else:
            made = run_op(op, [self.get(operand) for operand in op.operands], builder)
        self.values[op.results[0]] = made


def check_all(builder: Builder, condition: Tile) -> None:
    """Ends the workgroup when an element is 0."""
    for axis in (1, 0):
        condition = reduce(builder, "minu", condition, axis)
    taken = builder.here("textract", (condition, builder.const(0), int(Type.I8)))
    builder.effect("check", (taken,), None)


def reduce(builder: Builder, name: str, source: Tile, axis: int) -> Tile:
    """Over the columns (axis 1) or over the rows (axis 0), if it has any."""
    if (source.columns if axis else source.rows) is None:
        return source
    one = builder.const(1)
    shape = (source.rows or one, source.columns or one)
    rows, columns = (source.rows, None) if axis else (None, source.columns)
    kind = "f" if source.type in FLOATS else "i"
    text = f"treduce_{kind}{name}_{_text(source.type)}"
    return builder.pure(text, source.type, rows, columns, (source, axis), shape)


def full(builder: Builder, source: Tile, rows: Scalar | None, columns: Scalar | None) -> Tile:
    """A tile repeated to a shape."""
    if source.rows is rows and source.columns is columns:
        return source
    shape = modes(extent_of(rows, columns), source.extent)
    return builder.pure("tmov", source.type, rows, columns, (source, int(source.type), shape))


def _text(type_: Type) -> str:
    return type_.name.lower()


def _arith(builder: Builder, name: str, *operands: Tile) -> Tile:
    type_ = operands[0].type
    return builder.tile(f"t{'f' if type_ in FLOATS else 'i'}{name}_{_text(type_)}", type_, *operands)


def _rounded(builder: Builder, tile: Tile, type_: mlir.Type) -> Tile:
    name = rounding(type_)
    return tile if name is None else builder.tile(name, Type.F32, tile)


def _splat(builder: Builder, value: float | int, type_: Type) -> Tile:
    if type_ is Type.F32:
        return builder.fill(builder.const_f32(value), type_)
    return builder.fill(builder.const_f64(value) if type_ is Type.F64 else builder.const(int(value)), type_)


def _compare_floats(builder: Builder, predicate: str, operands: list[Tile]) -> Tile:
    if predicate in ("false", "true"):
        return builder.fill(builder.const(int(predicate == "true")), Type.I8)
    return builder.tile(f"tfcmp_{predicate}_{_text(operands[0].type)}", Type.I8, *operands)


def _cast(builder: Builder, name: str, operand: Tile, source: mlir.Type, result: mlir.Type) -> Tile:
    start, end = operand.type, tile_type(result)
    if name in ("arith.extsi", "arith.sitofp", "arith.index_cast") and is_bool(source):
        operand = _arith(builder, "neg", operand)
    if is_bool(result):
        if name not in ("arith.trunci", "arith.index_cast", "arith.index_castui"):
            raise Unsupported(f"{name} to i1 has no tile instruction")
        narrow = operand if start is Type.I8 else builder.tile(f"ttrunc_{_text(start)}_i8", Type.I8, operand)
        return _arith(builder, "and", narrow, _splat(builder, 1, Type.I8))
    if start is end:
        return _rounded(builder, operand, result) if name == "arith.truncf" else operand
    kind = _CASTS[name]
    if name.startswith("arith.index_cast") and TYPE_BYTES[start] > TYPE_BYTES[end]:
        kind = "trunc"
    if kind in ("fptosi", "fptoui") and end in (Type.I8, Type.I16):  # through 32 bits, of which the lower are kept
        wide = builder.tile(f"tfptosi_{_text(start)}_i32", Type.I32, operand)
        return builder.tile(f"ttrunc_i32_{_text(end)}", end, wide)
    if kind == "truncf" and (rounds := rounding(result)) is not None:  # rounded once, not twice
        operand = builder.tile(rounds.replace("_f32", "_f64"), Type.F64, operand)
        return builder.tile("ttruncf_f64_f32", Type.F32, operand)
    return _rounded(builder, builder.tile(f"t{kind}_{_text(start)}_{_text(end)}", end, operand), result)


def _bitcast(builder: Builder, operands: list[Tile], result: mlir.Type) -> Tile:
    source, end = operands[0], tile_type(result)
    if TYPE_BYTES[source.type] != TYPE_BYTES[end] or rounding(result) or isinstance(result, mlir.F16Type):
        raise Unsupported("bits of 16-bit floats")
    return builder.tile("tmov", end, source, extra=(int(end),))


def _fma(builder: Builder, operands: list[Tile], result: mlir.Type) -> Tile:
    return _rounded(builder, builder.tile(f"tfma_{_text(operands[0].type)}", operands[0].type, *operands), result)


def _fpowi(builder: Builder, operands: list[Tile], result: mlir.Type) -> Tile:
    base, power = operands
    floating = builder.tile(f"tsitofp_{_text(power.type)}_{_text(base.type)}", base.type, power)
    return _rounded(builder, _arith(builder, "pow", base, floating), result)


def _unordered(builder: Builder, operands: list[Tile], result: mlir.Type) -> Tile:
    del result
    return _compare_floats(builder, "uno", [operands[0], operands[0]])


def _against_infinity(predicate: str) -> Callable[[Builder, list[Tile], mlir.Type], Tile]:
    def build(builder: Builder, operands: list[Tile], result: mlir.Type) -> Tile:
        del result
        magnitude = _arith(builder, "abs", operands[0])
        return _compare_floats(builder, predicate, [magnitude, _splat(builder, float("inf"), magnitude.type)])

    return build


def _divided(towards: int) -> Callable[[Builder, list[Tile], mlir.Type], Tile]:
    """Quotients rounded down (-1) or up (1): one off where there is a remainder whose sign says so."""

    def build(builder: Builder, operands: list[Tile], result: mlir.Type) -> Tile:
        if is_bool(result):
            raise Unsupported("a quotient of i1 has no tile instruction")
        left, right = operands
        text, zero = _text(left.type), _splat(builder, 0, left.type)
        quotient, rest = _arith(builder, "divs", left, right), _arith(builder, "rems", left, right)
        has_rest = builder.tile(f"ticmp_ne_{text}", Type.I8, rest, zero)
        signs = _arith(builder, "xor", left, right)
        wanted = builder.tile(f"ticmp_{'slt' if towards < 0 else 'sge'}_{text}", Type.I8, signs, zero)
        off = _arith(builder, "and", has_rest, wanted)
        moved = _arith(builder, "add", quotient, _splat(builder, towards, left.type))
        return builder.tile("tpick", left.type, off, moved, quotient, extra=(TYPE_BYTES[left.type],))

    return build


_SPECIAL: dict[str, Callable[[Builder, list[Tile], mlir.Type], Tile]] = {
    "arith.bitcast": _bitcast,
    "math.fma": _fma,
    "math.fpowi": _fpowi,
    "math.isnan": _unordered,
    "math.isinf": _against_infinity("oeq"),
    "math.isfinite": _against_infinity("olt"),
    "arith.floordivsi": _divided(-1),
    "arith.ceildivsi": _divided(1),
}
