"""How the compiler writes functions of VMVX, the portable target.

`Assembler` has one method for every row of `vmvx_isa.OPS`, with the operands of the row as parameters. A destination
may be None: a fresh register is made. The method returns the destination. Names that Python keeps for itself get an
underscore: `and_`, `or_`, `return_`; so does `const_`, the instruction, as `const(n)` is what one wants.

    asm = Assembler("twice", bindings=2, constants=0, writes=[1])
    with asm.loop_over(asm.const(0), asm.const(4)) as i:
        x = asm.load_at(None, source, i, Memory.F32)
        asm.store_at(asm.fadd_f32(None, x, x), target, i, Memory.F32)
    record = asm.finish().encode()

Registers are as many as one likes; `finish` drops instructions that nobody reads the result of, and gives registers
their places by when they are live. `asm.const(n)` keeps one register for each number and sets it at the function's
entry, so it is valid everywhere; so do `binding_address`, `data_address` and `push_constant`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eyas.errors import ModuleError
from eyas.module import vmvx_isa as isa
from eyas.module.assembler import Label, attach_methods, method_name
from eyas.module.vmvx_executable import LAYOUTS, Function
from eyas.module.vmvx_isa import Kind, Op
from eyas.module.vmvx_registers import Instruction, allocate, drop_unread, fold_moves, reads_what_it_writes

__all__ = ["Assembler", "Label", "Scalar", "Tile", "method_name"]


class Scalar(int):
    """A scalar register, by the assembler's own number."""

    def __repr__(self) -> str:
        return f"s{int(self)}"


class Tile(int):
    """A tile register, by the assembler's own number."""

    def __repr__(self) -> str:
        return f"t{int(self)}"


_BANKS = {Kind.SCALAR: Scalar, Kind.SCALAR_DST: Scalar, Kind.TILE: Tile, Kind.TILE_DST: Tile}


