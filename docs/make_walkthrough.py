"""Writes docs/walkthrough.md: the ToyModel through every phase, with the IR that the compiler really makes.

python docs/make_walkthrough.py            # writes the page
python docs/make_walkthrough.py --check    # exit code 1 when the page differs from what the compiler makes now

The target is fixed, so that the page is the same wherever it is made.
"""

from __future__ import annotations

import inspect
import re
import sys
import tempfile
import textwrap
from pathlib import Path

import torch
from torch import nn
from torch_mlir import ir as mlir

import eyas
from eyas.api import ForeignModule
from eyas.codegen.common.kernel import Access, Nest, Statement
from eyas.codegen.common.schedule import GridAxis, Tile
from eyas.codegen.llvm_cpu.compile import select_strategy
from eyas.codegen.llvm_cpu.llvm import emit_assembly
from eyas.codegen.llvm_cpu.lowering import lower_to_llvm
from eyas.codegen.llvm_cpu.strategies.base import NestStrategy
from eyas.dialects import flow
from eyas.ir import make_context, parse_module, run_upstream
from eyas.module import container
from eyas.module.assembler import disassemble
from eyas.pipelines.request import Phase
from eyas.targets import Target

PAGE = Path(__file__).parent / "walkthrough.md"
TEXT = Path(__file__).parent / "walkthrough.in.md"
TARGET = "llvm-cpu:x86_64:znver3"
WIDTH = 120


class ToyModel(nn.Module):
    def forward(self, arg0: torch.Tensor, arg1: torch.Tensor, arg2: torch.Tensor) -> torch.Tensor:
        mat_b = torch.transpose(arg1, 0, 1)
        mm = torch.matmul(arg0, mat_b)
        matvec = torch.mv(mm.to(torch.float32), arg2)
        return nn.functional.relu(matvec)


def example_inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    return (
        torch.randn(1024, 512, dtype=torch.float16),
        torch.randn(2048, 512, dtype=torch.float16),
        torch.randn(2048, dtype=torch.float32),
    )


def make_page() -> str:
    """The text of walkthrough.in.md with every `{{name}}` replaced by what the compiler made."""
    model, inputs = ToyModel(), example_inputs()
    exported = eyas.export(model, *inputs)
    with tempfile.TemporaryDirectory() as folder:
        module = exported.compile(target=TARGET, dump_phases=folder, progress=False)
        check_numbers(module, model, inputs)
        dumps = {phase: (Path(folder) / f"{phase.ordinal + 1}.{phase.value}.mlir").read_text() for phase in Phase}
        saved = Path(folder) / "toy.eyas"
        module.save(saved)
        opened = container.read(saved)
        pieces = {
            "target": TARGET,
            "source": python(inspect.getsource(ToyModel) + "\n\n" + inspect.getsource(example_inputs)),
            "exported": ir(str(exported)),
            "signature": f"```\n{exported.signature}\n```",
            "input": ir(dumps[Phase.INPUT]),
            "optimize": optimize(dumps),
            "dispatch": ir(dumps[Phase.DISPATCH]),
            "schedule": ir(only_main(dumps[Phase.SCHEDULE])),
            "hal": ir(only_main(dumps[Phase.HAL])),
            "strategies": ir(strategies(dumps[Phase.HAL])),
            "kernels": kernel_table(opened.manifest["kernels"], dumps[Phase.CODEGEN]),
            "codegen": ir(only_executable(dumps[Phase.CODEGEN])),
            "vm": ir(only_main(dumps[Phase.VM])),
            "bytecode": f"```\n{short_features(disassemble(opened.program))}```",
            "entries": "```\n" + "\n".join(["index.bin", *(entry.name for entry in opened.entries)]) + "\n```",
            **codegen_pieces(dumps[Phase.HAL]),
        }
    text = TEXT.read_text()
    unknown = set(re.findall(r"\{\{(\w+)\}\}", text)) ^ set(pieces)
    assert not unknown, f"walkthrough.in.md and make_walkthrough.py disagree on {unknown}"
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: pieces[match[1]], text)
    return f"<!-- Made by docs/make_walkthrough.py from docs/walkthrough.in.md. Do not edit this page. -->\n\n{page}"


