"""The host program as data: functions, executables, parameters, strings, tables. `encode` writes it, `decode` reads it.

The file is little-endian: a header (magic, version, section count), a table of sections (id, offset, size), the
sections. Every section is a sequence of records without padding; `runtime/src/module/program.c` reads the same and
trusts nothing. Functions are written with `assembler.ProgramBuilder`.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from eyas.errors import ModuleError
from eyas.module.dtypes import DTYPE_NAMES, DTYPES
from eyas.module.signature import ANONYMOUS, Signature, Symbol, TensorSpec

MAGIC = b"EYASPRG\0"
VERSION = 1

_SECTIONS = ("strings", "tables", "executables", "parameters", "globals", "functions", "states")
_OPTIONAL = ("states",)  # written only when not empty, so that older runtimes read the rest
_ZEROS = 0xFFFF_FFFF


@dataclass(frozen=True)
class Function:
    """One VM function: encoded instructions and how many registers they use."""

    name: str
    signature: Signature
    code: bytes
    i64_registers: int
    ref_registers: int


@dataclass(frozen=True)
class Export:
    """One kernel of an executable: how many bindings and push constants every dispatch of it must give."""

    name: str
    bindings: int
    constants: int = 0


@dataclass(frozen=True)
class ExecutableRef:
    """One image of kernels, stored in the container as `executables/<name>.elf`, `.vmvx` or `.spirv`."""

    name: str
    format: str  # "elf-x86_64", "elf-aarch64", "elf-riscv64", "vmvx", "spirv"
    exports: tuple[Export, ...]
    features: tuple[str, ...] = ()  # what the code needs of a device: LLVM's names "avx2", "fma"; "f16", "threads=256"

    def __post_init__(self) -> None:
        object.__setattr__(self, "exports", tuple(self.exports))
        object.__setattr__(self, "features", tuple(self.features))

    @property
    def entry(self) -> str:
        """What the container calls it."""
        return f"executables/{self.name}.{self.format.partition('-')[0]}"


@dataclass(frozen=True)
class Parameter:
    """One weight: a span of the container's parameters.bin, or a tensor of an external safetensors file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0  # in parameters.bin; 0 when external
    external: str = ""  # file name, beside the module: "model.safetensors"
    key: str = ""  # the tensor's name in that file

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        if self.dtype not in DTYPES:
            raise ModuleError(f"parameter {self.name!r}: unknown dtype {self.dtype!r}; one of {', '.join(DTYPES)}")

    @property
    def bytes(self) -> int:
        count = 1
        for dim in self.shape:
            count *= dim
        return count * DTYPES[self.dtype][1]