class Assembler:
    """Writes one function. See the module's docstring."""

    def __init__(self, name: str, bindings: int, constants: int = 0, writes: Iterable[int] = ()) -> None:
        self.name, self.bindings, self.constants = name, bindings, constants
        self.writes = sum(1 << binding for binding in set(writes))
        self._entry: dict[tuple[Any, ...], Scalar] = {}
        self._entry_code: list[tuple[Op, list[Any]]] = []
        self._code: list[tuple[Op, list[Any]]] = []
        self._data = bytearray()
        self._data_offsets: dict[tuple[bytes, int], int] = {}
        self._registers: list[Scalar | Tile] = []

    # Registers, constants, labels, data.

    def scalar(self) -> Scalar:
        """A fresh scalar register."""
        self._registers.append(Scalar(len(self._registers)))
        return self._registers[-1]  # type: ignore[return-value]

    def tile(self) -> Tile:
        """A fresh tile register."""
        self._registers.append(Tile(len(self._registers)))
        return self._registers[-1]  # type: ignore[return-value]

    def const(self, value: int) -> Scalar:
        """A register that holds `value` from the function's entry on. Do not write to it."""
        return self.at_entry("const", (value + 2**63) % 2**64 - 2**63)

    def const_f32(self, value: float) -> Scalar:
        """As `const`, for the bits of an f32."""
        return self.const(struct.unpack("<I", struct.pack("<f", value))[0])

    def const_f64(self, value: float) -> Scalar:
        """As `const`, for the bits of an f64."""
        return self.const(struct.unpack("<q", struct.pack("<d", value))[0])

    def binding_address(self, index: int) -> Scalar:
        """The address of a binding, read once at entry."""
        return self.at_entry("binding", index)

    def push_constant(self, index: int) -> Scalar:
        """A push constant of the dispatch, read once at entry."""
        return self.at_entry("constant", index)

    def data_address(self, data: bytes, alignment: int = 16) -> Scalar:
        """The address of constant data, made at entry."""
        return self.at_entry("data", self.data_offset(data, alignment))

    def at_entry(self, name: str, *operands: Any) -> Scalar:
        """The result of an instruction that runs once, before all others; equal ones share a register."""
        key = (name, *operands)
        if key not in self._entry:
            self._entry[key] = self._emit(self._entry_code, isa.BY_NAME[name], [None, *operands])
        return self._entry[key]

    def local_at_entry(self, size: int) -> Scalar:
        """The address of memory of the workgroup's own, given once before all other instructions."""
        return self._emit(self._entry_code, isa.BY_NAME["local"], [None, self.const(size)])

    def data_offset(self, data: bytes, alignment: int = 16) -> int:
        """Adds constant data, once, and returns where it is; `data(None, offset)` gives the address."""
        key = (bytes(data), alignment)
        if key not in self._data_offsets:
            self._data += bytes(-len(self._data) % alignment)
            self._data_offsets[key] = len(self._data)
            self._data += data
        return self._data_offsets[key]

    def label(self) -> Label:
        """A label, to be bound later or at once."""
        return Label()

    def bind(self, label: Label) -> Label:
        """Puts a label here."""
        if label.offset is not None:
            raise ModuleError(f"function {self.name!r}: a label is bound twice")
        label.offset = len(self._code)
        return label

    @contextmanager
    def loop_over(
        self, first: Scalar, limit: Scalar, step: Scalar | None = None, at_least_once: bool = False
    ) -> Iterator[Scalar]:
        """A counted loop around what is written inside; gives its index. The step, 1 by default, must be above 0."""
        index = self.mov(None, first)
        end, top = self.label(), self.label()
        if not at_least_once:
            self.br_ifnot(self.lts(None, index, limit), end)
        self.bind(top)
        yield index
        self.loop(index, self.const(1) if step is None else step, limit, top)
        self.bind(end)

    # Encoding.

    def emit(self, op: Op, operands: Sequence[Any]) -> Any:
        """Appends one instruction; the generated methods call this."""
        return self._emit(self._code, op, operands)

    def _emit(self, code: list[tuple[Op, list[Any]]], op: Op, operands: Sequence[Any]) -> Any:
        if len(operands) != len(op.operands):
            raise ModuleError(f"{op.name}: {len(operands)} operands given, it takes {len(op.operands)}")
        values, result = [], None
        for operand, value in zip(op.operands, operands, strict=True):
            where = f"{self.name}: {op.name}: {operand.name}"
            if operand.is_dst and value is None:
                if reads_what_it_writes(op):
                    raise ModuleError(f"{where}: it is read too, so it must be given")
                value = self.scalar() if operand.kind is Kind.SCALAR_DST else self.tile()
            if operand.is_dst:
                result = value
            self._check(operand.kind, value, where)
            values.append(value)
        code.append((op, values))
        return result

    def _check(self, kind: Kind, value: Any, where: str) -> None:
        if kind in _BANKS:
            if not isinstance(value, _BANKS[kind]):
                raise ModuleError(f"{where}: {value!r} is not a {_BANKS[kind].__name__.lower()} register")
            if value >= len(self._registers) or type(self._registers[value]) is not type(value):
                raise ModuleError(f"{where}: register {value!r} was not made by this function's assembler")
        elif kind is Kind.LABEL:
            if not isinstance(value, Label):
                raise ModuleError(f"{where}: {value!r} is not a label; make one with label()")
        else:
            try:
                struct.pack(LAYOUTS[kind], value)
            except struct.error as error:
                raise ModuleError(f"{where}: {value!r} does not fit: {error}") from error

    def finish(self) -> Function:
        """The function. Adds a `return` when the code could run off its end."""
        code = self._numbered()
        code = _renumbered(code, drop_unread(code))
        code = _renumbered(code, fold_moves(code))
        scalars = {int(register) for register in self._registers if isinstance(register, Scalar)}
        places = allocate(code, scalars)
        counts = [
            1 + max((p for r, p in places.items() if (r in scalars) is bank), default=-1) for bank in (True, False)
        ]
        for what, count, limit in zip(("scalar", "tile"), counts, (isa.MAX_SCALARS, isa.MAX_TILES), strict=True):
            if count > limit:
                raise ModuleError(f"function {self.name!r} needs {count} {what} registers at a time; there are {limit}")
        encoded = _encode(code, places)
        return Function(
            self.name, counts[0], counts[1], self.bindings, self.constants, self.writes, bytes(self._data), encoded
        )

    def _numbered(self) -> list[Instruction]:
        """All instructions, with the number of an instruction for each label."""
        code = [*self._entry_code, *self._code]
        ends = {len(code)} & {
            len(self._entry_code) + v.offset
            for _, values in code
            for v in values
            if isinstance(v, Label) and v.offset is not None
        }
        if ends or not code or not code[-1][0].terminator:
            code.append((isa.BY_NAME["return"], []))

        def resolve(value: Any) -> int:
            if not isinstance(value, Label):
                return int(value)
            if value.offset is None:
                raise ModuleError(f"function {self.name!r}: a branch goes to a label that was never bound")
            return value.offset + len(self._entry_code)

        return [Instruction(op, [resolve(value) for value in values]) for op, values in code]

    # The table's methods are attached below; this tells type checkers that they exist.
    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"Assembler has no instruction {name!r}; see eyas.module.vmvx_isa.OPS")


attach_methods(Assembler, [op for op in isa.OPS if op.name != "const"])


def _renumbered(code: list[Instruction], kept: list[bool]) -> list[Instruction]:
    """The kept instructions, their labels moved along."""
    numbers, count = [], 0
    for keep in kept:
        numbers.append(count)
        count += keep
    made = []
    for instruction in (one for one, keep in zip(code, kept, strict=True) if keep):
        operands = [
            numbers[value] if o.kind is Kind.LABEL else value
            for o, value in zip(instruction.op.operands, instruction.operands, strict=True)
        ]
        made.append(Instruction(instruction.op, operands))
    return made


def _encode(code: list[Instruction], places: dict[int, int]) -> bytes:
    offsets, size = [], 0
    for instruction in code:
        offsets.append(size)
        size += 2 + sum(2 * isa.UNITS[o.kind] for o in instruction.op.operands)
    out = bytearray()
    for instruction in code:
        out += struct.pack("<H", instruction.op.code)
        for operand, value in zip(instruction.op.operands, instruction.operands, strict=True):
            if operand.kind in _BANKS:
                value = places[value]
            elif operand.kind is Kind.LABEL:
                value = offsets[value]
            out += struct.pack(LAYOUTS[operand.kind], value)
    return bytes(out)
