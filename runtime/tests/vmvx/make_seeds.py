"""Writes seeds for `make fuzz-vmvx` into a folder: functions of real modules, and each instruction by itself.

python runtime/tests/vmvx/make_seeds.py build/fuzz-vmvx/seeds
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import torch
from torch import nn

import eyas
from eyas.module import container
from eyas.module.vmvx_executable import Function, read_executable, write_executable
from eyas.module.vmvx_isa import OPS, Kind, Op

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


def instruction_function(op: Op) -> Function:
    """The instruction with operands that are mostly in range: addresses, then small numbers."""
    code = bytearray()

    def put(name: str, *values: int) -> None:
        chosen = next(o for o in OPS if o.name == name)
        code.extend(struct.pack("<H", chosen.code))
        for operand, value in zip(chosen.operands, values, strict=True):
            code.extend(struct.pack({Kind.IMM64: "<q", Kind.LABEL: "<I"}.get(operand.kind, "<H"), value))

    for index in range(3):
        put("binding", index, index)
    for register, value in enumerate((1, 2, 4, 8, 16, 64, 3, 5), start=3):
        put("const", register, value)
    put("shape", 5, 7)
    for tile in range(TILES):
        put("tindex", tile, 3, 4, 5, 0)
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
                Kind.LABEL: lambda: len(code),
            }[operand.kind]()
        )
    put(op.name, *values)
    put("tstore", 0, 1, 7, 5, 0, 0, 1)
    if op.name != "return":
        put("return")
    return Function("f", SCALARS, TILES, 4, 2, 0b1011, b"0123456789abcdef", bytes(code))


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    functions = {f"op_{op.name}": instruction_function(op) for op in OPS}
    functions |= module_functions(folder)
    for name, function in functions.items():
        (folder / name[:100]).write_bytes(write_executable([function]))
    print(f"{len(functions)} seeds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
