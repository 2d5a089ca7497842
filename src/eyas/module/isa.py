"""The instruction set of the Eyas VM: one table, many uses.

The table `OPS` below makes the Python encoder, decoder and disassembler (`assembler.py`), the C header that the
runtime's decoder and verifier read (`runtime/tools/make_isa_headers.py`, run by CMake, never committed) and the
reference page (`docs/make_tables.py`). This file imports nothing but the standard library, so that a build needs only
Python.

The machine. A function owns two register banks: 64-bit integers (start at 0) and references (start null). A reference
is a span of a buffer or a command buffer. A float is the bits of an f64 in an integer register, whatever its type:
sizes are computed with few of them, and an operation in f64 that is rounded by `fround` is what a narrower type gives.
An instruction is a stream of little-endian 16-bit units: the opcode, then its operands in table order. Nothing is
aligned beyond 2 bytes.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

from eyas.module import isa_table

VERSION = 1
NO_REGISTER = 0xFFFF
MAX_REGISTERS = 0xFFFF


class Kind(enum.Enum):
    """What an operand is. The value is the letter that stands for it in the C format string."""

    I64_DST = "I"
    I64 = "i"
    I64_OPTIONAL = "j"
    REF_DST = "R"
    REF = "r"
    IMM32 = "u"
    IMM64 = "q"
    LABEL = "L"
    STRING = "s"
    TABLE = "t"
    EXECUTABLE = "x"
    EXPORT = "e"
    PARAMETER = "p"
    STATE = "v"
    ARGUMENT = "a"
    RESULT = "o"
    GLOBAL = "g"
    WIDTH = "w"
    FLOAT = "f"
    ALLOC = "k"
    ELEMENT = "m"
    BINDING = "b"


# How many 16-bit units each operand takes.
UNITS = {
    Kind.I64_DST: 1,
    Kind.I64: 1,
    Kind.I64_OPTIONAL: 1,
    Kind.REF_DST: 1,
    Kind.REF: 1,
    Kind.IMM32: 2,
    Kind.IMM64: 4,
    Kind.LABEL: 2,
    Kind.STRING: 2,
    Kind.TABLE: 2,
    Kind.EXECUTABLE: 2,
    Kind.EXPORT: 2,
    Kind.PARAMETER: 2,
    Kind.STATE: 2,
    Kind.ARGUMENT: 2,
    Kind.RESULT: 2,
    Kind.GLOBAL: 2,
    Kind.WIDTH: 1,
    Kind.FLOAT: 1,
    Kind.ALLOC: 1,
    Kind.ELEMENT: 1,
    Kind.BINDING: 5,
}

KIND_DOC = {
    Kind.I64_DST: "i64 register, written",
    Kind.I64: "i64 register, read",
    Kind.I64_OPTIONAL: "i64 register, read; 0xFFFF for none",
    Kind.REF_DST: "reference register, written",
    Kind.REF: "reference register, read",
    Kind.IMM32: "32-bit unsigned immediate",
    Kind.IMM64: "64-bit signed immediate",
    Kind.LABEL: "byte offset of an instruction in the same function",
    Kind.STRING: "ordinal in the program's strings",
    Kind.TABLE: "ordinal in the program's tables of i64",
    Kind.EXECUTABLE: "ordinal in the program's executables",
    Kind.EXPORT: "ordinal in the exports of the executable before it",
    Kind.PARAMETER: "ordinal in the program's parameters",
    Kind.STATE: "ordinal in the program's state variables",
    Kind.ARGUMENT: "ordinal in the function's arguments",
    Kind.RESULT: "ordinal in the function's results",
    Kind.GLOBAL: "slot of the context's global references",
    Kind.WIDTH: "width in bits: 1, 8, 16 or 32",
    Kind.FLOAT: "0 f64, 1 f32, 2 f16, 3 bf16",
    Kind.ALLOC: "0 transient, 1 result",
    Kind.ELEMENT: "0 i1, 1 i8, 2 u8, 3 i16, 4 u16, 5 i32, 6 u32, 7 i64",
    Kind.BINDING: "kind (0 direct, 1 slot), access (1 read, 2 write, 3 both), reference register or slot number, "
    "offset and length (optional i64 registers; none = 0 and 'to the end')",
}


class Alloc(enum.IntEnum):
    """Where `buffer_alloc` takes its memory from."""

    TRANSIENT = 0  # lives for one call; cached in the context, so that the next call does not touch the allocator
    RESULT = 1  # handed to the caller


class Element(enum.IntEnum):
    """The scalar that `buffer_load` and `buffer_store` move."""

    I1 = 0
    I8 = 1
    U8 = 2
    I16 = 3
    U16 = 4
    I32 = 5
    U32 = 6
    I64 = 7


class Float(enum.IntEnum):
    """The type that a number is rounded to."""

    F64 = 0
    F32 = 1
    F16 = 2
    BF16 = 3


class Access(enum.IntFlag):
    """What a dispatch does with a binding."""

    READ = 1
    WRITE = 2
    READ_WRITE = 3


Operand: TypeAlias = isa_table.Operand[Kind]
Op: TypeAlias = isa_table.Op[Kind]


def _op(code: int, name: str, operands: str, doc: str, terminator: bool = False) -> Op:
    return Op(name, code, isa_table.parse_operands(operands, Kind), doc, terminator)


# Opcodes are permanent: a new instruction takes a free number, a removed one leaves a hole. 0 stays invalid, so that
# zeroed memory is not a program.
OPS: tuple[Op, ...] = (
    # Integers. Arithmetic wraps; division by zero fails the call.
    _op(0x01, "const_i64", "dst:I value:q", "dst = value"),
    _op(0x02, "mov", "dst:I src:i", "dst = src"),
    _op(0x03, "add", "dst:I a:i b:i", "dst = a + b"),
    _op(0x04, "sub", "dst:I a:i b:i", "dst = a - b"),
    _op(0x05, "mul", "dst:I a:i b:i", "dst = a * b"),
    _op(0x06, "divs", "dst:I a:i b:i", "signed quotient, towards zero"),
    _op(0x07, "divu", "dst:I a:i b:i", "unsigned quotient"),
    _op(0x08, "rems", "dst:I a:i b:i", "signed remainder, sign of a"),
    _op(0x09, "remu", "dst:I a:i b:i", "unsigned remainder"),
    _op(0x0A, "ceildivs", "dst:I a:i b:i", "signed quotient, towards plus infinity"),
    _op(0x0B, "floordivs", "dst:I a:i b:i", "signed quotient, towards minus infinity"),
    _op(0x0C, "mins", "dst:I a:i b:i", "signed minimum"),
    _op(0x0D, "maxs", "dst:I a:i b:i", "signed maximum"),
    _op(0x0E, "minu", "dst:I a:i b:i", "unsigned minimum"),
    _op(0x0F, "maxu", "dst:I a:i b:i", "unsigned maximum"),
    _op(0x10, "and", "dst:I a:i b:i", "bitwise and"),
    _op(0x11, "or", "dst:I a:i b:i", "bitwise or"),
    _op(0x12, "xor", "dst:I a:i b:i", "bitwise exclusive or"),
    _op(0x13, "shl", "dst:I a:i b:i", "a shifted left by b modulo 64"),
    _op(0x14, "shrs", "dst:I a:i b:i", "a shifted right by b modulo 64, sign kept"),
    _op(0x15, "shru", "dst:I a:i b:i", "a shifted right by b modulo 64, zeros in"),
    _op(0x16, "eq", "dst:I a:i b:i", "dst = a == b"),
    _op(0x17, "ne", "dst:I a:i b:i", "dst = a != b"),
    _op(0x18, "lts", "dst:I a:i b:i", "dst = a < b, signed"),
    _op(0x19, "les", "dst:I a:i b:i", "dst = a <= b, signed"),
    _op(0x1A, "ltu", "dst:I a:i b:i", "dst = a < b, unsigned"),
    _op(0x1B, "leu", "dst:I a:i b:i", "dst = a <= b, unsigned"),
    _op(0x1C, "select", "dst:I cond:i a:i b:i", "dst = cond != 0 ? a : b"),
    _op(0x1D, "sext", "dst:I src:i width:w", "the low `width` bits of src, sign extended"),
    _op(0x1E, "zext", "dst:I src:i width:w", "the low `width` bits of src, zero extended (this is also truncation)"),
    # Control.
    _op(0x20, "br", "target:L", "goes on at target", terminator=True),
    _op(0x21, "br_if", "cond:i target:L", "goes on at target when cond is not 0"),
    _op(0x22, "br_null", "ref:r target:L", "goes on at target when ref is null"),
    _op(0x23, "check", "cond:i message:s values:i*", "fails the call with message when cond is 0; each {} takes one"),
    _op(0x24, "fail", "message:s values:i*", "fails the call with message; each {} takes a value", terminator=True),
    _op(0x25, "return", "", "ends the call; every result must have been set", terminator=True),
    # References.
    _op(0x28, "mov_ref", "dst:R src:r", "dst = src; both hold the object"),
    _op(0x29, "null", "dst:R", "drops what dst held"),
    _op(0x2A, "global_load", "dst:R slot:g", "dst = global slot; null until stored"),
    _op(0x2B, "global_store", "slot:g src:r", "keeps src in the context, for the next call"),
    # Buffers.
    _op(0x30, "arg", "dst:R index:a", "dst = the argument's bytes, read-only"),
    _op(0x31, "arg_dim", "dst:I index:a dim:u", "dst = the size of one dimension of an argument"),
    _op(0x32, "param", "dst:R index:p", "dst = the parameter's bytes, read-only"),
    _op(0x33, "buffer_alloc", "dst:R bytes:i kind:k", "dst = new memory, 64-byte aligned, contents undefined"),
    _op(0x34, "buffer_view", "dst:R src:r offset:j length:j", "dst = a part of src; no copy"),
    _op(0x35, "buffer_bytes", "dst:I src:r", "dst = the length of src in bytes"),
    _op(0x36, "buffer_load", "dst:I src:r offset:i element:m", "dst = the scalar at a byte offset; any alignment"),
    _op(0x37, "buffer_store", "value:i dst:r offset:i element:m", "writes a scalar at a byte offset; any alignment"),
    _op(
        0x38,
        "arena_pack",
        "total:I offsets:I* sizes:i* lifetimes:t",
        "packs buffers of `sizes` bytes into one arena: the table holds (first, last) per buffer; buffers whose closed "
        "intervals meet do not overlap; offsets are multiples of 64; total is the arena's size",
    ),
    _op(0x39, "state", "dst:R index:v", "dst = the state variable's bytes, which stay for the next call"),
    # Commands. Recorded once, submitted as often as wanted.
    _op(0x40, "cmd_create", "dst:R slots:u", "dst = an empty command buffer with room for `slots` slot bindings"),
    _op(
        0x41,
        "cmd_dispatch",
        "cmd:r executable:x export:e x:i y:i z:i constants:i* bindings:b*",
        "records a grid of x*y*z workgroups of an export",
    ),
    _op(0x42, "cmd_barrier", "cmd:r", "what is recorded later starts after all recorded before has finished"),
    _op(0x43, "cmd_fill", "cmd:r target:b pattern:i width:u", "records a fill with a pattern of 1, 2, 4 or 8 bytes"),
    _op(0x44, "cmd_copy", "cmd:r source:b target:b", "records a copy; both ranges have one length and do not overlap"),
    _op(0x45, "cmd_end", "cmd:r", "closes the recording"),
    _op(
        0x46,
        "submit",
        "cmd:r table:r*",
        "runs a closed command buffer with `table` for its slots, after all that was submitted before",
    ),
    _op(
        0x48,
        "set_result",
        "index:o src:r dims:i*",
        "gives a result; zero-copy for a whole buffer of kind `result`, a copy for anything else",
    ),
    # Floats, in f64.
    _op(0x50, "fadd", "dst:I a:i b:i", "dst = a + b"),
    _op(0x51, "fsub", "dst:I a:i b:i", "dst = a - b"),
    _op(0x52, "fmul", "dst:I a:i b:i", "dst = a * b"),
    _op(0x53, "fdiv", "dst:I a:i b:i", "dst = a / b"),
    _op(0x54, "frem", "dst:I a:i b:i", "remainder of the quotient towards zero"),
    _op(0x55, "fmin", "dst:I a:i b:i", "minimum; a NaN stays"),
    _op(0x56, "fmax", "dst:I a:i b:i", "maximum; a NaN stays"),
    _op(0x57, "fpow", "dst:I a:i b:i", "a to the power of b"),
    _op(0x58, "feq", "dst:I a:i b:i", "dst = a == b; 0 for a NaN"),
    _op(0x59, "flt", "dst:I a:i b:i", "dst = a < b; 0 for a NaN"),
    _op(0x5A, "fle", "dst:I a:i b:i", "dst = a <= b; 0 for a NaN"),
    _op(0x5B, "ffloor", "dst:I a:i", "the integer below"),
    _op(0x5C, "fceil", "dst:I a:i", "the integer above"),
    _op(0x5D, "ftrunc", "dst:I a:i", "the integer towards zero"),
    _op(0x5E, "fnearest", "dst:I a:i", "the nearest integer, of two the even one"),
    _op(0x5F, "faway", "dst:I a:i", "the nearest integer, of two the one away from zero"),
    _op(0x60, "fsqrt", "dst:I a:i", "square root"),
    _op(0x61, "fabs", "dst:I a:i", "magnitude"),
    _op(0x62, "fneg", "dst:I a:i", "dst = -a"),
    _op(0x63, "fexp", "dst:I a:i", "e to the power of a"),
    _op(0x64, "flog", "dst:I a:i", "natural logarithm"),
    _op(0x65, "flog2", "dst:I a:i", "logarithm to base 2"),
    _op(0x66, "itof", "dst:I a:i", "a signed integer as a float"),
    _op(0x67, "utof", "dst:I a:i", "an unsigned integer as a float"),
    _op(0x68, "ftoi", "dst:I a:i", "a float as a signed integer, towards zero; the nearest there is, 0 for a NaN"),
    _op(0x69, "ftou", "dst:I a:i", "a float as an unsigned integer, towards zero; the nearest there is, 0 for a NaN"),
    _op(0x6A, "fround", "dst:I a:i type:f", "a float rounded to a narrower type"),
    _op(0x6B, "funpack", "dst:I a:i type:f", "the low bits of a, which are a float of the type"),
    _op(0x6C, "fpack", "dst:I a:i type:f", "the bits of a float of the type, zero extended"),
)

BY_NAME = {op.name: op for op in OPS}
BY_CODE = {op.code: op for op in OPS}


def emit_c() -> str:
    """The C header for the runtime's decoder, verifier and interpreter."""
    out = [
        "// Generated from src/eyas/module/isa.py. Do not edit.",
        "#ifndef EYAS_VM_ISA_H_",
        "#define EYAS_VM_ISA_H_",
        "#include <stdint.h>",
        f"#define EYAS_VM_ISA_VERSION {VERSION}u",
        f"#define EYAS_VM_NO_REGISTER {NO_REGISTER}u",
        f"#define EYAS_VM_OP_LIMIT {max(BY_CODE) + 1}u",
        "enum {",
        *(f"  EYAS_VM_OP_{op.name.upper()} = {op.code}," for op in OPS),
        "};",
        "enum {",
        *(f"  EYAS_VM_ALLOC_{a.name} = {a.value}," for a in Alloc),
        *(f"  EYAS_VM_ELEMENT_{e.name} = {e.value}," for e in Element),
        *(f"  EYAS_VM_FLOAT_{f.name} = {f.value}," for f in Float),
        "};",
        "typedef struct eyas_vm_op_info_t { const char* name; const char* format; uint8_t terminator; } "
        "eyas_vm_op_info_t;",
        "// format: one letter an operand, '*' after it for a list.",
        *(f"//   {kind.value}  {KIND_DOC[kind]}" for kind in Kind),
        "static const eyas_vm_op_info_t eyas_vm_op_infos[EYAS_VM_OP_LIMIT] = {",
        *(f'  [{op.code}] = {{"{op.name}", "{op.format}", {int(op.terminator)}}},' for op in OPS),
        "};",
        "#endif  // EYAS_VM_ISA_H_",
    ]
    return "\n".join(out) + "\n"


def emit_md() -> str:
    """The reference page."""
    out = ["# VM instructions", "", *(__doc__ or "").strip().split("\n")[1:], "", "## Operands", ""]
    out += isa_table.markdown_kinds(UNITS, KIND_DOC)
    out += ["", "`*` after a letter: a 16-bit count, then that many.", "", "## Instructions", ""]
    out += ["| code | instruction | meaning |", "|---|---|---|"]
    out += [f"| `0x{op.code:02X}` | `{op.name} {op.text}`".rstrip() + f" | {op.doc} |" for op in OPS]
    return "\n".join(out) + "\n"