def check_numbers(module: eyas.Module, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    """The page must not show a program that computes something else. A CPU that cannot run the target skips this."""
    if isinstance(module, ForeignModule):
        return
    expected = model(*inputs)
    error = ((module(*inputs) - expected).abs().max() / expected.abs().max()).item()
    assert error < 1e-3, f"the compiled ToyModel differs from PyTorch by {error:.1e}"


# --- text -------------------------------------------------------------------------------------------------------------


def python(text: str) -> str:
    return f"```python\n{text.strip()}\n```"


def ir(text: str) -> str:
    """IR as a code block: attributes that only machines read become `...`, long lines are wrapped."""
    text = re.sub(r'flow\.signature = "[^"]*"', 'flow.signature = "..."', text)
    text = re.sub(r'flow\.source_digest = "[^"]*"', 'flow.source_digest = "..."', text)
    text = re.sub(r'hal.image = dense<"0x[0-9A-F]*">', "hal.image = dense<...>", text)
    text = re.sub(r",? ?operandSegmentSizes = array<[^>]*>", "", text).replace(" {} :", " :")
    lines = [wrapped for line in text.strip().splitlines() for wrapped in wrap(line.rstrip())]
    return "```mlir\n" + "\n".join(lines) + "\n```"


def wrap(line: str) -> list[str]:
    """A long line loses the types at its end when it is an op in generic form; then it is broken at spaces."""
    if len(line) > WIDTH and '"(' in line and " : (" in line:
        line = line[: line.rindex(" : (")] + " : ..."
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def only_main(text: str) -> str:
    """The host program; executables are as they were."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("  func.func @main("))
    last = next(i for i in range(first, len(lines)) if lines[i] == "  }")
    return "\n".join(line.removeprefix("  ") for line in lines[first : last + 1])


def strategies(text: str) -> str:
    """What is noted on each executable about how it will be lowered."""
    found = re.findall(r"func\.func private @(\w+).*?(#codegen\.strategy<.*?\}>)", text)
    return "\n".join(f"@{name}: codegen.strategy = {strategy}" for name, strategy in found)


def only_executable(text: str) -> str:
    """`hal.executable` with one attribute, and one export, a line."""
    line = next(line for line in text.splitlines() if '"hal.executable"' in line).strip()
    for name in ("exports", "features", "format", "image", "sym_name", "target"):
        line = re.sub(rf"(?<=[{{ ]){name} = ", f"\n    {name} = ", line, count=1)
    line = line.replace("[{bindings", "[\n      {bindings").replace("}, {bindings", "},\n      {bindings")
    line = re.sub(r'features = "[^"]*"', 'features = "..."', line)
    return re.sub(r" +\n", "\n", line)


def optimize(dumps: dict[Phase, str]) -> str:
    if dumps[Phase.OPTIMIZE] == dumps[Phase.INPUT]:
        return (
            "For this model nothing changes: the text after `optimize` is the text after `input`, to the letter. It has"
            " no weights\nand no convolutions, and its one transpose feeds a matmul, where transposes stop."
        )
    return ir(dumps[Phase.OPTIMIZE])


def short_features(text: str) -> str:
    return re.sub(r"(elf-\w+) \+\S+", r"\1 +...", text)


def kernel_table(kernels: list[dict], dump: str) -> str:
    rows = ["| kernel | strategy | knobs | workgroups | not chosen |", "|---|---|---|---|---|"]
    for kernel in kernels:
        grid = re.search(rf'grid = \[([^\]]*)\][^}}]*name = "{kernel["name"]}"', dump)
        axes = re.findall(r"array<i64: (\d+), (\d+)>", grid[1] if grid else "")
        groups = " x ".join(str(-(-int(extent) // int(piece))) for piece, extent in axes) or "1"
        rejected = "; ".join(kernel["rejected"])
        rows.append(
            f"| `{kernel['name']}` | `{kernel['strategy']}` | {kernel['knobs']} | {groups} | {rejected or '-'} |"
        )
    return "\n".join(rows)


# --- inside the codegen phase -----------------------------------------------------------------------------------------


def codegen_pieces(hal_dump: str) -> dict[str, str]:
    """Loop nests of all kernels; loops and assembly of the one with the most of a register tile."""
    target = Target.parse(TARGET)
    module = parse_module(hal_dump, make_context())
    nests, best = [], None
    with module.context, mlir.Location.unknown():
        run_upstream(module, "linalg-generalize-named-ops,canonicalize,cse")
        for function in filter(flow.is_executable, module.body.operations):
            strategy, _ = select_strategy(function, target)
            assert isinstance(strategy, NestStrategy), strategy.name
            nests.append(describe(function.attributes["sym_name"].value, strategy))
            if best is None or area(strategy) > area(best[1]):
                best = (function, strategy)
        assert best is not None
        lowered = mlir.Module.create()
        best[1].lower(best[0], lowered)
        run_upstream(lowered, "canonicalize,cse")
        loops = innermost_part(str(lowered))
        lower_to_llvm(lowered, target)
        assembly = hottest_block(emit_assembly(lowered, target))
    return {
        "nests": "```\n" + "\n".join(nests) + "```",
        "loops": ir(loops),
        "assembly": f"```asm\n{assembly}\n```",
    }


def area(strategy: NestStrategy) -> int:
    """Sums that a register tile keeps; a transpose has none."""
    pairs = zip(strategy.schedule.tiles, strategy.kernel.nests, strict=True)
    return max(tile.vectors * tile.unroll if nest.reductions else 0 for tile, nest in pairs)


def describe(name: str, strategy: NestStrategy) -> str:
    lines = [name]
    for nest, tile in zip(strategy.kernel.nests, strategy.schedule.tiles, strict=True):
        loops = ", ".join(f"l{i}={size}{' (reduction)' * (i in nest.reductions)}" for i, size in enumerate(nest.loops))
        lines.append(f"  nest over {loops}")
        lines += [f"    s{i}: {describe_statement(nest, one)}" for i, one in enumerate(nest.statements)]
        lines.append(f"    {describe_tile(tile)}")
    lines += [f"  {describe_axis(axis)}" for axis in strategy.grid] or ["  one workgroup"]
    return "\n".join(lines) + "\n"


def describe_statement(nest: Nest, statement: Statement) -> str:
    def show(source: object) -> str:
        if isinstance(source, Access):
            terms = [
                f"l{loop}" if str(stride) == "1" else f"{stride}*l{loop}"
                for loop, stride in enumerate(source.strides)
                if str(stride) != "0"
            ]
            return f"{source.storage.name}[{' + '.join(terms) or '0'}]"
        if isinstance(source, tuple):
            return f"s{source[0]}"
        return "register" if source is None else "scalar"

    body = [] if statement.body is None else [op.operation.name for op in statement.body.operations][:-1]
    return f"{', '.join(map(show, statement.outputs))} <- {' ; '.join(body)} ({', '.join(map(show, statement.inputs))})"


def describe_tile(tile: Tile) -> str:
    parts = [f"{tile.vectors} vector(s) of {tile.width} lanes along l{tile.loop}"]
    if tile.unroll_loop is not None:
        parts.append(f"{tile.unroll} rows along l{tile.unroll_loop}")
    return "tile: " + ", ".join(parts)


def describe_axis(axis: GridAxis) -> str:
    return f"grid: l{axis.loop} in pieces of {axis.tile}"


def innermost_part(text: str, limit: int = 42) -> str:
    """The loops of an entry function, without the lines before them that unpack bindings."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("    scf.for"))
    last = max(i for i, line in enumerate(lines) if line == "    }")
    body = [line.removeprefix("    ") for line in lines[first : last + 1]]
    if len(body) <= limit:
        return "\n".join(body)
    inner = next(i for i, line in enumerate(body) if line.lstrip().startswith("scf.yield"))
    return "\n".join([*body[: limit - 16], "      ...", *body[inner : inner + 4], "    ...", *body[-6:]])


def hottest_block(assembly: str) -> str:
    """The basic block with the most fused multiply-adds: the inner loop."""
    blocks = re.split(r"(?m)^(?=\.LBB)", assembly)
    block = max(blocks, key=lambda text: text.count("vfmadd"))
    lines = [line.split("#")[0].rstrip().expandtabs(8) for line in block.splitlines()]
    lines = [line for line in lines if line.strip()]
    end = next((i for i, line in enumerate(lines) if re.match(r"\s+j\w+\s", line)), len(lines) - 1)
    return "\n".join(lines[: end + 1])


def main(arguments: list[str]) -> int:
    page = make_page()
    if arguments == ["--check"]:
        same = PAGE.exists() and PAGE.read_text() == page
        print(f"{PAGE.name} is {'up to date' if same else 'out of date: run python docs/make_walkthrough.py'}")
        return 0 if same else 1
    PAGE.write_text(page)
    print(f"wrote {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
