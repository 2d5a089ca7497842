"""How the compiler writes VM functions: `ProgramBuilder` collects a program, `Assembler` writes one function.

`Assembler` has one method for every row of `isa.OPS`, with the operands of the row as parameters. A destination may be
None: a fresh register is made. The method returns the destination (a tuple when there are several). Names that Python
keeps for itself get an underscore: `and_`, `or_`, `return_`.

    builder = ProgramBuilder()
    exe = builder.executable(ExecutableRef("cpu", "elf-x86_64", (Export("add4", bindings=3),)))
    asm = builder.function("main", Signature((TensorSpec("x", "f32", (4,)), TensorSpec("y", "f32", (4,))),
                                             (TensorSpec("sum", "f32", (4,)),)))
    out = asm.buffer_alloc(None, asm.const(16), Alloc.RESULT)
    cmd, recorded = asm.global_load(None, 0), asm.label()
    ...
    asm.cmd_dispatch(cmd, exe, 0, asm.const(1), asm.const(1), asm.const(1), [], [Slot(0), Slot(1), Slot(2, access=...)])
    ...
    asm.return_()
    program = builder.finish()

`asm.const(n)` keeps one register for each number and sets it at the function's entry, so it is valid everywhere.
"""

from __future__ import annotations

import keyword
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eyas.errors import ModuleError
from eyas.module import isa
from eyas.module.isa import Access, Kind, Op
from eyas.module.program import ExecutableRef, Function, Parameter, Program, State
from eyas.module.signature import Signature


class I64(int):
    """An i64 register."""

    def __repr__(self) -> str:
        return f"i{int(self)}"


class Ref(int):
    """A reference register."""

    def __repr__(self) -> str:
        return f"r{int(self)}"


class Label:
    """A place in the code; made by `Assembler.label`, put there by `Assembler.bind`."""

    def __init__(self) -> None:
        self.offset: int | None = None


@dataclass(frozen=True)
class Direct:
    """A binding that is fixed when the command is recorded: a span of the buffer in `ref`."""

    ref: Ref
    offset: I64 | None = None
    length: I64 | None = None
    access: Access = Access.READ


@dataclass(frozen=True)
class Slot:
    """A binding that is looked up in the table of every submit: a span of the buffer in slot `slot`."""

    slot: int
    offset: I64 | None = None
    length: I64 | None = None
    access: Access = Access.READ


