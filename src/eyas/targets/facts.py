"""Facts per architecture and per CPU, as data. The only place that knows feature names.

A feature is listed here when LLVM may emit instructions for it in our kernels: then a machine without it faults, and
the runtime must check it. Names are LLVM's. Sources: LLVM's X86.td, AArch64Features.td and RISCVFeatures.td for what
implies what, X86TargetParser.def and AArch64Processors.td for what a CPU has, vendors' optimisation manuals for caches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eyas.targets.text import KIB, MIB


@dataclass(frozen=True)
class Cpu:
    """One CPU model: codegen-relevant features beyond the architecture's baseline, and cache sizes in bytes."""

    features: frozenset[str]
    l1d: int = 32 * KIB
    l2: int = 512 * KIB
    l3: int = 8 * MIB
    vlen: int = 0
    """Bits of a scalable vector register; 0 where the architecture's registers have a fixed size."""


@dataclass(frozen=True)
class Arch:
    """One instruction set. `implies[f]` lists what a CPU with `f` also has; the keys are all known features."""

    triple: str
    elf_machine: int
    default_cpu: str
    implies: Mapping[str, tuple[str, ...]]
    cpus: Mapping[str, Cpu]
    baseline: frozenset[str]
    """Features that every CPU of this architecture that we compile for has; never checked at load."""
    llvm_extra: str = ""
    """Features that LLVM is always given and that no user chooses."""
    abi: str = ""
    vector_widths: tuple[tuple[str, int], ...] = ()
    """(feature, bits) of the native vector register, widest first."""
    vector_registers: tuple[tuple[str, int], ...] = ()
    """(feature, count), richest first; the last entry is the baseline."""
    capabilities: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """What codegen asks for -> the features of which any one suffices."""


def _known(names: str, **implied: str) -> dict[str, tuple[str, ...]]:
    table = {name: () for name in names.split()}
    return table | {name.replace("_", "."): tuple(what.split()) for name, what in implied.items()}


def _set(*groups: frozenset[str] | str) -> frozenset[str]:
    return frozenset().union(*(group.split() if isinstance(group, str) else group for group in groups))


# --- x86-64 -----------------------------------------------------------------------------------------------------------

_X86_FEATURES = _known(
    "sse2 cx16 sahf popcnt lzcnt movbe bmi bmi2 adx",
    sse3="sse2",
    sse4a="sse3",
    ssse3="sse3",
    sse4_1="ssse3",
    sse4_2="sse4.1",
    gfni="sse2",
    vaes="avx2",
    vpclmulqdq="avx",
    avx="sse4.2",
    f16c="avx",
    fma="avx",
    fma4="avx sse4a",
    xop="fma4",
    avx2="avx",
    avxvnni="avx2",
    avxvnniint8="avx2",
    avxvnniint16="avx2",
    avxifma="avx2",
    avxneconvert="avx2",
    avx512f="avx2 f16c fma",
    avx512cd="avx512f",
    avx512dq="avx512f",
    avx512bw="avx512f",
    avx512vl="avx512f",
    avx512ifma="avx512f",
    avx512vbmi="avx512bw",
    avx512vbmi2="avx512bw",
    avx512vnni="avx512f",
    avx512bitalg="avx512bw",
    avx512vpopcntdq="avx512f",
    avx512vp2intersect="avx512f",
    avx512bf16="avx512bw",
    avx512fp16="avx512bw avx512dq avx512vl",
) | {"amx-tile": (), "amx-int8": ("amx-tile",), "amx-bf16": ("amx-tile",), "amx-fp16": ("amx-tile",)}

_V1 = _set("sse2")
_V2 = _set(_V1, "cx16 sahf popcnt sse3 ssse3 sse4.1 sse4.2")
_V3 = _set(_V2, "avx avx2 bmi bmi2 f16c fma lzcnt movbe")
_V4 = _set(_V3, "avx512f avx512bw avx512cd avx512dq avx512vl")
_SKYLAKE = _set(_V3, "adx")
_SKYLAKE_512 = _set(_V4, "adx")
_CASCADE = _set(_SKYLAKE_512, "avx512vnni")
_ICELAKE = _set(_CASCADE, "avx512ifma avx512vbmi avx512vbmi2 avx512bitalg avx512vpopcntdq gfni vaes vpclmulqdq")
_SAPPHIRE = _set(_ICELAKE, "avx512bf16 avx512fp16 avxvnni amx-tile amx-int8 amx-bf16")
_ALDER = _set(_SKYLAKE, "gfni vaes vpclmulqdq avxvnni")
_ARROW = _set(_ALDER, "avxvnniint8 avxifma avxneconvert")
_ZEN = _set(_V3, "adx sse4a")
_ZEN3 = _set(_ZEN, "vaes vpclmulqdq")
_ZEN4 = _set(_ZEN3, _ICELAKE, "avx512bf16")

