"""From the LLVM dialect to machine code: the one file where the two LLVM versions meet.

MLIR's wheel prints LLVM IR of version 24; llvmlite reads 22.1. What differs is rewritten in `_to_older_syntax`, one
construct a rule, each with a test. Every function here works from text or bytecode and plain strings, so that worker
processes can run it.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache

from torch_mlir import ir as mlir
from torch_mlir.dialects.llvm import translate_module_to_llvmir

from eyas.codegen.llvm_cpu.lowering import lower_to_llvm
from eyas.codegen.llvm_cpu.one_lane_stores import expand_one_lane_stores
from eyas.errors import InternalError
from eyas.ir.diagnostics import describe_location
from eyas.targets import Target
from eyas.targets.llvm_library import llvm

_TRANSLATABLE = ("llvm.", "builtin.module")

_LLVM_OPTIONS = ("-x86-disable-avoid-SFB",)
"""Passes of LLVM 22 that end the process on code that we make.

x86-avoid-sfb (X86AvoidStoreForwardingBlocks.cpp) looks at each vector load whose value is stored next and asks for the
size of its memory operand. A masked load has none ("unknown-size"), and keeps none when its mask turns out to be
constant during instruction selection and it becomes a plain load: "Getting value from an unknown LocationSize!" for
every padded row that is copied, on CPUs that are tuned so. It splits such loads where a smaller store went to the same
memory just before, which our kernels do not do."""


SCALAR = "codegen.scalar"
"""On a function that a strategy wrote without vectors on purpose: LLVM is not to make any."""


def emit_object(module: mlir.Module | mlir.Operation, target: Target, opt_level: int = 3) -> bytes:
    """Compiles a module of the LLVM dialect to a relocatable ELF object. Sets function attributes on the module."""
    with _optimized(module, target, opt_level) as compiled:
        return _target_machine(target, opt_level).emit_object(compiled)


def emit_assembly(module: mlir.Module | mlir.Operation, target: Target, opt_level: int = 3) -> str:
    """The assembly text of what `emit_object` would emit; for people and for tests."""
    with _optimized(module, target, opt_level) as compiled:
        return _target_machine(target, opt_level).emit_assembly(compiled)


def emit_llvm_ir(module: mlir.Module | mlir.Operation, target: Target, opt_level: int = 3) -> str:
    """LLVM IR after optimisation, in llvmlite's version of the syntax; `opt_level=0` shows it as it was handed over."""
    with _optimized(module, target, opt_level) as compiled:
        return str(compiled)


def compile_text(text: str | bytes, target_str: str, opt_level: int = 3) -> bytes:
    """Lowers and compiles MLIR text or bytecode to an object file; for worker processes, where only plain data goes."""
    from eyas.ir.context import make_context, parse_module

    target = Target.parse(target_str)
    module = parse_module(text, make_context())
    lower_to_llvm(module, target)
    return emit_object(module, target, opt_level)


def _optimized(module: mlir.Module | mlir.Operation, target: Target, opt_level: int) -> llvm.ModuleRef:
    machine = _target_machine(target, opt_level)
    compiled = _cross_versions(module.operation, target)
    compiled.triple = target.triple
    compiled.data_layout = str(machine.target_data)
    if opt_level > 0:
        options = llvm.create_pipeline_tuning_options(opt_level)
        options.loop_vectorization = options.slp_vectorization = opt_level >= 2
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(compiled, builder)
    # After the optimiser, which is what makes masks constant.
    return expand_one_lane_stores(compiled)


def _cross_versions(op: mlir.Operation, target: Target) -> llvm.ModuleRef:
    _check_translatable(op)
    _set_function_attributes(op, target)
    text = _hold_bfloats_as_integers(_to_older_syntax(translate_module_to_llvmir(op)))
    try:
        # A context of its own: types and constants of a compiled module go away with it.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        detail = " ".join(str(error).split())[:400]
        raise InternalError(f"llvmlite cannot read the LLVM IR that MLIR printed: {detail}") from None
    return module