class Assembler:
    """Writes one function. See the module's docstring; `finish` is called by `ProgramBuilder.finish`."""

    def __init__(self, builder: ProgramBuilder, name: str, signature: Signature) -> None:
        self.builder, self.name, self.signature = builder, name, signature
        self._code = bytearray()
        self._fixups: list[tuple[int, Label]] = []
        self._constants: dict[int, I64] = {}
        self._last_op: Op | None = None
        self._i64_count = 0
        self._ref_count = 0

    # Registers, constants, labels.

    def i64(self) -> I64:
        """A fresh i64 register."""
        self._i64_count += 1
        if self._i64_count > isa.MAX_REGISTERS:
            raise ModuleError(f"function {self.name!r} needs more than {isa.MAX_REGISTERS} i64 registers")
        return I64(self._i64_count - 1)

    def ref(self) -> Ref:
        """A fresh reference register."""
        self._ref_count += 1
        if self._ref_count > isa.MAX_REGISTERS:
            raise ModuleError(f"function {self.name!r} needs more than {isa.MAX_REGISTERS} reference registers")
        return Ref(self._ref_count - 1)

    def const(self, value: int) -> I64:
        """A register that holds `value` from the function's entry on. Do not write to it."""
        value = (value + 2**63) % 2**64 - 2**63
        if value not in self._constants:
            self._constants[value] = self.i64()
        return self._constants[value]

    def label(self) -> Label:
        """A label, to be bound later or at once."""
        return Label()

    def bind(self, label: Label) -> Label:
        """Puts a label here."""
        if label.offset is not None:
            raise ModuleError(f"function {self.name!r}: a label is bound twice")
        label.offset = len(self._code)
        return label

    # Encoding.

    def emit(self, op: Op, operands: Sequence[Any]) -> Any:
        """Appends one instruction; the generated methods call this."""
        if len(operands) != len(op.operands):
            raise ModuleError(f"{op.name}: {len(operands)} operands given, it takes {len(op.operands)}")
        code = bytearray(struct.pack("<H", op.code))
        fixups: list[tuple[int, Label]] = []
        results: list[Any] = []
        for operand, value in zip(op.operands, operands, strict=True):
            where = f"{self.name}: {op.name}: {operand.name}"
            if operand.is_list:
                if operand.is_dst and isinstance(value, int):
                    value = [None] * value
                elements = [self._operand(operand.kind, v, where) for v in value]
                code += struct.pack("<H", len(elements)) + b"".join(data for data, _ in elements)
                written: Any = tuple(v for _, v in elements)
            else:
                if operand.kind is Kind.LABEL:
                    fixups.append((len(self._code) + len(code), value))
                data, written = self._operand(operand.kind, value, where)
                code += data
            if operand.is_dst:
                results.append(written)
        self._code += code
        self._fixups += fixups
        self._last_op = op
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def _operand(self, kind: Kind, value: Any, where: str) -> tuple[bytes, Any]:
        if kind is Kind.I64_DST and value is None:
            value = self.i64()
        elif kind is Kind.REF_DST and value is None:
            value = self.ref()
        if kind in (Kind.I64, Kind.I64_DST) or (kind is Kind.I64_OPTIONAL and value is not None):
            return self._register(value, I64, self._i64_count, where), value
        if kind in (Kind.REF, Kind.REF_DST):
            return self._register(value, Ref, self._ref_count, where), value
        if kind is Kind.I64_OPTIONAL:
            return struct.pack("<H", isa.NO_REGISTER), value
        if kind is Kind.LABEL:
            if not isinstance(value, Label):
                raise ModuleError(f"{where}: {value!r} is not a label; make one with label()")
            return bytes(4), value  # filled in by finish
        if kind is Kind.BINDING:
            direct = isinstance(value, Direct)
            if not direct and not isinstance(value, Slot):
                raise ModuleError(f"{where}: {value!r} is not a binding; give Direct(ref, ...) or Slot(number, ...)")
            data = struct.pack("<HH", 0 if direct else 1, int(value.access))
            if direct:
                data += self._register(value.ref, Ref, self._ref_count, where)
            else:
                data += struct.pack("<H", value.slot)
            for register in (value.offset, value.length):
                data += self._operand(Kind.I64_OPTIONAL, register, where)[0]
            return data, value
        assert value is not None, where
        if kind is Kind.STRING and isinstance(value, str):
            value = self.builder.string(value)
        elif kind is Kind.TABLE and not isinstance(value, int):
            value = self.builder.table(value)
        elif kind is Kind.GLOBAL:
            self.builder.reserve_global(value)
        layout = {1: "<H", 2: "<I", 4: "<q"}[isa.UNITS[kind]]
        try:
            return struct.pack(layout, value), value
        except struct.error as error:
            raise ModuleError(f"{where}: {value!r} does not fit: {error}") from error

    def _register(self, value: Any, bank: type, count: int, where: str) -> bytes:
        if not isinstance(value, bank):
            raise ModuleError(f"{where}: {value!r} is not a register of the {bank.__name__} bank")
        if value >= count:
            raise ModuleError(f"{where}: register {value!r} was not made by this function's assembler")
        return struct.pack("<H", value)

    def finish(self) -> Function:
        """The function. Adds a `return` when the code could run off its end."""
        prologue = bytearray()
        for value, register in self._constants.items():
            prologue += struct.pack("<HHq", isa.BY_NAME["const_i64"].code, register, value)
        code = bytearray(self._code)
        at_end = any(label.offset == len(code) for _, label in self._fixups)
        if at_end or not (self._last_op and self._last_op.terminator):
            code += struct.pack("<H", isa.BY_NAME["return"].code)
        for at, label in self._fixups:
            if label.offset is None:
                raise ModuleError(f"function {self.name!r}: a branch goes to a label that was never bound")
            struct.pack_into("<I", code, at, label.offset + len(prologue))
        return Function(self.name, self.signature, bytes(prologue + code), self._i64_count, self._ref_count)

    # The table's methods are attached below; this tells type checkers that they exist.
    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"Assembler has no instruction {name!r}; see eyas.module.isa.OPS")