@dataclass(frozen=True)
class State:
    """A variable that lives in a loaded module and that calls change."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    parameter: int | None = None  # ordinal of the parameter that holds the first value; None: zeros

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape))
        if self.dtype not in DTYPES:
            raise ModuleError(f"state {self.name!r}: unknown dtype {self.dtype!r}; one of {', '.join(DTYPES)}")

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * DTYPES[self.dtype][1]


@dataclass(frozen=True)
class Program:
    """All that the VM runs, less the machine code and the weights themselves."""

    functions: tuple[Function, ...] = ()
    executables: tuple[ExecutableRef, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    strings: tuple[str, ...] = ()
    tables: tuple[tuple[int, ...], ...] = ()
    global_count: int = 0
    states: tuple[State, ...] = ()

    def function(self, name: str) -> Function:
        for function in self.functions:
            if function.name == name:
                return function
        raise ModuleError(f"no function {name!r}; the program has: {', '.join(f.name for f in self.functions)}")


class _Writer:
    def __init__(self) -> None:
        self.out = bytearray()

    def u32(self, *values: int) -> None:
        for value in values:
            self.out += struct.pack("<I", value)

    def u64(self, value: int) -> None:
        self.out += struct.pack("<Q", value)

    def i64(self, *values: int) -> None:
        for value in values:
            self.out += struct.pack("<q", value)

    def blob(self, data: bytes) -> None:
        self.u32(len(data))
        self.out += data

    def text(self, text: str) -> None:
        if "\0" in text:
            raise ModuleError(f"the text {text!r} holds a NUL character; names and messages must not")
        self.blob(text.encode())

    def specs(self, specs: tuple[TensorSpec, ...], symbols: list[str]) -> None:
        self.u32(len(specs))
        for spec in specs:
            self.text(spec.name)
            self.u32(DTYPES[spec.dtype][0], len(spec.dims))
            for dim in spec.dims:
                # >= 0: a static size; -1: any size; -2 - n: symbol n.
                self.i64(dim if isinstance(dim, int) else -1 if dim == ANONYMOUS else -2 - symbols.index(dim))


def encode(program: Program) -> bytes:
    """The bytes of program.bin."""
    sections = {name: _Writer() for name in _SECTIONS}
    w = sections["strings"]
    w.u32(len(program.strings))
    for text in program.strings:
        w.text(text)
    w = sections["tables"]
    w.u32(len(program.tables))
    for table in program.tables:
        w.u32(len(table))
        w.i64(*table)
    w = sections["executables"]
    w.u32(len(program.executables))
    for executable in program.executables:
        w.text(executable.name)
        w.text(executable.format)
        w.u32(len(executable.features))
        for feature in executable.features:
            w.text(feature)
        w.u32(len(executable.exports))
        for export in executable.exports:
            w.text(export.name)
            w.u32(export.bindings, export.constants)
    w = sections["parameters"]
    w.u32(len(program.parameters))
    for parameter in program.parameters:
        w.text(parameter.name)
        w.u32(DTYPES[parameter.dtype][0], len(parameter.shape))
        w.i64(*parameter.shape)
        w.u64(parameter.offset)
        w.u64(parameter.bytes)
        w.text(parameter.external)
        w.text(parameter.key)
    w = sections["states"]
    w.u32(len(program.states))
    for state in program.states:
        w.text(state.name)
        w.u32(DTYPES[state.dtype][0], len(state.shape))
        w.i64(*state.shape)
        w.u32(_ZEROS if state.parameter is None else state.parameter)
    sections["globals"].u32(program.global_count)
    w = sections["functions"]
    w.u32(len(program.functions))
    for function in program.functions:
        symbols = list(function.signature.symbols)
        w.text(function.name)
        w.u32(len(symbols))
        for name, bounds in function.signature.symbols.items():
            w.text(name)
            w.i64(bounds.min, bounds.max, bounds.multiple)
        w.specs(function.signature.args, symbols)
        w.specs(function.signature.results, symbols)
        w.u32(function.i64_registers, function.ref_registers)
        w.blob(function.code)

    head = _Writer()
    head.out += MAGIC
    written = [name for name in _SECTIONS if name not in _OPTIONAL or program.states]
    head.u32(VERSION, len(written))
    position = len(head.out) + 24 * len(written)
    body = bytearray()
    for number, name in enumerate(written):
        data = sections[name].out
        head.u32(number + 1, 0)
        head.u64(position)
        head.u64(len(data))
        body += data
        position += len(data)
    return bytes(head.out + body)


class _Reader:
    def __init__(self, data: bytes, start: int, end: int, what: str) -> None:
        if not 0 <= start <= end <= len(data):
            raise ModuleError(f"program: the {what} end at byte {end}, past the file's {len(data)}; it is truncated")
        self.data, self.at, self.end, self.what = data, start, end, what

    def take(self, count: int) -> bytes:
        if count > self.end - self.at:
            raise ModuleError(f"program: the {self.what} end too early, at byte {self.end}; the file is damaged")
        self.at += count
        return self.data[self.at - count : self.at]

    def u32(self) -> int:
        return struct.unpack("<I", self.take(4))[0]

    def u64(self) -> int:
        return struct.unpack("<Q", self.take(8))[0]

    def i64(self) -> int:
        return struct.unpack("<q", self.take(8))[0]

    def blob(self) -> bytes:
        return bytes(self.take(self.u32()))

    def text(self) -> str:
        try:
            return self.blob().decode()
        except UnicodeDecodeError as error:
            raise ModuleError(f"program: a text of the {self.what} is not UTF-8; the file is damaged") from error

    def dtype(self) -> str:
        number = self.u32()
        if number not in DTYPE_NAMES:
            raise ModuleError(f"program: {number} is not the number of a dtype (1 to {max(DTYPE_NAMES)})")
        return DTYPE_NAMES[number]

    def specs(self, symbols: list[str]) -> tuple[TensorSpec, ...]:
        specs = []
        for _ in range(self.u32()):
            name, dtype = self.text(), self.dtype()
            dims: list[int | str] = []
            for _ in range(self.u32()):
                dim = self.i64()
                if dim < -1 - len(symbols):
                    raise ModuleError(f"program: tensor {name!r} names symbol {-2 - dim} of {len(symbols)}")
                dims.append(dim if dim >= 0 else ANONYMOUS if dim == -1 else symbols[-2 - dim])
            specs.append(TensorSpec(name, dtype, tuple(dims)))
        return tuple(specs)


def decode(data: bytes) -> Program:
    """The program of the bytes that `encode` wrote. Code is not verified here: the runtime does that on load."""
    data = bytes(data)
    if data[:8] != MAGIC:
        raise ModuleError(f"not a VM program: it starts with {data[:8]!r}, not {MAGIC!r}")
    head = _Reader(data, 8, len(data), "header")
    version, count = head.u32(), head.u32()
    if version != VERSION:
        raise ModuleError(f"the program has format version {version}; this Eyas reads version {VERSION}: recompile it")
    readers = {}
    for _ in range(count):
        number, _, offset, size = head.u32(), head.u32(), head.u64(), head.u64()
        if 1 <= number <= len(_SECTIONS):
            name = _SECTIONS[number - 1]
            readers[name] = _Reader(data, offset, offset + size, name)
    for name in _SECTIONS:
        if name not in readers and name not in _OPTIONAL:
            raise ModuleError(f"program: the section {name!r} is missing; the file is damaged")

    r = readers["strings"]
    strings = tuple(r.text() for _ in range(r.u32()))
    r = readers["tables"]
    tables = tuple(tuple(r.i64() for _ in range(r.u32())) for _ in range(r.u32()))
    r = readers["executables"]
    executables = []
    for _ in range(r.u32()):
        name, format = r.text(), r.text()
        features = tuple(r.text() for _ in range(r.u32()))
        exports = tuple(Export(r.text(), r.u32(), r.u32()) for _ in range(r.u32()))
        executables.append(ExecutableRef(name, format, exports, features))
    r = readers["parameters"]
    parameters = []
    for _ in range(r.u32()):
        name, dtype = r.text(), r.dtype()
        shape = tuple(r.i64() for _ in range(r.u32()))
        offset, size = r.u64(), r.u64()
        parameter = Parameter(name, dtype, shape, offset, r.text(), r.text())
        if parameter.bytes != size:
            raise ModuleError(f"parameter {name!r}: {size} bytes stored, its type needs {parameter.bytes}")
        parameters.append(parameter)
    states = []
    if r := readers.get("states"):
        for _ in range(r.u32()):
            name, dtype = r.text(), r.dtype()
            shape = tuple(r.i64() for _ in range(r.u32()))
            parameter = r.u32()
            states.append(State(name, dtype, shape, None if parameter == _ZEROS else parameter))
    global_count = readers["globals"].u32()
    r = readers["functions"]
    functions = []
    for _ in range(r.u32()):
        name = r.text()
        symbols = {r.text(): Symbol(r.i64(), r.i64(), r.i64()) for _ in range(r.u32())}
        names = list(symbols)
        signature = Signature(r.specs(names), r.specs(names), symbols)
        i64_registers, ref_registers = r.u32(), r.u32()
        functions.append(Function(name, signature, r.blob(), i64_registers, ref_registers))
    return Program(
        tuple(functions), tuple(executables), tuple(parameters), strings, tables, global_count, tuple(states)
    )
