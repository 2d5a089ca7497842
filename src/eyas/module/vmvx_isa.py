"""The instruction set of VMVX, the portable target: one table, many uses.

Like `isa.py`, this makes the Python assembler and disassembler, the C header for verifier and interpreter
(`runtime/tools/make_isa_headers.py`, run by CMake, never committed) and the reference tables (`docs/make_tables.py`).

The machine runs one workgroup of one dispatch at a time.

- Scalar registers are 64 bits wide and start at 0. Integers are sign-extended (an i1 is 0 or 1), f32 are their bits in
  the low half, f64 their bits. f16 and bf16 values are held as f32.
- An address is a scalar: the number of a buffer in the upper 16 bits, a byte offset in the lower 48. Buffers are the
  bindings, the function's constant data, and memory that `local` gives. Every access is checked against its buffer.
- Tile registers hold up to 1024 elements of f32, f64, i8, i16, i32 or i64, row by row. `shape` sets the rows R and
  columns C that tile instructions work on. An operand is full (R x C), a row (1 x C), a column (R x 1) or one element;
  smaller operands are repeated. An i1 tile is an i8 tile of 0 and 1.
- A unit tile is 8 x 16 elements. An instruction issues a block of `width` of them (1, 2, 4 or 8, what the runtime
  chose for its CPU; `width` reads it): decoding, operand set-up and bounds checks are paid once for the block. That
  its units are independent of each other is by construction, except for stores, which claim it: elements of a store
  that is `distinct` have addresses of their own, and the machine checks that.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from eyas.module import isa_table

VERSION = 1
MAX_SCALARS = 4096
MAX_TILES = 48
MAX_ELEMENTS = 1024
UNIT_ROWS, UNIT_COLUMNS = 8, 16
WIDTHS = (1, 2, 4, 8)
PANEL = 16
"""Columns of a panel, the block in which `contract` reads its right operand."""
BUFFER_SHIFT = 48


class Kind(enum.Enum):
    """What an operand is. The value is the letter that stands for it in the C format string."""

    SCALAR_DST = "S"
    SCALAR = "s"
    TILE_DST = "T"
    TILE = "t"
    MODES = "m"
    SMALL = "n"
    IMM64 = "q"
    LABEL = "L"


UNITS = {
    Kind.SCALAR_DST: 1,
    Kind.SCALAR: 1,
    Kind.TILE_DST: 1,
    Kind.TILE: 1,
    Kind.MODES: 1,
    Kind.SMALL: 1,
    Kind.IMM64: 4,
    Kind.LABEL: 2,
}

KIND_DOC = {
    Kind.SCALAR_DST: "scalar register, written",
    Kind.SCALAR: "scalar register, read",
    Kind.TILE_DST: "tile register, written",
    Kind.TILE: "tile register, read",
    Kind.MODES: "shapes of the tiles, 2 bits each (first, second, third operand from bit 0, result in bits 6 and 7): "
    "0 full, 1 row, 2 column, 3 one element; the result has every dimension that an operand has",
    Kind.SMALL: "16-bit unsigned immediate",
    Kind.IMM64: "64-bit signed immediate",
    Kind.LABEL: "byte offset of an instruction in the same function",
}


class Extent(enum.IntEnum):
    """The shape of one tile operand, relative to R and C."""

    FULL = 0
    ROW = 1
    COLUMN = 2
    ONE = 3


def modes(result: Extent, *operands: Extent) -> int:
    """The `modes` operand for shapes of the result and of the operands."""
    return sum(int(extent) << (2 * position) for position, extent in enumerate(operands)) | int(result) << 6


class Type(enum.IntEnum):
    """Elements of a tile."""

    F32 = 0
    F64 = 1
    I8 = 2
    I16 = 3
    I32 = 4
    I64 = 5


class Memory(enum.IntEnum):
    """Elements in memory. f16 and bf16 are f32 in a tile and in a scalar; scalar loads extend u8, u16 and u32 by zeros
    (u32 is also how an f32 is read); tiles take u8, u16, u32 as i8, i16, i32."""

    F32 = 0
    F64 = 1
    I8 = 2
    I16 = 3
    I32 = 4
    I64 = 5
    F16 = 6
    BF16 = 7
    U8 = 8
    U16 = 9
    U32 = 10


TYPE_BYTES = {Type.F32: 4, Type.F64: 8, Type.I8: 1, Type.I16: 2, Type.I32: 4, Type.I64: 8}
MEMORY_BYTES = dict(zip(Memory, (4, 8, 1, 2, 4, 8, 2, 2, 1, 2, 4), strict=True))
FLOATS = (Type.F32, Type.F64)
INTEGERS = (Type.I8, Type.I16, Type.I32, Type.I64)


Operand: TypeAlias = isa_table.Operand[Kind]


@dataclass(frozen=True)
class Op(isa_table.Op[Kind]):
    """One instruction. `family` groups those that one table of microkernels serves; `number` and `type` are the place
    in it."""

    family: str = ""
    number: int = 0
    type: int = 0


def _op(code: int, name: str, operands: str, doc: str, terminator: bool = False, **place: int | str) -> Op:
    return Op(name, code, isa_table.parse_operands(operands, Kind), doc, terminator, **place)  # type: ignore[arg-type]


_SCALAR_OPS = (
    # Integers of 64 bits. Arithmetic wraps; zero divides like one: the quotient is the dividend, the remainder 0.
    _op(0x01, "const", "dst:S value:q", "dst = value"),
    _op(0x02, "mov", "dst:S src:s", "dst = src"),
    _op(0x03, "add", "dst:S a:s b:s", "dst = a + b"),
    _op(0x04, "sub", "dst:S a:s b:s", "dst = a - b"),
    _op(0x05, "mul", "dst:S a:s b:s", "dst = a * b"),
    _op(0x06, "divs", "dst:S a:s b:s", "signed quotient, towards zero"),
    _op(0x07, "divu", "dst:S a:s b:s", "unsigned quotient"),
    _op(0x08, "rems", "dst:S a:s b:s", "signed remainder, sign of a"),
    _op(0x09, "remu", "dst:S a:s b:s", "unsigned remainder"),
    _op(0x0A, "mins", "dst:S a:s b:s", "signed minimum"),
    _op(0x0B, "maxs", "dst:S a:s b:s", "signed maximum"),
    _op(0x0C, "minu", "dst:S a:s b:s", "unsigned minimum"),
    _op(0x0D, "maxu", "dst:S a:s b:s", "unsigned maximum"),
    _op(0x0E, "and", "dst:S a:s b:s", "bitwise and"),
    _op(0x0F, "or", "dst:S a:s b:s", "bitwise or"),
    _op(0x10, "xor", "dst:S a:s b:s", "bitwise exclusive or"),
    _op(0x11, "shl", "dst:S a:s b:s", "a shifted left by b; 0 when b is not below 64"),
    _op(0x12, "shrs", "dst:S a:s b:s", "a shifted right by min(b, 63), sign kept"),
    _op(0x13, "shru", "dst:S a:s b:s", "a shifted right by b, zeros in; 0 when b is not below 64"),
    _op(0x14, "eq", "dst:S a:s b:s", "dst = a == b"),
    _op(0x15, "ne", "dst:S a:s b:s", "dst = a != b"),
    _op(0x16, "lts", "dst:S a:s b:s", "dst = a < b, signed"),
    _op(0x17, "les", "dst:S a:s b:s", "dst = a <= b, signed"),
    _op(0x18, "ltu", "dst:S a:s b:s", "dst = a < b, unsigned"),
    _op(0x19, "leu", "dst:S a:s b:s", "dst = a <= b, unsigned"),
    _op(0x1A, "select", "dst:S cond:s a:s b:s", "dst = cond != 0 ? a : b"),
    _op(0x1B, "sext", "dst:S src:s bits:n", "the low `bits` (1 to 63) of src, sign extended"),
    _op(0x1C, "zext", "dst:S src:s bits:n", "the low `bits` (1 to 63) of src, zero extended"),
    _op(0x1D, "clz", "dst:S src:s bits:n", "leading zeros of the low `bits` of src"),
    _op(0x1E, "ctz", "dst:S src:s bits:n", "trailing zeros of the low `bits` of src"),
    _op(0x1F, "popcount", "dst:S src:s", "ones in src"),
    _op(0x20, "mulhu", "dst:S a:s b:s", "upper half of the unsigned product"),
    _op(0x21, "mulhs", "dst:S a:s b:s", "upper half of the signed product"),
    _op(0x22, "madd", "dst:S a:s b:s c:s", "dst = a * b + c"),
    # Control.
    _op(0x28, "br", "target:L", "goes on at target", terminator=True),
    _op(0x29, "br_if", "cond:s target:L", "goes on at target when cond is not 0"),
    _op(0x2A, "br_ifnot", "cond:s target:L", "goes on at target when cond is 0"),
    _op(
        0x2B, "loop", "index:S step:s limit:s target:L", "index += step; goes on at target while index < limit, signed"
    ),
    _op(0x2C, "check", "cond:s", "ends the workgroup with 'a value in the data is not allowed' when cond is 0"),
    _op(0x2D, "return", "", "ends the workgroup", terminator=True),
    # What the workgroup knows.
    _op(0x30, "workgroup", "dst:S axis:n", "dst = the workgroup's id on an axis, 0 to 2"),
    _op(0x31, "constant", "dst:S index:n", "dst = a push constant of the dispatch"),
    _op(0x32, "binding", "dst:S index:n", "dst = the address of a binding"),
    _op(0x33, "binding_bytes", "dst:S index:n", "dst = the size of a binding"),
    _op(0x34, "data", "dst:S offset:q", "dst = an address in the function's constant data"),
    _op(
        0x35,
        "local",
        "dst:S bytes:s",
        "dst = the address of new memory, 64-byte aligned, kept until the workgroup ends",
    ),
    _op(0x36, "width", "dst:S", "dst = how many unit tiles an instruction issues here"),
    _op(0x37, "release", "address:s", "gives memory of `local` back: no address reaches it any more"),
    # Memory. Any alignment.
    _op(0x38, "load", "dst:S address:s offset:q memory:n", "dst = the element at address + offset"),
    _op(0x39, "store", "value:s address:s offset:q memory:n", "writes an element at address + offset"),
    _op(0x3A, "load_at", "dst:S address:s index:s memory:n", "dst = the element at address + index * its size"),
    _op(0x3B, "store_at", "value:s address:s index:s memory:n", "writes the element at address + index * its size"),
    _op(0x3C, "copy", "target:s source:s bytes:s", "copies bytes; the ranges may overlap"),
    _op(0x3D, "fill", "target:s value:s count:s memory:n", "writes an element `count` times"),
)

# Families of scalar float instructions: name -> number. f32 and f64 have one instruction each.
FLOAT_BINARY = ("add", "sub", "mul", "div", "minimum", "maximum", "minnum", "maxnum", "rem", "pow", "atan2", "copysign")
FLOAT_UNARY = (
    *("neg", "abs", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "floor", "ceil", "trunc", "round", "roundeven", "sigmoid", "round_f16", "round_bf16"),
)
FLOAT_COMPARE = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")
INTEGER_BINARY = (
    *("add", "sub", "mul", "divs", "divu", "rems", "remu", "mins", "maxs", "minu", "maxu"),
    *("and", "or", "xor", "shl", "shrs", "shru"),
)
INTEGER_UNARY = ("neg", "abs", "clz", "ctz", "popcount", "not")
INTEGER_COMPARE = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
REDUCTIONS_FLOAT = ("add", "mul", "minimum", "maximum", "minnum", "maxnum")
REDUCTIONS_INTEGER = ("add", "mul", "mins", "maxs", "minu", "maxu", "and", "or", "xor")
# Conversions of a tile: (name, from, to). Floats to integers saturate, NaN gives 0.
CASTS = tuple(
    [("sitofp", i, f) for i in INTEGERS for f in FLOATS]
    + [("uitofp", i, f) for i in INTEGERS for f in FLOATS]
    + [("fptosi", f, i) for f in FLOATS for i in INTEGERS]
    + [("fptoui", f, i) for f in FLOATS for i in INTEGERS]
    + [("sext", a, b) for a in INTEGERS for b in INTEGERS if a < b]
    + [("zext", a, b) for a in INTEGERS for b in INTEGERS if a < b]
    + [("trunc", a, b) for a in INTEGERS for b in INTEGERS if a > b]
    + [("extf", Type.F32, Type.F64), ("truncf", Type.F64, Type.F32)]
)
WINDOWS = ("muladd", "add", "maximum", "minimum", "maxnum", "minnum")
# Products of what is in memory: (name, left, right, accumulator). k elements of a column lie together in a panel.
CONTRACTIONS = (
    ("f32", Memory.F32, Memory.F32, Type.F32, 1),
    ("f16", Memory.F16, Memory.F16, Type.F32, 1),
    ("bf16", Memory.BF16, Memory.BF16, Type.F32, 2),
    ("s8s8", Memory.I8, Memory.I8, Type.I32, 4),
    ("u8s8", Memory.U8, Memory.I8, Type.I32, 4),
    ("s8u8", Memory.I8, Memory.U8, Type.I32, 4),
    ("u8u8", Memory.U8, Memory.U8, Type.I32, 4),
    ("f64", Memory.F64, Memory.F64, Type.F64, 1),
)


def _suffix(type_: Type) -> str:
    return type_.name.lower()


def _scalar_floats() -> list[Op]:
    """Scalar float arithmetic: 0x40 + 16 * type for two operands, and so on."""
    found = []
    for type_ in FLOATS:
        t, text = int(type_), _suffix(type_)
        for n, name in enumerate(FLOAT_BINARY):
            place = {"family": "scalar_binary", "number": n, "type": t}
            found.append(_op(0x40 + 16 * t + n, f"f{name}_{text}", "dst:S a:s b:s", f"{name} of two {text}", **place))
        for n, name in enumerate(FLOAT_UNARY):
            place = {"family": "scalar_unary", "number": n, "type": t}
            found.append(_op(0x60 + 48 * t + n, f"f{name}_{text}", "dst:S a:s", f"{name} of an {text}", **place))
        for n, name in enumerate(FLOAT_COMPARE):
            place = {"family": "scalar_compare", "number": n, "type": t}
            found.append(
                _op(0xC0 + 16 * t + n, f"f{name}_{text}", "dst:S a:s b:s", f"dst = a {name} b, {text}", **place)
            )
        found.append(_op(0xE0 + t, f"ffma_{text}", "dst:S a:s b:s c:s", "dst = a * b + c, rounded once"))
        found.append(_op(0xE2 + t, f"fsitofp_{text}", "dst:S a:s", f"signed 64-bit integer to {text}"))
        found.append(_op(0xE4 + t, f"fuitofp_{text}", "dst:S a:s", f"unsigned 64-bit integer to {text}"))
        found.append(
            _op(0xE6 + t, f"ffptosi_{text}", "dst:S a:s bits:n", f"{text} to signed integer, saturating; NaN is 0")
        )
        found.append(
            _op(
                0xE8 + t,
                f"ffptoui_{text}",
                "dst:S a:s bits:n",
                f"{text} to unsigned integer, saturating; sign-extended like every integer",
            )
        )
    found.append(_op(0xEA, "fextf", "dst:S a:s", "f32 to f64"))
    found.append(_op(0xEB, "ftruncf", "dst:S a:s", "f64 to f32"))
    found.append(_op(0xEC, "fbits_f16", "dst:S a:s", "the 16 bits of an f16, sign-extended, from its f32"))
    found.append(_op(0xED, "ffrom_f16", "dst:S a:s", "f32 of the f16 whose bits are in the low 16"))
    found.append(
        _op(0xEE, "fbits_bf16", "dst:S a:s", "the 16 bits of a bf16, sign-extended, from an f32, rounded to even")
    )
    found.append(_op(0xEF, "ffrom_bf16", "dst:S a:s", "f32 of the bf16 whose bits are in the low 16"))
    return found


_TILE_MEMORY = (
    _op(0x100, "shape", "rows:s columns:s", "sets R and C; rows * columns is at most 1024"),
    _op(
        0x101,
        "tload",
        "dst:T address:s row_bytes:s column_bytes:s memory:n modes:m",
        "dst[r, c] = the element at address + r * row_bytes + c * column_bytes",
    ),
    _op(
        0x102,
        "tload_inside",
        "dst:T address:s row_bytes:s column_bytes:s first_row:s end_row:s first_column:s end_column:s otherwise:s "
        "memory:n",
        "as tload inside of a box, `otherwise` outside; only what is inside is read",
    ),
    _op(
        0x103,
        "tstore",
        "src:t address:s row_bytes:s column_bytes:s memory:n modes:m distinct:n",
        "writes a tile (the modes' result says its shape; a smaller source is repeated); `distinct` claims that no two "
        "elements have one address",
    ),
    _op(
        0x104,
        "tgather",
        "dst:T address:s index:t memory:n modes:m",
        "dst[r, c] = the element number index[r, c] (an i64 tile) from address",
    ),
    _op(0x105, "tfill", "dst:T value:s type:n modes:m", "every element of dst = value (the result's shape in modes)"),
    _op(
        0x106,
        "tindex",
        "dst:T start:s row_step:s column_step:s modes:m",
        "dst[r, c] = start + r * row_step + c * column_step, i64",
    ),
    _op(0x107, "tmov", "dst:T src:t type:n modes:m", "dst = src, repeated to the result's shape"),
    _op(0x108, "textract", "dst:S src:t index:s type:n", "dst = one element of a tile, by its place in row order"),
    _op(
        0x109,
        "tpick",
        "dst:T cond:t a:t b:t bytes:n modes:m",
        "dst = cond != 0 ? a : b; cond is an i8 tile, elements of `bytes` 1, 2, 4 or 8",
    ),
    _op(
        0x10A,
        "prefetch",
        "address:s bytes:s",
        "asks for memory that will be read; nothing happens when it is not there",
    ),
    _op(
        0x10B,
        "tload_rows",
        "dst:T address:s index:t memory:n",
        "dst[r, c] = the element number index[r] + c (index is a column of i64) from address",
    ),
)


def _tile_ops() -> list[Op]:
    found = []

    def add(base: int, family: str, names: tuple[str, ...], types: tuple[Type, ...], operands: str, what: str) -> None:
        for n, name in enumerate(names):
            for type_ in types:
                place = {"family": family, "number": n, "type": int(type_)}
                text = f"t{what}{name}_{_suffix(type_)}"
                found.append(_op(base + 8 * n + type_, text, operands, f"{name}, for each element", **place))

    add(0x200, "unary", FLOAT_UNARY, FLOATS, "dst:T a:t modes:m", "f")
    add(0x380, "integer_unary", INTEGER_UNARY, INTEGERS, "dst:T a:t modes:m", "i")
    add(0x400, "binary", FLOAT_BINARY, FLOATS, "dst:T a:t b:t modes:m", "f")
    add(0x480, "integer_binary", INTEGER_BINARY, INTEGERS, "dst:T a:t b:t modes:m", "i")
    add(0x580, "compare", FLOAT_COMPARE, FLOATS, "dst:T a:t b:t modes:m", "fcmp_")
    add(0x600, "integer_compare", INTEGER_COMPARE, INTEGERS, "dst:T a:t b:t modes:m", "icmp_")
    add(0x680, "fma", ("fma",), FLOATS, "dst:T a:t b:t c:t modes:m", "")
    reduce = "dst:T a:t axis:n"
    add(0x700, "reduce", REDUCTIONS_FLOAT, FLOATS, reduce, "reduce_f")
    add(0x780, "integer_reduce", REDUCTIONS_INTEGER, INTEGERS, reduce, "reduce_i")
    for n, (name, source, target) in enumerate(CASTS):
        text = f"t{name}_{_suffix(source)}_{_suffix(target)}"
        place = {"family": "cast", "number": n, "type": 0}
        found.append(_op(0x800 + n, text, "dst:T a:t modes:m", f"{name} of each element", **place))
    levels = " ".join(f"extent{i}:s a_bytes{i}:s b_bytes{i}:s" for i in range(3))
    for n, (name, *_) in enumerate(CONTRACTIONS):
        place = {"family": "contract", "number": n, "type": 0}
        found.append(
            _op(
                0xA00 + n, f"tcontract_{name}", f"acc:T a:s a_row_bytes:s b:s b_panel_bytes:s {levels}",
                "acc[r, c] += sum of a[r] * b[c] over three loops; a is at a + r * a_row_bytes, b at b + (c / 16) * "
                "b_panel_bytes + (c % 16) * its k elements, both move by their bytes of each loop", **place,
            )
        )  # fmt: skip
    levels = " ".join(f"extent{i}:s a_bytes{i}:s b_bytes{i}:s" for i in range(2))
    for n, name in enumerate(WINDOWS):
        for type_ in FLOATS + (Type.I8, Type.I32):
            if name.endswith("num") and type_ not in FLOATS:
                continue
            place = {"family": "window", "number": n, "type": int(type_)}
            found.append(
                _op(
                    0xA40 + 8 * n + type_, f"twindow_{name}_{_suffix(type_)}", f"acc:T a:s a_row_bytes:s b:s {levels}",
                    "acc[r, c] = acc[r, c] (op) a[r, c] * b[c] over two loops; a is at a + r * a_row_bytes + c "
                    "elements; only muladd reads b, at b + c elements", **place,
                )
            )  # fmt: skip
    found.append(_op(0xA80, "tsoftmax_f32", "dst:T a:t", "softmax of each row of a full tile", family="rows", number=0))
    found.append(
        _op(
            0xA81,
            "tnormalize_f32",
            "dst:T a:t epsilon:s",
            "(a - mean) / sqrt(variance + epsilon) of each row of a full tile",
            family="rows",
            number=1,
        )
    )
    return found


OPS: tuple[Op, ...] = (*_SCALAR_OPS, *_scalar_floats(), *_TILE_MEMORY, *_tile_ops())
BY_NAME = {op.name: op for op in OPS}
BY_CODE = {op.code: op for op in OPS}
assert len(BY_NAME) == len(BY_CODE) == len(OPS), "two instructions share a name or a code"


def _c_infos(families: list[str]) -> list[str]:
    """What the decoder asks of an instruction. Small, because a runtime with nothing else must be: no pointers, one
    text of all names, sorted by code."""
    formats = sorted({op.format for op in OPS})
    places, names = {}, ""
    for op in OPS:
        places[op.name] = len(names)
        names += op.name + "\0"
    rows = [
        f"  {{{op.code}, {places[op.name]}, {formats.index(op.format)}, {families.index(op.family)}, "
        f"{op.number}, {op.type | int(op.terminator) << 7}}},"
        for op in sorted(OPS, key=lambda op: op.code)
    ]
    return [
        "static const struct { uint16_t code, name; uint8_t format, family, number, type; } eyas_vmvx_op_rows[] = {",
        *rows,
        "};",
        f"static const char eyas_vmvx_op_formats[][{1 + max(map(len, formats))}] = {{",
        *(f'  "{text}",' for text in formats),
        "};",
        "#ifndef EYAS_VMVX_WITHOUT_NAMES  // where a few kB are many",
        "static const char eyas_vmvx_op_names[] = {",  # not a string: ISO C has a limit for those
        *(f"  {', '.join(map(str, op.name.encode()))}, 0,  // {op.name}" for op in OPS),
        "};",
        "#endif",
        "// The name is NULL when there is no such instruction.",
        "static inline eyas_vmvx_op_info_t eyas_vmvx_op_info(uint32_t op) {",
        f"  uint32_t low = 0, high = {len(OPS)};",
        "  while (high - low > 1) {",
        "    uint32_t middle = low + (high - low) / 2;",
        "    if (eyas_vmvx_op_rows[middle].code <= op) low = middle; else high = middle;",
        "  }",
        "  eyas_vmvx_op_info_t info = {0, 0, 0, 0, 0, 0};",
        "  if (eyas_vmvx_op_rows[low].code != op) return info;",
        "#ifndef EYAS_VMVX_WITHOUT_NAMES",
        "  info.name = eyas_vmvx_op_names + eyas_vmvx_op_rows[low].name;",
        "#else",
        '  info.name = "";',
        "#endif",
        "  info.format = eyas_vmvx_op_formats[eyas_vmvx_op_rows[low].format];",
        "  info.terminator = eyas_vmvx_op_rows[low].type >> 7;",
        "  info.family = eyas_vmvx_op_rows[low].family;",
        "  info.number = eyas_vmvx_op_rows[low].number;",
        "  info.type = eyas_vmvx_op_rows[low].type & 127;",
        "  return info;",
        "}",
    ]


def emit_c() -> str:
    """The C header for decoder, verifier, interpreter and microkernels."""
    families = {
        "UNARY": FLOAT_UNARY, "IUNARY": INTEGER_UNARY, "BINARY": FLOAT_BINARY, "IBINARY": INTEGER_BINARY,
        "COMPARE": FLOAT_COMPARE, "ICOMPARE": INTEGER_COMPARE,
        "REDUCE": REDUCTIONS_FLOAT, "IREDUCE": REDUCTIONS_INTEGER,
        "WINDOW": WINDOWS, "CONTRACT": tuple(name for name, *_ in CONTRACTIONS),
    }  # fmt: skip
    out = [
        "// Generated from src/eyas/module/vmvx_isa.py. Do not edit.",
        "#ifndef EYAS_VMVX_ISA_H_",
        "#define EYAS_VMVX_ISA_H_",
        "#include <stdint.h>",
        f"#define EYAS_VMVX_ISA_VERSION {VERSION}u",
        f"#define EYAS_VMVX_OP_LIMIT {max(BY_CODE) + 1}u",
        f"#define EYAS_VMVX_MAX_SCALARS {MAX_SCALARS}u",
        f"#define EYAS_VMVX_MAX_TILES {MAX_TILES}u",
        f"#define EYAS_VMVX_MAX_ELEMENTS {MAX_ELEMENTS}u",
        f"#define EYAS_VMVX_UNIT_ROWS {UNIT_ROWS}u",
        f"#define EYAS_VMVX_UNIT_COLUMNS {UNIT_COLUMNS}u",
        f"#define EYAS_VMVX_PANEL {PANEL}u",
        f"#define EYAS_VMVX_BUFFER_SHIFT {BUFFER_SHIFT}u",
        "enum {",
        *(f"  EYAS_VMVX_OP_{op.name.upper()} = {op.code}," for op in OPS),
        "};",
        "enum {",
        *(f"  EYAS_VMVX_TYPE_{t.name} = {t.value}," for t in Type),
        *(f"  EYAS_VMVX_MEMORY_{m.name} = {m.value}," for m in Memory),
        *(f"  EYAS_VMVX_EXTENT_{e.name} = {e.value}," for e in Extent),
        f"  EYAS_VMVX_TYPE_COUNT = {len(Type)},",
        f"  EYAS_VMVX_MEMORY_COUNT = {len(Memory)},",
        "};",
    ]
    for family, names in families.items():
        out += ["enum {", *(f"  EYAS_VMVX_{family}_{n.upper()} = {i}," for i, n in enumerate(names))]
        out += [f"  EYAS_VMVX_{family}_COUNT = {len(names)},", "};"]
    out += ["enum {", *(f"  EYAS_VMVX_CAST_{n.upper()}_{a.name}_{b.name} = {i}," for i, (n, a, b) in enumerate(CASTS))]
    out += [f"  EYAS_VMVX_CAST_COUNT = {len(CASTS)},", "};"]
    steps = (MEMORY_BYTES[left] * k for _, left, _, _, k in CONTRACTIONS)
    lists = {
        "TYPE_BYTES": map(str, TYPE_BYTES.values()),
        "MEMORY_BYTES": map(str, MEMORY_BYTES.values()),
        "CAST_TYPES": (f"{{{a.value}, {b.value}}}" for _, a, b in CASTS),
        "CONTRACT_STEP_BYTES": map(str, steps),
    }
    out += [f"#define EYAS_VMVX_{name} {', '.join(values)}" for name, values in lists.items()]
    kinds = ["", *sorted({op.family for op in OPS} - {""})]
    out += ["enum {", *(f"  EYAS_VMVX_FAMILY_{(k or 'none').upper()} = {i}," for i, k in enumerate(kinds)), "};"]
    out += [
        "typedef struct eyas_vmvx_op_info_t { const char* name; const char* format; "
        "uint8_t terminator, family, number, type; } eyas_vmvx_op_info_t;",
        "// format: one letter an operand.",
        *(f"//   {kind.value}  {KIND_DOC[kind]}" for kind in Kind),
        "#ifdef EYAS_VMVX_WITH_INFOS",
        *_c_infos(kinds),
        "#endif",
        "#endif  // EYAS_VMVX_ISA_H_",
    ]
    return "\n".join(out) + "\n"


def emit_md() -> str:
    """The reference tables; instructions that differ only in the types of their elements share a row."""
    out = ["## Operands", "", *isa_table.markdown_kinds(UNITS, KIND_DOC)]
    out += ["", "## Instructions", "", "| code | instruction | types | meaning |", "|---|---|---|---|"]
    rows: dict[tuple[str, str], list[Op]] = {}
    for op in OPS:
        stem = op.name.split("_f32")[0].split("_f64")[0].split("_i")[0] if op.family else op.name
        rows.setdefault((op.family, stem), []).append(op)
    for (_, stem), ops in rows.items():
        types = ", ".join(op.name.removeprefix(stem).strip("_").replace("_", " to ") for op in ops)
        codes = f"0x{ops[0].code:03X}" + (f" to 0x{ops[-1].code:03X}" if len(ops) > 1 else "")
        text = f"{stem} {ops[0].text}".rstrip()
        out.append(f"| {codes} | `{text}` | {types} | {ops[0].doc} |")
    return "\n".join(out) + "\n"