def _check_translatable(op: mlir.Operation) -> None:
    """Fails on an op that has no translation: `translate_module_to_llvmir` would crash the process on it."""

    leftover: list[mlir.Operation] = []

    def visit(inner: mlir.Operation) -> mlir.WalkResult:
        if inner.name.startswith(_TRANSLATABLE):
            return mlir.WalkResult.ADVANCE
        leftover.append(inner)
        return mlir.WalkResult.INTERRUPT

    op.walk(visit, mlir.WalkOrder.PRE_ORDER)
    if leftover:
        first = leftover[0]
        where, text = describe_location(first.location), str(first).splitlines()[0]
        raise InternalError(f"op '{first.name}' at {where} was not lowered to the LLVM dialect: {text}")


def _set_function_attributes(op: mlir.Operation, target: Target) -> None:
    """Tells LLVM, on each function with a body, what it may use and assume.

    `no-builtins`: a strategy wrote the loop that it wants, so LLVM must not turn it into a call of memset or memcpy (an
    explicit `llvm.memcpy` still becomes one). `prefer-vector-width`: some AVX-512 CPU models prefer 256 bits unless
    told otherwise. `nounwind` drops unwind tables; nothing throws.
    """
    attributes: list[str | tuple[str, str]] = [
        "nounwind",
        "no-builtins",
        ("frame-pointer", "none"),
        ("no-trapping-math", "true"),
        ("target-cpu", target.cpu),
    ]
    if target.features:
        attributes.append(("target-features", target.features))
    if target.vector_bits:
        attributes.append(("prefer-vector-width", str(target.vector_bits)))
    with op.context:
        passthrough = [
            mlir.StringAttr.get(one)
            if isinstance(one, str)
            else mlir.ArrayAttr.get([mlir.StringAttr.get(part) for part in one])
            for one in attributes
        ]
        for function in op.regions[0].blocks[0].operations:
            if function.operation.name == "llvm.func" and len(function.operation.regions[0].blocks) > 0:
                own = [mlir.StringAttr.get("noimplicitfloat")] if SCALAR in function.operation.attributes else []
                function.operation.attributes["passthrough"] = mlir.ArrayAttr.get([*passthrough, *own])
                function.operation.attributes["dso_local"] = mlir.UnitAttr.get()


@lru_cache(maxsize=1)
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for option in _LLVM_OPTIONS:
        llvm.set_option("eyas", option)


@lru_cache(maxsize=64)
def _target_machine(target: Target, opt_level: int) -> llvm.TargetMachine:
    _initialize()
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=opt_level,
        reloc="pic",
        codemodel="default",
        abiname=target.abi,
    )


# --- LLVM 24 text for LLVM 22 -----------------------------------------------------------------------------------------

# Strings come first so that what they contain is never taken for a constant.
_FLOAT_TOKEN = re.compile(
    r'"[^"]*"'
    r"|(?<![\w@%.$-])(?P<type>float|double|half|bfloat)(?![\w.$-])"
    r"|(?<![\w@%.$+-])(?:"
    r"(?P<decimal>[+-]?\d+\.\d*(?:e[+-]?\d+)?)"
    r"|f0x(?P<bits>[0-9A-F]+)"
    r"|(?P<sign>[+-])(?P<special>inf|qnan|s?nan\(0x(?P<payload>[0-9a-fA-F]+)\))"
    r")(?![\w.])"
)

# type -> (exponent bits, mantissa bits, prefix of the hexadecimal form). A float is written as the double of its value.
_FLOAT_TYPES = {"double": (11, 52, ""), "float": (8, 23, ""), "half": (5, 10, "H"), "bfloat": (8, 7, "R")}


