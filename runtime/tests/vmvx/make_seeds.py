"""Writes seeds for `make fuzz-vmvx` into a folder: functions of real modules, each instruction by itself, and
tile instructions in the shapes that their microkernels tell apart.

python runtime/tests/vmvx/make_seeds.py build/fuzz-vmvx/seeds
"""

from __future__ import annotations

import itertools
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

import eyas
from eyas.module import container
from eyas.module.vmvx_executable import Function, read_executable, write_executable
from eyas.module.vmvx_isa import (
    BY_NAME,
    CONTRACTIONS,
    MEMORY_BYTES,
    OPS,
    TYPE_BYTES,
    Extent,
    Kind,
    Memory,
    Op,
    Type,
    modes,
)

MAX_CODE_BYTES = 1 << 13
SCALARS, TILES = 24, 4


class Vision(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, stride=2, groups=8, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.last = nn.Linear(8, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.max_pool2d(torch.relu(self.first(x)), 3, 2, 1)
        x = torch.nn.functional.hardtanh(self.norm(self.depthwise(x)))
        return torch.softmax(self.last(x.mean((2, 3))), -1)


class Language(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.layer(self.table(tokens)).argmax(-1)


class Whole(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        wide = x.to(torch.int32) @ y.to(torch.int32)
        return torch.cumsum(wide, 0), wide.sort(-1).values, (x // 3).to(torch.float16) * 0.3, torch.roll(y, 2, 0)


def models() -> list[tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    small = torch.randint(-9, 9, (7, 5), dtype=torch.int8)
    return [
        (Vision().eval(), (torch.randn(1, 3, 9, 9),)),
        (Language().eval(), (torch.randint(0, 20, (1, 5)),)),
        (Whole(), (small, small.T.contiguous())),
    ]


def module_functions(folder: Path) -> dict[str, Function]:
    found = {}
    for number, (model, inputs) in enumerate(models()):
        for disable in ([], ["microkernels"]):
            path = folder / "model.eyas"
            eyas.compile(model, inputs, target="vmvx", disable=disable).save(path)
            for executable in container.read(path).executables.values():
                for function in read_executable(bytes(executable)):
                    if len(function.code) <= MAX_CODE_BYTES:
                        found[f"m{number}{'s' if disable else 't'}_{function.name}"] = function
            path.unlink()
    return found


class Code:
    """Instructions one after the other; scalars 0 to 2 are bindings, 3 to 10 small numbers."""

    NUMBERS = (1, 2, 4, 8, 16, 64, 3, 5)

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.scalars = 3 + len(self.NUMBERS)
        for index in range(3):
            self.put("binding", index, index)
        for register, value in enumerate(self.NUMBERS, start=3):
            self.put("const", register, value)

    def put(self, name: str, *values: int) -> None:
        op = BY_NAME[name]
        self.bytes.extend(struct.pack("<H", op.code))
        for operand, value in zip(op.operands, values, strict=True):
            self.bytes.extend(struct.pack({Kind.IMM64: "<q", Kind.LABEL: "<I"}.get(operand.kind, "<H"), value))

    def const(self, value: int) -> int:
        """A scalar with a value."""
        self.put("const", self.scalars, value)
        self.scalars += 1
        return self.scalars - 1

    def shape(self, rows: int, columns: int) -> None:
        self.put("shape", self.const(rows), self.const(columns))

    def function(self) -> Function:
        self.put("return")
        scalars = max(SCALARS, self.scalars)
        return Function("f", scalars, TILES, 4, 2, 0b1011, b"0123456789abcdef", bytes(self.bytes))


def instruction_function(op: Op) -> Function:
    """The instruction with operands that are mostly in range: addresses, then small numbers."""
    code = Code()
    code.put("shape", 5, 7)
    for tile in range(TILES):
        code.put("tindex", tile, 3, 4, 5, 0)
    scalars = iter((0, 7, 5, 1, 6, 4, 5, 5, 4, 3, 5, 3, 3, 3))
    tiles = iter((1, 2, 3, 0))
    values = []
    for operand in op.operands:
        values.append(
            {
                Kind.SCALAR_DST: lambda: 20,
                Kind.SCALAR: lambda: next(scalars),
                Kind.TILE_DST: lambda: 0,
                Kind.TILE: lambda: next(tiles),
                Kind.MODES: lambda: 0,
                Kind.SMALL: lambda: 1,
                Kind.IMM64: lambda: 4,
                Kind.LABEL: lambda: len(code.bytes),
            }[operand.kind]()
        )
    code.put(op.name, *values)
    if op.terminator:
        return code.function()
    code.put("tstore", 0, 1, 7, 5, 0, 0, 1)
    return code.function()


SHAPES = ((1, 1), (1, 16), (3, 17), (8, 16), (4, 128), (7, 33), (16, 32), (1, 1000), (200, 1), (64, 16), (20, 5))
BINDING_BYTES = 4096


def memory_functions() -> Iterator[tuple[str, Function]]:
    """Tiles from memory and back: rows, turned, backwards, one element for all, boxes, gathers, computed rows."""
    for memory, (rows, columns) in itertools.product(Memory, SHAPES):
        size = MEMORY_BYTES[memory]
        if rows * columns * size > BINDING_BYTES:
            continue
        code = Code()
        code.shape(rows, columns)
        by_rows = (code.const(columns * size), code.const(size))
        turned = (code.const(size), code.const(rows * size))
        last = code.const((rows * columns - 1) * size)
        code.put("tload", 0, 0, *by_rows, memory, 0)
        code.put("tload", 1, 0, *turned, memory, 0)
        code.put("tload", 2, 0, code.const(0), code.const(0), memory, 0)
        code.put("tload", 3, last, code.const(-columns * size), code.const(-size), memory, 0)
        code.put("tstore", 0, 0, *turned, memory, 0, 1)
        code.put("tstore", 1, 0, *by_rows, memory, 0, 1)
        code.put("tstore", 2, 0, by_rows[1], code.const(0), memory, 0, 0)
        box = (code.const(rows // 3), code.const(rows), code.const(1), code.const(columns - columns // 3))
        code.put("tload_inside", 0, 0, *by_rows, *box, 4, memory)
        code.put("tload_inside", 1, last, code.const(-columns * size), code.const(-size), *box, 4, memory)
        code.put("tindex", 1, 3, code.const(columns), 3, 0)
        code.put("tgather", 0, 0, 1, memory, 0)
        code.put("tindex", 1, 3, code.const(columns), 3, modes(Extent.COLUMN))
        code.put("tload_rows", 2, 0, 1, memory)
        yield f"memory_{memory.name}_{rows}_{columns}", code.function()


def product_functions() -> Iterator[tuple[str, Function]]:
    """Contractions and windows of every type; depths that the operands of a binding allow."""
    for (name, left, _, _, k), (rows, columns) in itertools.product(CONTRACTIONS, SHAPES):
        step, panels = MEMORY_BYTES[left] * k, -(-columns // 16)
        depth = min(BINDING_BYTES // (rows * step), BINDING_BYTES // (panels * 16 * step))
        if not depth:
            continue
        code = Code()
        code.shape(rows, columns)
        code.put("tindex", 0, 3, 4, 5, 0)
        panel = code.const(16 * step * depth)
        inner = (code.const(depth), code.const(step), code.const(16 * step))
        once = (3, code.const(1 << 40), code.const(1 << 40))
        code.put(f"tcontract_{name}", 0, 0, code.const(depth * step), 2, panel, *once, *once, *inner)
        half = (4, code.const(depth // 2 * step), code.const(depth // 2 * 16 * step))
        inner = (code.const(depth // 2), *inner[1:])
        code.put(f"tcontract_{name}", 1, 0, code.const(depth * step), 2, panel, *once, *half, *inner)
        if rows <= 8:  # long loops, whose steps overlap: panels that are asked for ahead
            inner = (code.const(600), code.const(1), code.const(1))
            code.put(f"tcontract_{name}", 1, 0, 3, 2, 3, *once, *once, *inner)
        yield f"contract_{name}_{rows}_{columns}", code.function()
    for op, (rows, columns) in itertools.product(OPS, SHAPES):
        if op.family != "window" or rows * columns * TYPE_BYTES[Type(op.type)] > BINDING_BYTES // 2:
            continue
        size = TYPE_BYTES[Type(op.type)]
        code = Code()
        code.shape(rows, columns)
        code.put("tfill", 0, 3, op.type, 0)
        row = code.const(columns * size)
        taps = (4, row, code.const(0))
        code.put(op.name, 0, 0, row, 2, *taps, *taps)
        yield f"{op.name}_{rows}_{columns}", code.function()


def element_functions() -> Iterator[tuple[str, Function]]:
    """Each instruction on elements with several shapes of its operands, also in place."""
    extents = (Extent.FULL, Extent.ROW, Extent.COLUMN, Extent.ONE)
    for number, op in enumerate(OPS):
        operands = [o for o in op.operands if o.kind is Kind.TILE]
        if not op.family or op.family.startswith("scalar") or op.family in ("contract", "window"):
            continue
        code = Code()
        for turn in range(3):
            code.shape(*SHAPES[(number + 4 * turn) % len(SHAPES)])
            for tile in range(TILES):
                code.put("tindex", tile, 3, 4, code.const(-7), 0)
            shapes = [extents[(number >> i + turn) % 4 if turn else 0] for i in range(len(operands))]
            for dst in (0, 1):
                values: list[int] = []
                tiles = iter((1, 2, 3))
                for operand in op.operands:
                    match operand.kind:
                        case Kind.TILE_DST:
                            values.append(dst)
                        case Kind.TILE:
                            values.append(next(tiles))
                        case Kind.MODES:
                            values.append(modes(Extent.FULL, *shapes))
                        case _:
                            values.append(turn % 2 if operand.kind is Kind.SMALL else 3)
                code.put(op.name, *values)
        yield f"elements_{op.name}", code.function()
    for exponent in (1, 2, 3, 4, 0.5, -0.5, -1, -2, 0.3):
        code = Code()
        code.shape(3, 17)
        code.put("tfill", 1, code.const(struct.unpack("<i", struct.pack("<f", exponent))[0]), Type.F32, 0)
        code.put("tfpow_f32", 0, 2, 1, modes(Extent.FULL, Extent.FULL, Extent.ONE))
        yield f"power_{exponent}", code.function()


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    functions = {f"op_{op.name}": instruction_function(op) for op in OPS}
    functions |= dict(memory_functions()) | dict(product_functions()) | dict(element_functions())
    functions |= module_functions(folder)
    for name, function in functions.items():
        (folder / name[:100]).write_bytes(write_executable([function]))
    print(f"{len(functions)} seeds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
