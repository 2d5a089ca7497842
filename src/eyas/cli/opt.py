"""`eyas opt`: runs passes on MLIR text."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from eyas.cli.common import print_json, print_table
from eyas.errors import EyasError, UsageError

NAME = "opt"


def command(
    file: Annotated[Path | None, typer.Argument(help="MLIR text or bytecode; - for stdin.")] = None,
    passes: Annotated[str, typer.Option(help="Passes in order: 'tie-shapes,form-dispatches{max-ops=8},cse'.")] = "",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="[default: stdout]")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the passes of Eyas; upstream's work too.")] = False,
    locations: Annotated[bool, typer.Option("--locations", help="Print source locations.")] = False,
    json: Annotated[bool, typer.Option("--json", help="With --list: as JSON.")] = False,
) -> None:
    """Run passes on an MLIR file and print the result."""
    if list_:
        _list(json)
        return
    if file is None:
        raise UsageError("give an MLIR file, or --list to see the passes")
    from eyas.ir import make_context, mlir, parse_module, raise_as_compile_error
    from eyas.passes import parse_pipeline
    from eyas.pipelines.constants import evaluate_with
    from eyas.pipelines.request import Services

    if str(file) != "-" and not file.is_file():
        raise EyasError(f"no such file: '{file}'")
    text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    pipeline = parse_pipeline(passes)
    module = parse_module(text, make_context(), str(file))
    pipeline.equipped(evaluate=evaluate_with((), Services())).run(module)
    try:
        module.operation.verify()
    except mlir.MLIRError as error:
        raise_as_compile_error(error, f"the result of '{passes}' is invalid: verification")
    result = module.operation.get_asm(enable_debug_info=locations)
    if output is not None:
        output.write_text(result)
    else:
        print(result, end="" if result.endswith("\n") else "\n")


def _list(json: bool) -> None:
    from eyas.passes import PASSES, lookup, phase_of

    rows = []
    for name in sorted(PASSES, key=lambda name: (phase_of(name), name)):
        found = lookup(name)
        assert found is not None
        rows.append((name, phase_of(name), (found.__doc__ or "").strip().partition("\n")[0]))
    if json:
        print_json([{"name": name, "phase": phase, "summary": summary} for name, phase, summary in rows])
    else:
        print_table(rows)
