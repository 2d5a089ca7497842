"""Scalar instructions for arith, math and what the LLVM dialect computes on integers.

Integers are kept sign-extended to 64 bits, an i1 as 0 or 1, f32 and f64 as their bits, and f16 and bf16 as their bits
too: moving a number of those types does not change it, and arithmetic on them has become arithmetic on f32 before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir

from eyas.module.vmvx_assembler import Assembler, Scalar

Handler = Callable[["Arithmetic", mlir.Operation, Sequence[Scalar]], "Scalar | tuple[Scalar, ...]"]

_OF_LLVM = {
    "llvm.add": "arith.addi", "llvm.sub": "arith.subi", "llvm.mul": "arith.muli", "llvm.udiv": "arith.divui",
    "llvm.sdiv": "arith.divsi", "llvm.urem": "arith.remui", "llvm.srem": "arith.remsi", "llvm.and": "arith.andi",
    "llvm.or": "arith.ori", "llvm.xor": "arith.xori", "llvm.shl": "arith.shli", "llvm.lshr": "arith.shrui",
    "llvm.ashr": "arith.shrsi", "llvm.icmp": "arith.cmpi", "llvm.trunc": "arith.trunci", "llvm.zext": "arith.extui",
    "llvm.sext": "arith.extsi", "llvm.intr.smax": "arith.maxsi", "llvm.intr.smin": "arith.minsi",
    "llvm.intr.umax": "arith.maxui", "llvm.intr.umin": "arith.minui",
}  # fmt: skip
_FLOAT_BINARY = {
    "arith.addf": "add", "arith.subf": "sub", "arith.mulf": "mul", "arith.divf": "div", "arith.remf": "rem",
    "arith.minimumf": "minimum", "arith.maximumf": "maximum", "arith.minnumf": "minnum", "arith.maxnumf": "maxnum",
    "math.powf": "pow", "math.atan2": "atan2", "math.copysign": "copysign",
}  # fmt: skip
_FLOAT_UNARY = {
    "arith.negf": "neg", "math.absf": "abs",
    **{f"math.{name}": name for name in (
        "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin",
        "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "floor", "ceil", "trunc",
        "round", "roundeven",
    )},
}  # fmt: skip
_FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
# Predicate -> (instruction, whether its operands change places).
_INTEGER_PREDICATES = (
    *(("eq", False), ("ne", False), ("lts", False), ("les", False), ("lts", True), ("les", True)),
    *(("ltu", False), ("leu", False), ("ltu", True), ("leu", True)),
)
# Results of these are sign-extended when their operands are.
_CLOSED = {
    "arith.andi": "and", "arith.ori": "or", "arith.xori": "xor", "arith.remsi": "rems", "arith.shrsi": "shrs",
    "arith.maxsi": "maxs", "arith.minsi": "mins", "arith.maxui": "maxu", "arith.minui": "minu",
}  # fmt: skip
_WRAPPING = {
    "arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.shli": "shl", "arith.divsi": "divs",
}  # fmt: skip
_UNSIGNED = {"arith.divui": "divu", "arith.remui": "remu", "arith.shrui": "shru"}
# An i1 that is signed is 0 or -1: what is largest is false.
_OF_BITS = {
    "arith.addi": "xor", "arith.subi": "xor", "arith.muli": "and", "arith.maxsi": "and", "arith.minsi": "or",
    "arith.maxui": "or", "arith.minui": "and", "arith.divsi": "and", "arith.divui": "and",
}  # fmt: skip


def bits_of(type_: mlir.Type) -> int:
    """Bits of an integer; indices and addresses have 64."""
    return type_.width if isinstance(type_, mlir.IntegerType) else 64


def float_bits(value: float, type_: mlir.Type) -> int:
    """The bits of a number of a float type."""
    if isinstance(type_, mlir.F64Type):
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if isinstance(type_, mlir.F16Type):
        return _signed(struct.unpack("<H", struct.pack("<e", value))[0], 16)
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return _signed(bits >> 16, 16) if isinstance(type_, mlir.BF16Type) else bits


def integer_bits(value: int, bits: int) -> int:
    """An integer as a register holds it."""
    return value & 1 if bits == 1 else _signed(value, bits)


def _signed(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


class Arithmetic:
    """Writes the instructions of ops that only compute."""

    def __init__(self, asm: Assembler) -> None:
        self.asm = asm

    def run(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar | tuple[Scalar, ...] | None:
        """The results of an op, or None when it is not one that this knows."""
        name = _OF_LLVM.get(str(op.name), str(op.name))
        if name in _FLOAT_BINARY:
            return self._float(_FLOAT_BINARY[name], op.operands[0].type, *operands)
        if name in _FLOAT_UNARY:
            return self._float(_FLOAT_UNARY[name], op.operands[0].type, *operands)
        if name in _CLOSED or name in _WRAPPING or name in _UNSIGNED:
            return self._integer(name, bits_of(op.results[0].type), *operands)
        handler = _HANDLERS.get(name)
        return None if handler is None else handler(self, op, operands)

    def zero(self) -> Scalar:
        return self.asm.const(0)

    def emit(self, name: str, *operands: object) -> Scalar:
        """An instruction by name with a fresh destination."""
        method = {"and": "and_", "or": "or_"}.get(name, name)
        return getattr(self.asm, method)(None, *operands)

    def wrap(self, value: Scalar, bits: int) -> Scalar:
        """The low bits of a register, as a register holds an integer of that many bits."""
        if bits == 64:
            return value
        return self.emit("and", value, self.asm.const(1)) if bits == 1 else self.asm.sext(None, value, bits)

    def unsigned(self, value: Scalar, bits: int) -> Scalar:
        """An integer of so many bits, extended by zeros."""
        return value if bits in (1, 64) else self.asm.zext(None, value, bits)

    def signed(self, value: Scalar, bits: int) -> Scalar:
        """An integer of so many bits as a number of 64; only that of an i1 differs from what a register holds."""
        return self.asm.sub(None, self.zero(), value) if bits == 1 else value

    def _float(self, name: str, type_: mlir.Type, *operands: Scalar) -> Scalar:
        return self.emit(f"f{name}_{type_}", *operands)

    def _integer(self, name: str, bits: int, a: Scalar, b: Scalar) -> Scalar:
        if bits == 1 and name in _OF_BITS:
            return self.emit(_OF_BITS[name], a, b)
        if name in _CLOSED:
            return self.emit(_CLOSED[name], a, b)
        if name in _WRAPPING:
            return self.wrap(self.emit(_WRAPPING[name], a, b), bits)
        return self.wrap(self.emit(_UNSIGNED[name], self.unsigned(a, bits), self.unsigned(b, bits)), bits)

    # Ops that are more than a row of a table.

    def compare_integers(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        predicate = mlir.IntegerAttr(op.attributes["predicate"]).value
        name, swapped = _INTEGER_PREDICATES[predicate]
        if name.endswith("s") and bits_of(op.operands[0].type) == 1:
            name, swapped = name[:-1] + "u", not swapped
        a, b = operands
        return self.emit(name, b, a) if swapped else self.emit(name, a, b)

    def compare_floats(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        predicate = _FLOAT_PREDICATES[mlir.IntegerAttr(op.attributes["predicate"]).value]
        if predicate in ("false", "true"):
            return self.asm.const(predicate == "true")
        return self._float(predicate, op.operands[0].type, *operands)

    def fma(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        return self._float("fma", op.operands[0].type, *operands)

    def floor_division(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        quotient, differs = self._division(*operands)
        return self.asm.sub(None, quotient, differs)

    def ceil_division(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        a, b = operands
        remainder = self.asm.rems(None, a, b)
        negative = self.asm.lts(None, self.asm.xor(None, remainder, b), self.zero())
        left = self.asm.ne(None, remainder, self.zero())
        more = self.emit("and", left, self.asm.eq(None, negative, self.zero()))
        return self.asm.add(None, self.asm.divs(None, a, b), more)

    def _division(self, a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
        remainder = self.asm.rems(None, a, b)
        negative = self.asm.lts(None, self.asm.xor(None, remainder, b), self.zero())
        left = self.asm.ne(None, remainder, self.zero())
        return self.asm.divs(None, a, b), self.emit("and", left, negative)

    def ceil_division_unsigned(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        bits = bits_of(op.results[0].type)
        a, b = (self.unsigned(one, bits) for one in operands)
        left = self.asm.ne(None, self.asm.remu(None, a, b), self.zero())
        return self.wrap(self.asm.add(None, self.asm.divu(None, a, b), left), bits)

    def add_extended(self, op: mlir.Operation, operands: Sequence[Scalar]) -> tuple[Scalar, ...]:
        bits = bits_of(op.results[0].type)
        total = self.wrap(self.asm.add(None, *operands), bits)
        return total, self.asm.ltu(None, total, operands[0])

    def multiply_extended(self, op: mlir.Operation, operands: Sequence[Scalar]) -> tuple[Scalar, ...]:
        bits, is_signed = bits_of(op.results[0].type), op.name == "arith.mulsi_extended"
        a, b = operands if is_signed else [self.unsigned(one, bits) for one in operands]
        low = self.asm.mul(None, a, b)
        if bits == 64:
            return low, self.emit("mulhs" if is_signed else "mulhu", a, b)
        shift = self.emit("shrs" if is_signed else "shru", low, self.asm.const(bits))
        return self.wrap(low, bits), self.wrap(shift, bits)

    def extend_signed(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        return self.signed(operands[0], bits_of(op.operands[0].type))

    def extend_unsigned(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        return self.unsigned(operands[0], bits_of(op.operands[0].type))

    def truncate(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        return self.wrap(operands[0], bits_of(op.results[0].type))

    def cast_index(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        source, target = bits_of(op.operands[0].type), bits_of(op.results[0].type)
        if target < source:
            return self.wrap(operands[0], target)
        return self.unsigned(operands[0], source) if op.name.endswith("ui") else self.signed(operands[0], source)

    def integer_to_float(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        bits, type_ = bits_of(op.operands[0].type), op.results[0].type
        is_signed = op.name == "arith.sitofp"
        value = self.signed(operands[0], bits) if is_signed else self.unsigned(operands[0], bits)
        wide = "f64" if isinstance(type_, mlir.F64Type) else "f32"
        made = self.emit(f"f{'sitofp' if is_signed or bits < 64 else 'uitofp'}_{wide}", value)
        return self.narrow(made, type_)

    def float_to_integer(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        bits, type_ = bits_of(op.results[0].type), op.operands[0].type
        value = self.widen(operands[0], type_)
        wide = "f64" if isinstance(type_, mlir.F64Type) else "f32"
        if bits < 32:  # as processors do: through 32 bits, of which the lower are kept
            return self.wrap(self.emit(f"ffptosi_{wide}", value, 32), bits)
        return self.emit(f"f{op.name.removeprefix('arith.')}_{wide}", value, bits)

    def extend_float(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        source, target = op.operands[0].type, op.results[0].type
        value = self.widen(operands[0], source)
        if isinstance(target, mlir.F64Type) and not isinstance(source, mlir.F64Type):
            return self.asm.fextf(None, value)
        return value

    def truncate_float(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        source, target = op.operands[0].type, op.results[0].type
        value = self.widen(operands[0], source)
        if isinstance(source, mlir.F64Type):
            if not isinstance(target, mlir.F32Type):  # rounded once, not twice
                value = self.emit(f"fround_{target}_f64", value)
            value = self.asm.ftruncf(None, value)
        return self.narrow(value, target)

    def widen(self, value: Scalar, type_: mlir.Type) -> Scalar:
        """The f32 of an f16 or bf16; others stay."""
        narrow = isinstance(type_, mlir.F16Type | mlir.BF16Type)
        return self.emit(f"ffrom_{type_}", value) if narrow else value

    def narrow(self, value: Scalar, type_: mlir.Type) -> Scalar:
        """The f16 or bf16 nearest to an f32, where that is the type; others stay."""
        narrow = isinstance(type_, mlir.F16Type | mlir.BF16Type)
        return self.emit(f"fbits_{type_}", value) if narrow else value

    def bitcast(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        source, target = op.operands[0].type, op.results[0].type
        if isinstance(source, mlir.F32Type) and not isinstance(target, mlir.F32Type):
            return self.asm.sext(None, operands[0], 32)
        if isinstance(target, mlir.F32Type) and not isinstance(source, mlir.F32Type):
            return self.asm.zext(None, operands[0], 32)
        return operands[0]

    def absolute(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        bits = bits_of(op.results[0].type)
        negated = self.wrap(self.asm.sub(None, self.zero(), operands[0]), bits)
        return operands[0] if bits == 1 else self.asm.maxs(None, operands[0], negated)

    def count_zeros(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        bits = bits_of(op.results[0].type)
        return self.wrap(self.emit("clz" if op.name == "math.ctlz" else "ctz", operands[0], bits), bits)

    def count_ones(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        bits = bits_of(op.results[0].type)
        return self.wrap(self.asm.popcount(None, self.unsigned(operands[0], bits)), bits)

    def classify(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        type_ = op.operands[0].type
        if op.name == "math.isnan":
            return self._float("uno", type_, operands[0], operands[0])
        infinity = self.asm.const(float_bits(float("inf"), type_))
        size = self._float("abs", type_, operands[0])
        if op.name == "math.isnormal":
            smallest = self.asm.const(float_bits(2.0**-1022 if isinstance(type_, mlir.F64Type) else 2.0**-126, type_))
            normal = self._float("oge", type_, size, smallest)
            return self.emit("and", normal, self._float("olt", type_, size, infinity))
        return self._float("oeq" if op.name == "math.isinf" else "olt", type_, size, infinity)

    def clamp(self, op: mlir.Operation, operands: Sequence[Scalar]) -> Scalar:
        type_ = op.operands[0].type
        value, low, high = operands
        return self._float("minimum", type_, self._float("maximum", type_, value, low), high)

    def sine_and_cosine(self, op: mlir.Operation, operands: Sequence[Scalar]) -> tuple[Scalar, ...]:
        return tuple(self._float(name, op.operands[0].type, *operands) for name in ("sin", "cos"))


_HANDLERS: dict[str, Handler] = {
    "arith.cmpi": Arithmetic.compare_integers,
    "arith.cmpf": Arithmetic.compare_floats,
    "arith.floordivsi": Arithmetic.floor_division,
    "arith.ceildivsi": Arithmetic.ceil_division,
    "arith.ceildivui": Arithmetic.ceil_division_unsigned,
    "arith.addui_extended": Arithmetic.add_extended,
    "arith.mului_extended": Arithmetic.multiply_extended,
    "arith.mulsi_extended": Arithmetic.multiply_extended,
    "arith.extsi": Arithmetic.extend_signed,
    "arith.extui": Arithmetic.extend_unsigned,
    "arith.trunci": Arithmetic.truncate,
    "arith.index_cast": Arithmetic.cast_index,
    "arith.index_castui": Arithmetic.cast_index,
    "arith.sitofp": Arithmetic.integer_to_float,
    "arith.uitofp": Arithmetic.integer_to_float,
    "arith.fptosi": Arithmetic.float_to_integer,
    "arith.fptoui": Arithmetic.float_to_integer,
    "arith.extf": Arithmetic.extend_float,
    "arith.truncf": Arithmetic.truncate_float,
    "arith.bitcast": Arithmetic.bitcast,
    "math.fma": Arithmetic.fma,
    "math.absi": Arithmetic.absolute,
    "math.ctlz": Arithmetic.count_zeros,
    "math.cttz": Arithmetic.count_zeros,
    "math.ctpop": Arithmetic.count_ones,
    "math.isnan": Arithmetic.classify,
    "math.isinf": Arithmetic.classify,
    "math.isfinite": Arithmetic.classify,
    "math.isnormal": Arithmetic.classify,
    "math.clampf": Arithmetic.clamp,
    "math.sincos": Arithmetic.sine_and_cosine,
}


def constant_of(value: mlir.Value) -> int | None:
    """The number that a value always is, if it is one."""
    owner = value.owner
    if isinstance(owner, mlir.Block):
        return None
    if owner.name == "builtin.unrealized_conversion_cast":
        return constant_of(owner.operands[0])
    if owner.name not in ("arith.constant", "llvm.mlir.constant"):
        return None
    attribute = owner.attributes["value"]
    return int(attribute.value) if isinstance(attribute, mlir.IntegerAttr) else None