def _to_older_syntax(text: str) -> str:
    """Rewrites what LLVM 22 does not read: floating-point constants.

    24 prints a short decimal that gives the value in its own type (`float 1.100000e+00`), the bits (`f0x3EAAAAAB`), or
    a name (`+inf`, `-qnan`, `+nan(0x1)`, `+snan(0x1)`). 22 takes a decimal only when the type holds it exactly, and
    else wants `0x` + the bits of a double (float, double), `0xH` (half) or `0xR` (bfloat). The type of a constant is
    the last one named before it in the text, which holds for every instruction and aggregate.
    """
    current = "float"

    def rewrite(match: re.Match[str]) -> str:
        nonlocal current
        if match["type"]:
            current = match["type"]
            return match[0]
        if match[0].startswith('"'):
            return match[0]
        return _print_bits(_constant_bits(match, current), current)

    return _FLOAT_TOKEN.sub(rewrite, text)


def _constant_bits(match: re.Match[str], kind: str) -> int:
    """The constant's bits in its own type."""
    exponent_bits, mantissa_bits, _ = _FLOAT_TYPES[kind]
    if match["bits"]:
        return int(match["bits"], 16)
    if match["decimal"]:
        return _round_to(float(match["decimal"]), kind)
    sign = (match["sign"] == "-") << (exponent_bits + mantissa_bits)
    infinity = ((1 << exponent_bits) - 1) << mantissa_bits
    quiet = 0 if match["special"].startswith(("inf", "snan")) else 1 << (mantissa_bits - 1)
    return sign | infinity | quiet | int(match["payload"] or "0", 16)


def _round_to(value: float, kind: str) -> int:
    """Bits of the nearest number of the type. The printer's decimal is not near a tie: rounding twice does no harm."""
    if kind == "double":
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if kind == "half":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if kind == "float":
        return bits
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def _print_bits(bits: int, kind: str) -> str:
    _, mantissa_bits, prefix = _FLOAT_TYPES[kind]
    if kind != "float":
        return f"0x{prefix}{bits:0{16 if kind == 'double' else 4}X}"
    if (bits >> mantissa_bits) & 0xFF == 0xFF:
        # Widened by hand: converting a signalling NaN would make it quiet.
        wide = (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    else:
        wide = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]))[0]
    return f"0x{wide:016X}"


# --- bf16 as i16 ------------------------------------------------------------------------------------------------------

_BFLOAT = re.compile(r'"[^"]*"|(?<![\w@%.$-])bfloat(?![\w.$-])|(?<=[ (])0xR([0-9A-F]{4})\b|@llvm\.[\w.]+')
_BFLOAT_ARITHMETIC = re.compile(
    r"\b(?:f(?:add|sub|mul|div|rem|neg|cmp|pext|ptrunc|ptosi|ptoui)|[su]itofp)\b[^\n]*\bbfloat\b"
    r"|@(?!llvm\.masked\.)[\w.]+\([^\n]*\bbfloat\b|\bbfloat @(?!llvm\.masked\.)|> @(?!llvm\.masked\.)\S*bf16"
)
_DECLARED = re.compile(r"^declare [^\n]*?(@llvm\.[\w.]+)\([^\n]*\n", re.MULTILINE)


def _hold_bfloats_as_integers(text: str) -> str:
    """After `expand-bfloats` numbers of this type are moved and nothing else. As integers they can be moved in vectors
    of any length; LLVM's instruction selection ends the process on some vectors of bfloat that its optimiser makes."""
    if "bfloat" not in text or _BFLOAT_ARITHMETIC.search(text):
        return text

    def rewrite(match: re.Match[str]) -> str:
        found = match[0]
        if found == "bfloat":
            return "i16"
        if match[1]:
            bits = int(match[1], 16)
            return str(bits - (1 << 16) if bits >> 15 else bits)
        return re.sub(r"(?<=v)(\d+)bf16", r"\1i16", found) if found.startswith("@") else found

    text = _BFLOAT.sub(rewrite, text)
    # What was declared for both types is one function now.
    declared = {match[1]: match.start() for match in reversed(list(_DECLARED.finditer(text)))}
    return _DECLARED.sub(lambda match: match[0] if declared[match[1]] == match.start() else "", text)