_X86_CPUS = {
    "x86-64": Cpu(_V1),
    "x86-64-v2": Cpu(_V2),
    "x86-64-v3": Cpu(_V3),
    "x86-64-v4": Cpu(_V4, l2=1 * MIB, l3=16 * MIB),
    "haswell": Cpu(_V3, l2=256 * KIB),
    "broadwell": Cpu(_SKYLAKE, l2=256 * KIB),
    "skylake": Cpu(_SKYLAKE, l2=256 * KIB),
    "skylake-avx512": Cpu(_SKYLAKE_512, l2=1 * MIB, l3=24 * MIB),
    "cascadelake": Cpu(_CASCADE, l2=1 * MIB, l3=24 * MIB),
    "cooperlake": Cpu(_set(_CASCADE, "avx512bf16"), l2=1 * MIB, l3=24 * MIB),
    "icelake-client": Cpu(_ICELAKE, l1d=48 * KIB, l2=512 * KIB),
    "icelake-server": Cpu(_ICELAKE, l1d=48 * KIB, l2=1280 * KIB, l3=32 * MIB),
    "tigerlake": Cpu(_set(_ICELAKE, "avx512vp2intersect"), l1d=48 * KIB, l2=1280 * KIB, l3=12 * MIB),
    "sapphirerapids": Cpu(_SAPPHIRE, l1d=48 * KIB, l2=2 * MIB, l3=32 * MIB),
    "emeraldrapids": Cpu(_SAPPHIRE, l1d=48 * KIB, l2=2 * MIB, l3=64 * MIB),
    "graniterapids": Cpu(_set(_SAPPHIRE, "amx-fp16"), l1d=48 * KIB, l2=2 * MIB, l3=64 * MIB),
    "alderlake": Cpu(_ALDER, l1d=48 * KIB, l2=1280 * KIB, l3=24 * MIB),
    "raptorlake": Cpu(_ALDER, l1d=48 * KIB, l2=2 * MIB, l3=30 * MIB),
    "meteorlake": Cpu(_ALDER, l1d=48 * KIB, l2=2 * MIB, l3=24 * MIB),
    "arrowlake": Cpu(_ARROW, l1d=48 * KIB, l2=3 * MIB, l3=24 * MIB),
    "lunarlake": Cpu(_set(_ARROW, "avxvnniint16"), l1d=48 * KIB, l2=2560 * KIB, l3=12 * MIB),
    "sierraforest": Cpu(_ARROW, l1d=32 * KIB, l2=4 * MIB, l3=64 * MIB),
    "znver1": Cpu(_ZEN, l3=8 * MIB),
    "znver2": Cpu(_ZEN, l3=16 * MIB),
    "znver3": Cpu(_ZEN3, l3=32 * MIB),
    "znver4": Cpu(_ZEN4, l2=1 * MIB, l3=32 * MIB),
    "znver5": Cpu(_set(_ZEN4, "avxvnni avx512vp2intersect"), l1d=48 * KIB, l2=1 * MIB, l3=32 * MIB),
}

# --- AArch64 ----------------------------------------------------------------------------------------------------------

_ARM_FEATURES = _known(
    "fp-armv8 crc lse rdm rcpc",
    neon="fp-armv8",
    fullfp16="fp-armv8",
    fp16fml="fullfp16",
    dotprod="neon",
    bf16="neon",
    i8mm="neon",
    sve="fullfp16",
    sve2="sve",
)
_ARM_V80 = _set("fp-armv8 neon crc")
_ARM_V82 = _set(_ARM_V80, "lse rdm fullfp16 dotprod rcpc")
_ARM_V84 = _set(_ARM_V82, "fp16fml")
_ARM_V86 = _set(_ARM_V84, "bf16 i8mm")
_ARM_V9 = _set(_ARM_V86, "sve sve2")

