"""Relocation rules per architecture, as tables: what is computed, and how it is written into the instruction.

S is the symbol's address, A the addend, P the address of the place, G the address of the symbol's slot. References:
the psABI documents of x86-64, AArch64 (AAELF64) and RISC-V.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

Patch = Callable[[bytearray, int, int], None]
"""Writes a value at an offset of the image; raises OverflowError when it does not fit."""


class Value(Enum):
    """What a relocation computes."""

    POINTER = auto()  # S + A as an absolute address: needs a dynamic relocation
    ABSOLUTE = auto()  # S + A, of which only bits that the load address cannot change are used
    RELATIVE = auto()  # S + A - P
    PAGE = auto()  # page(S + A) - page(P)
    SLOT = auto()  # G + A
    SLOT_RELATIVE = auto()  # G + A - P
    SLOT_PAGE = auto()  # page(G + A) - page(P)
    PAIRED = auto()  # what the relocation at address S computed (low half of a RISC-V pair)
    IGNORED = auto()


USES_SLOT = frozenset({Value.SLOT, Value.SLOT_RELATIVE, Value.SLOT_PAGE})


@dataclass(frozen=True)
class Rule:
    value: Value
    patch: Patch | None = None


@dataclass(frozen=True)
class Machine:
    """How one architecture relocates, imports, and aligns."""

    name: str
    relative: int
    """Dynamic relocation 'load address + addend'."""
    glob_dat: int
    """Dynamic relocation 'address of the symbol'."""
    page_bytes: int
    """The largest page that a kernel of this architecture uses."""
    stub_bytes: int
    make_stub: Callable[[int, int], bytes]
    """(address of the stub, address of the slot) -> code that jumps to what the slot holds."""
    rules: Mapping[int, Rule]


def _fits(value: int, bits: int) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise OverflowError(f"{value:#x} does not fit in {bits} signed bits")
    return value


def _plain(bits: int) -> Patch:
    mask, size = (1 << bits) - 1, bits // 8

    def patch(image: bytearray, at: int, value: int) -> None:
        image[at : at + size] = (_fits(value, bits) & mask).to_bytes(size, "little")

    return patch


def _word(image: bytearray, at: int, keep: int, bits: int) -> None:
    old = struct.unpack_from("<I", image, at)[0]
    struct.pack_into("<I", image, at, (old & keep) | (bits & ~keep & 0xFFFFFFFF))


# --- x86-64 -----------------------------------------------------------------------------------------------------------


def _x86_stub(address: int, slot: int) -> bytes:
    return b"\xff\x25" + struct.pack("<i", slot - (address + 6)) + b"\xcc\xcc"  # jmp *slot(%rip); int3; int3


X86_64 = Machine(
    name="x86_64",
    relative=8,
    glob_dat=6,
    page_bytes=0x1000,
    stub_bytes=8,
    make_stub=_x86_stub,
    rules={
        1: Rule(Value.POINTER),  # R_X86_64_64
        2: Rule(Value.RELATIVE, _plain(32)),  # PC32
        4: Rule(Value.RELATIVE, _plain(32)),  # PLT32
        24: Rule(Value.RELATIVE, _plain(64)),  # PC64
        9: Rule(Value.SLOT_RELATIVE, _plain(32)),  # GOTPCREL
        41: Rule(Value.SLOT_RELATIVE, _plain(32)),  # GOTPCRELX
        42: Rule(Value.SLOT_RELATIVE, _plain(32)),  # REX_GOTPCRELX
    },
)

# --- AArch64 ----------------------------------------------------------------------------------------------------------


def _arm_adr(image: bytearray, at: int, value: int, shift: int = 0) -> None:
    value = _fits(value >> shift, 21)
    _word(image, at, 0x9F00001F, (value & 3) << 29 | ((value >> 2) & 0x7FFFF) << 5)


def _arm_adrp(image: bytearray, at: int, value: int) -> None:
    _arm_adr(image, at, value, shift=12)


def _arm_low12(scale: int) -> Patch:
    def patch(image: bytearray, at: int, value: int) -> None:
        low = value & 0xFFF
        if low & ((1 << scale) - 1):
            raise OverflowError(f"{low:#x} is not aligned to {1 << scale} bytes")
        _word(image, at, 0xFFC003FF, (low >> scale) << 10)

    return patch


def _arm_branch(bits: int, position: int) -> Patch:
    mask = ((1 << bits) - 1) << position

    def patch(image: bytearray, at: int, value: int) -> None:
        _word(image, at, ~mask & 0xFFFFFFFF, ((_fits(value, bits + 2) >> 2) << position) & mask)

    return patch


def _arm_stub(address: int, slot: int) -> bytes:
    code = bytearray(struct.pack("<4I", 0x90000010, 0xF9400210, 0xD61F0200, 0xD503201F))  # adrp, ldr, br x16; nop
    _arm_adrp(code, 0, (slot & ~0xFFF) - (address & ~0xFFF))
    _arm_low12(3)(code, 4, slot)
    return bytes(code)


AARCH64 = Machine(
    name="aarch64",
    relative=1027,
    glob_dat=1025,
    page_bytes=0x10000,
    stub_bytes=16,
    make_stub=_arm_stub,
    rules={
        257: Rule(Value.POINTER),  # ABS64
        260: Rule(Value.RELATIVE, _plain(64)),  # PREL64
        261: Rule(Value.RELATIVE, _plain(32)),  # PREL32
        314: Rule(Value.RELATIVE, _plain(32)),  # PLT32
        273: Rule(Value.RELATIVE, _arm_branch(19, 5)),  # LD_PREL_LO19
        274: Rule(Value.RELATIVE, _arm_adr),  # ADR_PREL_LO21
        275: Rule(Value.PAGE, _arm_adrp),  # ADR_PREL_PG_HI21
        277: Rule(Value.ABSOLUTE, _arm_low12(0)),  # ADD_ABS_LO12_NC
        278: Rule(Value.ABSOLUTE, _arm_low12(0)),  # LDST8_ABS_LO12_NC
        284: Rule(Value.ABSOLUTE, _arm_low12(1)),  # LDST16
        285: Rule(Value.ABSOLUTE, _arm_low12(2)),  # LDST32
        286: Rule(Value.ABSOLUTE, _arm_low12(3)),  # LDST64
        299: Rule(Value.ABSOLUTE, _arm_low12(4)),  # LDST128
        279: Rule(Value.RELATIVE, _arm_branch(14, 5)),  # TSTBR14
        280: Rule(Value.RELATIVE, _arm_branch(19, 5)),  # CONDBR19
        282: Rule(Value.RELATIVE, _arm_branch(26, 0)),  # JUMP26
        283: Rule(Value.RELATIVE, _arm_branch(26, 0)),  # CALL26
        311: Rule(Value.SLOT_PAGE, _arm_adrp),  # ADR_GOT_PAGE
        312: Rule(Value.SLOT, _arm_low12(3)),  # LD64_GOT_LO12_NC
    },
)

# --- RISC-V -----------------------------------------------------------------------------------------------------------


def _rv_high20(image: bytearray, at: int, value: int) -> None:
    # The low half is sign-extended by the second instruction, so the high half is rounded.
    _word(image, at, 0xFFF, (_fits(value, 32) + 0x800) & 0xFFFFF000)


def _rv_low12_i(image: bytearray, at: int, value: int) -> None:
    _word(image, at, 0xFFFFF, (value & 0xFFF) << 20)


def _rv_low12_s(image: bytearray, at: int, value: int) -> None:
    _word(image, at, 0x1FFF07F, ((value >> 5) & 0x7F) << 25 | (value & 0x1F) << 7)


def _rv_call(image: bytearray, at: int, value: int) -> None:
    _rv_high20(image, at, value)
    _rv_low12_i(image, at + 4, value)


def _rv_jal(image: bytearray, at: int, v: int) -> None:
    _fits(v, 21)
    _word(image, at, 0xFFF, (v >> 20 & 1) << 31 | (v >> 1 & 0x3FF) << 21 | (v >> 11 & 1) << 20 | (v >> 12 & 0xFF) << 12)


def _rv_branch(image: bytearray, at: int, v: int) -> None:
    _fits(v, 13)
    _word(image, at, 0x1FFF07F, (v >> 12 & 1) << 31 | (v >> 5 & 0x3F) << 25 | (v >> 1 & 0xF) << 8 | (v >> 11 & 1) << 7)


def _rv_compressed(bits: int, fields: tuple[tuple[int, int], ...]) -> Patch:
    """A 16-bit jump or branch; `fields` are (bit of the value, bit of the instruction)."""
    mask = sum(1 << to for _, to in fields)

    def patch(image: bytearray, at: int, value: int) -> None:
        _fits(value, bits)
        old = struct.unpack_from("<H", image, at)[0]
        new = sum((value >> bit & 1) << to for bit, to in fields)
        struct.pack_into("<H", image, at, (old & ~mask & 0xFFFF) | new)

    return patch


def _rv_accumulate(bits: int, sign: int) -> Patch:
    size, mask = bits // 8, (1 << bits) - 1

    def patch(image: bytearray, at: int, value: int) -> None:
        old = int.from_bytes(image[at : at + size], "little")
        image[at : at + size] = ((old + sign * value) & mask).to_bytes(size, "little")

    return patch


def _rv_set(bits: int) -> Patch:
    size, mask = bits // 8, (1 << bits) - 1

    def patch(image: bytearray, at: int, value: int) -> None:
        image[at : at + size] = (value & mask).to_bytes(size, "little")

    return patch


def _rv_stub(address: int, slot: int) -> bytes:
    code = bytearray(struct.pack("<4I", 0x00000E17, 0x000E3E03, 0x000E0067, 0x00000013))  # auipc, ld, jr t3; nop
    _rv_call(code, 0, slot - address)
    return bytes(code)


_RVC_JUMP = ((11, 12), (4, 11), (9, 10), (8, 9), (10, 8), (6, 7), (7, 6), (3, 5), (2, 4), (1, 3), (5, 2))
_RVC_BRANCH = ((8, 12), (4, 11), (3, 10), (7, 6), (6, 5), (2, 4), (1, 3), (5, 2))

RISCV64 = Machine(
    name="riscv64",
    relative=3,
    glob_dat=2,  # R_RISCV_64 against a symbol; RISC-V has no GLOB_DAT
    page_bytes=0x1000,
    stub_bytes=16,
    make_stub=_rv_stub,
    rules={
        2: Rule(Value.POINTER),  # 64
        16: Rule(Value.RELATIVE, _rv_branch),  # BRANCH
        17: Rule(Value.RELATIVE, _rv_jal),  # JAL
        18: Rule(Value.RELATIVE, _rv_call),  # CALL
        19: Rule(Value.RELATIVE, _rv_call),  # CALL_PLT
        20: Rule(Value.SLOT_RELATIVE, _rv_high20),  # GOT_HI20
        23: Rule(Value.RELATIVE, _rv_high20),  # PCREL_HI20
        24: Rule(Value.PAIRED, _rv_low12_i),  # PCREL_LO12_I
        25: Rule(Value.PAIRED, _rv_low12_s),  # PCREL_LO12_S
        33: Rule(Value.ABSOLUTE, _rv_accumulate(8, 1)),  # ADD8 .. SUB64 come in pairs, so the load address cancels
        34: Rule(Value.ABSOLUTE, _rv_accumulate(16, 1)),
        35: Rule(Value.ABSOLUTE, _rv_accumulate(32, 1)),
        36: Rule(Value.ABSOLUTE, _rv_accumulate(64, 1)),
        37: Rule(Value.ABSOLUTE, _rv_accumulate(8, -1)),
        38: Rule(Value.ABSOLUTE, _rv_accumulate(16, -1)),
        39: Rule(Value.ABSOLUTE, _rv_accumulate(32, -1)),
        40: Rule(Value.ABSOLUTE, _rv_accumulate(64, -1)),
        44: Rule(Value.RELATIVE, _rv_compressed(9, _RVC_BRANCH)),  # RVC_BRANCH
        45: Rule(Value.RELATIVE, _rv_compressed(12, _RVC_JUMP)),  # RVC_JUMP
        51: Rule(Value.IGNORED),  # RELAX: a hint
        54: Rule(Value.ABSOLUTE, _rv_set(8)),  # SET8
        55: Rule(Value.ABSOLUTE, _rv_set(16)),  # SET16
        56: Rule(Value.ABSOLUTE, _rv_set(32)),  # SET32
        57: Rule(Value.RELATIVE, _plain(32)),  # 32_PCREL
        59: Rule(Value.RELATIVE, _plain(32)),  # PLT32
    },
)

MACHINES = {62: X86_64, 183: AARCH64, 243: RISCV64}
"""By ELF machine number."""