def method_name(op: Any) -> str:
    """The assembler's method of an instruction."""
    return op.name + "_" if keyword.iskeyword(op.name) else op.name


def attach_methods(cls: type, ops: Sequence[Any]) -> None:
    """Gives a class one method for each row of a table, with named parameters and the row's text as docstring; each
    calls `emit(op, operands)`."""
    for op in ops:
        names = [operand.name for operand in op.operands]
        arguments = ", ".join(
            name + ("=()" if getattr(operand, "is_list", False) and operand is op.operands[-1] else "")
            for name, operand in zip(names, op.operands, strict=True)
        )
        head = f"def {method_name(op)}(self{', ' if names else ''}{arguments}):"
        source = f"{head}\n    return self.emit(_op, [{', '.join(names)}])"
        scope: dict[str, Any] = {"_op": op}
        exec(source, scope)  # noqa: S102 - our own table, so that signatures and help() are real
        method = scope[method_name(op)]
        method.__doc__ = op.doc
        setattr(cls, method_name(op), method)


attach_methods(Assembler, isa.OPS)


class ProgramBuilder:
    """Collects the parts of a program; equal strings and tables are kept once."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {}
        self._tables: dict[tuple[int, ...], int] = {}
        self._executables: list[ExecutableRef] = []
        self._parameters: list[Parameter] = []
        self._states: list[State] = []
        self._assemblers: list[Assembler] = []
        self._global_count = 0

    def string(self, text: str) -> int:
        """The ordinal of a message. Instructions also take the text itself."""
        return self._strings.setdefault(text, len(self._strings))

    def table(self, values: Sequence[int]) -> int:
        """The ordinal of a table of i64. Instructions also take the values themselves."""
        return self._tables.setdefault(tuple(int(v) for v in values), len(self._tables))

    def executable(self, executable: ExecutableRef) -> int:
        """Adds an executable; the result is what `cmd_dispatch` takes."""
        self._executables.append(executable)
        return len(self._executables) - 1

    def parameter(self, parameter: Parameter) -> int:
        """Adds a parameter; the result is what `param` takes."""
        self._parameters.append(parameter)
        return len(self._parameters) - 1

    def state(self, state: State) -> int:
        """Adds a state variable; the result is what the instruction `state` takes."""
        self._states.append(state)
        return len(self._states) - 1

    def new_global(self) -> int:
        """A fresh global slot."""
        self._global_count += 1
        return self._global_count - 1

    def reserve_global(self, slot: int) -> None:
        """Makes sure that a slot exists that was named by number."""
        self._global_count = max(self._global_count, slot + 1)

    def function(self, name: str, signature: Signature) -> Assembler:
        """Starts a function; write it through the assembler."""
        assembler = Assembler(self, name, signature)
        self._assemblers.append(assembler)
        return assembler

    def finish(self) -> Program:
        """The program, with every function closed."""
        functions = tuple(assembler.finish() for assembler in self._assemblers)
        return Program(
            functions,
            tuple(self._executables),
            tuple(self._parameters),
            tuple(self._strings),
            tuple(self._tables),
            self._global_count,
            tuple(self._states),
        )


def iterate(code: bytes) -> Iterator[tuple[int, Op, list[Any]]]:
    """(byte offset, instruction, operands) of every instruction. Labels come as byte offsets."""
    at = 0

    def unit() -> int:
        nonlocal at
        if at + 2 > len(code):
            raise ModuleError(f"the code ends inside an instruction, at byte {at}")
        at += 2
        return struct.unpack_from("<H", code, at - 2)[0]

    def operand(kind: Kind) -> Any:
        units = [unit() for _ in range(isa.UNITS[kind])]
        if kind is Kind.BINDING:
            offset, length = (None if u == isa.NO_REGISTER else I64(u) for u in units[3:])
            if units[0] == 0:
                return Direct(Ref(units[2]), offset, length, Access(units[1]))
            return Slot(units[2], offset, length, Access(units[1]))
        value = sum(u << (16 * n) for n, u in enumerate(units))
        if kind is Kind.IMM64:
            return (value + 2**63) % 2**64 - 2**63
        if kind is Kind.I64_OPTIONAL and value == isa.NO_REGISTER:
            return None
        if kind in (Kind.I64, Kind.I64_DST, Kind.I64_OPTIONAL):
            return I64(value)
        if kind in (Kind.REF, Kind.REF_DST):
            return Ref(value)
        return value

    while at < len(code):
        start = at
        number = unit()
        if number not in isa.BY_CODE:
            raise ModuleError(f"byte {start}: 0x{number:04X} is not an instruction")
        op = isa.BY_CODE[number]
        operands = [[operand(o.kind) for _ in range(unit())] if o.is_list else operand(o.kind) for o in op.operands]
        yield start, op, operands


def disassemble(program: Program) -> str:
    """The program as text, for people."""
    out = []
    for index, executable in enumerate(program.executables):
        features = f" +{',+'.join(executable.features)}" if executable.features else ""
        out.append(f"executable {index} {executable.name!r} {executable.format}{features}")
        for number, export in enumerate(executable.exports):
            out.append(f"  export {number} {export.name} bindings={export.bindings} constants={export.constants}")
    for index, parameter in enumerate(program.parameters):
        shape = ",".join(str(d) for d in parameter.shape)
        place = f"{parameter.external}:{parameter.key}" if parameter.external else f"@{parameter.offset}"
        out.append(f"parameter {index} {parameter.name!r} {parameter.dtype}[{shape}] {place}")
    for index, state in enumerate(program.states):
        shape = ",".join(str(d) for d in state.shape)
        first = "zeros" if state.parameter is None else f"parameter {state.parameter}"
        out.append(f"state {index} {state.name!r} {state.dtype}[{shape}] starts as {first}")
    if program.global_count:
        out.append(f"globals {program.global_count}")
    for function in program.functions:
        out.append(f"function {function.name}{function.signature}")
        instructions = list(iterate(function.code))
        targets = {
            value
            for _, op, operands in instructions
            for o, value in zip(op.operands, operands, strict=True)
            if o.kind is Kind.LABEL
        }
        for at, op, operands in instructions:
            if at in targets:
                out.append(f" L{at}:")
            texts = [_show(program, o.kind, v, o.is_list) for o, v in zip(op.operands, operands, strict=True)]
            count = sum(o.is_dst for o in op.operands)
            left = f"{', '.join(texts[:count])} = " if count else ""
            out.append(f"  {at:6d}  {left}{op.name} {', '.join(texts[count:])}".rstrip())
    return "\n".join(out) + "\n"


def _show(program: Program, kind: Kind, value: Any, is_list: bool = False) -> str:
    if is_list:
        return "[" + ", ".join(_show(program, kind, v) for v in value) + "]"
    if kind is Kind.LABEL:
        return f"L{value}"
    if kind is Kind.STRING and value < len(program.strings):
        return repr(program.strings[value])
    if kind is Kind.TABLE and value < len(program.tables):
        return str(list(program.tables[value]))
    if kind is Kind.ALLOC:
        return isa.Alloc(value).name.lower()
    if kind is Kind.ELEMENT:
        return isa.Element(value).name.lower()
    if kind is Kind.BINDING:
        access = {1: "ro", 2: "wo", 3: "rw"}.get(int(value.access), "?")
        place = repr(value.ref) if isinstance(value, Direct) else f"slot{value.slot}"
        length = "" if value.length is None else f":{value.length!r}"
        offset = "" if value.offset is None else repr(value.offset)
        return f"{access} {place}[{offset}{length}]" if offset or length else f"{access} {place}"
    return repr(value)