_ARM_CPUS = {
    "generic": Cpu(_set("fp-armv8 neon"), l3=2 * MIB),
    "cortex-a53": Cpu(_ARM_V80, l2=512 * KIB, l3=0),
    "cortex-a55": Cpu(_ARM_V82, l2=128 * KIB, l3=2 * MIB),
    "cortex-a57": Cpu(_ARM_V80, l2=2 * MIB, l3=0),
    "cortex-a72": Cpu(_ARM_V80, l2=1 * MIB, l3=0),
    "cortex-a76": Cpu(_ARM_V82, l1d=64 * KIB, l2=512 * KIB, l3=2 * MIB),
    "cortex-a78": Cpu(_ARM_V82, l1d=64 * KIB, l2=512 * KIB, l3=4 * MIB),
    "cortex-x1": Cpu(_ARM_V82, l1d=64 * KIB, l2=1 * MIB, l3=8 * MIB),
    "neoverse-n1": Cpu(_ARM_V82, l1d=64 * KIB, l2=1 * MIB, l3=32 * MIB),
    "neoverse-v1": Cpu(_set(_ARM_V86, "sve"), l1d=64 * KIB, l2=1 * MIB, l3=32 * MIB),
    "neoverse-n2": Cpu(_ARM_V9, l1d=64 * KIB, l2=1 * MIB, l3=32 * MIB),
    "neoverse-v2": Cpu(_ARM_V9, l1d=64 * KIB, l2=2 * MIB, l3=64 * MIB),
    "apple-m1": Cpu(_ARM_V84, l1d=128 * KIB, l2=12 * MIB, l3=8 * MIB),
    "apple-m2": Cpu(_ARM_V86, l1d=128 * KIB, l2=16 * MIB, l3=8 * MIB),
    "apple-m3": Cpu(_ARM_V86, l1d=128 * KIB, l2=16 * MIB, l3=8 * MIB),
    "apple-m4": Cpu(_ARM_V86, l1d=128 * KIB, l2=16 * MIB, l3=8 * MIB),
}

# --- RISC-V -----------------------------------------------------------------------------------------------------------

_RISCV_FEATURES = _known(
    "m a c f zba zbb zbs zicond",
    d="f",
    v="d",
    zfhmin="f",
    zfh="zfhmin",
    zvfhmin="v",
    zvfh="zvfhmin zfhmin",
)
_RV64GC = _set("m a c f d")
_RVA22 = _set(_RV64GC, "zba zbb zbs zfhmin")

_RISCV_CPUS = {
    "generic-rv64": Cpu(_RV64GC, l3=0, vlen=128),
    "sifive-u74": Cpu(_RV64GC, l2=2 * MIB, l3=0),
    "sifive-x280": Cpu(_set(_RV64GC, "v zba zbb zfh zvfh"), l2=512 * KIB, l3=2 * MIB, vlen=512),
    "spacemit-x60": Cpu(_set(_RVA22, "v zfh zvfh zicond"), l2=512 * KIB, l3=0, vlen=256),
}

# No environment in the triples: for `-gnu` LLVM would merge sin and cos into sincos, which is not an import of ours.
ARCHES = {
    "x86_64": Arch(
        triple="x86_64-unknown-linux",
        elf_machine=62,
        default_cpu="x86-64",
        implies=_X86_FEATURES,
        cpus=_X86_CPUS,
        baseline=_V1,
        vector_widths=(("avx512f", 512), ("avx2", 256), ("sse2", 128)),
        vector_registers=(("avx512f", 32), ("sse2", 16)),
        capabilities={
            "fma": _set("fma fma4"),
            "f16-arith": _set("avx512fp16"),
            "bf16-dot": _set("avx512bf16"),
            "byte-dot": _set("avx512vnni"),
            "pair-dot": _set("sse2"),
        },
    ),
    "aarch64": Arch(
        triple="aarch64-unknown-linux",
        elf_machine=183,
        default_cpu="generic",
        implies=_ARM_FEATURES,
        cpus=_ARM_CPUS,
        baseline=_set("fp-armv8 neon"),
        # Fixed-width kernels run on NEON registers, also where SVE is present: SVE's length is not known here.
        vector_widths=(("neon", 128),),
        vector_registers=(("neon", 32),),
        capabilities={
            "fma": _set("neon"),
            "f16-arith": _set("fullfp16"),
            "bf16-dot": _set("bf16"),
        },
    ),
    "riscv64": Arch(
        triple="riscv64-unknown-linux",
        elf_machine=243,
        default_cpu="generic-rv64",
        implies=_RISCV_FEATURES,
        cpus=_RISCV_CPUS,
        baseline=_RV64GC,
        # Linker relaxation leaves alignment work to the linker (R_RISCV_ALIGN), which ours does not do.
        llvm_extra="+m,+a,+f,+d,+c,-relax",
        abi="lp64d",
        vector_registers=(("v", 32), ("f", 32)),
        capabilities={
            "fma": _set("f"),
            "f16-arith": _set("zvfh"),
        },
    ),
}
