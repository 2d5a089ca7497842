"""`eyas verify`: the compiled model against its framework, layer by layer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.common import (
    DEVICE_HELP,
    INPUT_HELP,
    MODEL_ENDINGS,
    PRECISION_HELP,
    TARGET_HELP,
    TUNING_HELP,
    make_inputs,
    note,
    print_json,
)
from eyas.errors import EyasError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eyas.verification.report import Report, Row

NAME = "verify"
_WIDTH_IN_PIPES = 10_000  # as wide as the longest name
_WORST = 20


def command(
    model: Annotated[Path, typer.Argument(help=".onnx, .pt2, .mlir, .mlirbc or .stablehlo.")],
    input: Annotated[list[str] | None, typer.Option("-i", "--input", help=INPUT_HELP)] = None,
    seed: Annotated[int, typer.Option(help="Of random inputs.")] = 0,
    bisect: Annotated[bool, typer.Option("--bisect", help="Name the pass or strategy to blame.")] = False,
    reproducer: Annotated[
        Path | None, typer.Option(help="Folder for the smallest wrong piece. [default: MODEL-repro, here]")
    ] = None,
    no_reproducer: Annotated[bool, typer.Option("--no-reproducer", help="Write none.")] = False,
    rtol: Annotated[float | None, typer.Option(help="Of a layer's scale. [default: by type, 1e-4 for f32]")] = None,
    atol: Annotated[float | None, typer.Option(help="[default: by type, 1e-6 for f32; integers are exact]")] = None,
    worst: Annotated[
        int | None,
        typer.Option(
            min=0, help="Show so many layers, the worst first; 0 for all in order. [default: 0; with --precision 20]"
        ),
    ] = None,
    target: Annotated[str, typer.Option(help=TARGET_HELP)] = "",
    precision: Annotated[str | None, typer.Option(help=PRECISION_HELP)] = None,
    tuning_spec: Annotated[list[Path] | None, typer.Option(help=TUNING_HELP)] = None,
    disable: Annotated[list[str] | None, typer.Option(help="A pass or strategy to leave out; may be repeated.")] = None,
    device: Annotated[str | None, typer.Option(help=DEVICE_HELP)] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="[default: the CPUs of this process]")] = None,
    workers: Annotated[int, typer.Option(help="Processes that compile kernels; 0 for one per CPU.")] = 0,
    runs: Annotated[int, typer.Option(min=1, help="Calls of each program; a race may show in one of many.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Compare a compiled model with its framework, layer by layer.

    The exit code is 1 on a mismatch.
    """
    if not model.is_file():
        raise EyasError(f"no such file: '{model}'")
    if model.suffix.lower() not in MODEL_ENDINGS:
        raise UsageError(f"'{model}' is no model; verification needs the source: {', '.join(MODEL_ENDINGS)}")
    folder = None if no_reproducer else reproducer or Path(f"{model.stem}-repro")
    from eyas.pipelines.signatures import to_program_signature
    from eyas.specs import as_sources
    from eyas.targets import Target
    from eyas.verification.build import Build
    from eyas.verification.compare import Tolerance
    from eyas.verification.source import open_source
    from eyas.verification.verify import run

    def arrays(program: Any) -> Sequence[Any]:
        if not input and program.signature.arguments and not json:
            note(f"no --input: random numbers are used, from seed {seed}")
        return make_inputs(input or [], to_program_signature(program.signature), seed)

    specs = as_sources(tuning_spec)
    compiled_for = Target.parse(target or "llvm-cpu")
    build = Build(device, threads, tuple(disable or ()), workers, runs, compiled_for, precision, specs)
    with _progress(json) as say:
        say("loading")
        source = open_source(str(model), (), {}, None, build)
        report = run(source, arrays, build, Tolerance(rtol, atol, precision), bisect, folder, say)
    if json:
        print_json(report.to_json())
    else:
        # Of a program that is right in f32 the question is where it loses.
        _print(report, worst if worst is not None else _WORST if precision else 0)
    raise typer.Exit(0 if report.ok else 1)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """What is being done, on a terminal; a bar that vanishes."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(pulse_style="cyan"), TimeElapsedColumn(), TextColumn("{task.fields[step]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("verify", total=None, step="")
        yield lambda step: shown.update(task, step=step)


def _print(report: Report, worst: int) -> None:
    from rich.console import Console
    from rich.table import Table

    rows = report.rows
    if worst:
        rows = sorted(rows, key=lambda row: row.difference.error if row.difference else -1.0, reverse=True)[:worst]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("layer", "op", "place", "type", "error", ""):
        # On a narrow terminal places are cut, so that names need not be broken.
        cut = name in ("place", "type")
        overflow = "ellipsis" if cut else "fold"
        table.add_column(name, justify="right" if name == "error" else "left", overflow=overflow, no_wrap=cut)
    for row in rows:
        table.add_row(*_cells(row, row is report.first))
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_IN_PIPES, highlight=False)
    console.print(table)
    console.print()
    for line in report.summary:
        console.print(line, markup=False, soft_wrap=True)


def _cells(row: Row, is_first: bool) -> tuple[str, ...]:
    from rich.markup import escape

    from eyas.verification.report import show

    type_ = f"{row.dtype}[{','.join(map(str, row.shape))}]"
    if row.difference is None:
        error, verdict = "", "[dim]not compared[/dim]"
    elif row.difference.ok:
        error, verdict = show(row.difference.error), "[green]ok[/green]"
    elif row.agrees_with:
        error, verdict = show(row.difference.error), "[yellow]ok for its inputs[/yellow]"
    else:
        error = show(row.difference.error)
        verdict = "[bold red]WRONG, first[/bold red]" if is_first else "[red]WRONG[/red]"
    return escape(row.layer.name), escape(row.layer.op), escape(row.layer.place), escape(type_), error, verdict
