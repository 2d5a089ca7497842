"""`eyas explain`: where the time of a call goes, dispatch by dispatch, and why it is not less."""

from __future__ import annotations

import json as json_
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from eyas.cli.common import (
    DEVICE_HELP,
    ENTRY_HELP,
    INPUT_HELP,
    PRECISION_HELP,
    TARGET_HELP,
    TUNING_HELP,
    choose_entry,
    make_inputs,
    note,
    open_module,
)
from eyas.errors import EyasError, UsageError

NAME = "explain"


class Sort(StrEnum):
    """How the table is ordered."""

    TIME = "time"
    ORDER = "order"


def command(
    model: Annotated[Path, typer.Argument(help="A .eyas module, or a model, which is compiled first.")],
    input: Annotated[list[str] | None, typer.Option("-i", "--input", help=INPUT_HELP)] = None,
    entry: Annotated[str, typer.Option(help=ENTRY_HELP)] = "",
    target: Annotated[str, typer.Option(help=TARGET_HELP)] = "",
    precision: Annotated[str | None, typer.Option(help=PRECISION_HELP)] = None,
    tuning_spec: Annotated[list[Path] | None, typer.Option(help=TUNING_HELP)] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="[default: the CPUs of this process]")] = None,
    device: Annotated[str | None, typer.Option(help=DEVICE_HELP)] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="[default: as many as fit into two seconds]")] = None,
    sort: Annotated[Sort, typer.Option(help="Slowest first, or as they run.")] = Sort.TIME,
    top: Annotated[int | None, typer.Option(min=1, help="Only the N slowest.")] = None,
    json: Annotated[str, typer.Option("--json", metavar="FILE", help="All of it as JSON; - is stdout.")] = "",
    html: Annotated[str, typer.Option("--html", metavar="FILE", help="One page with graph and roofline.")] = "",
    trace: Annotated[str, typer.Option("--trace", metavar="FILE", help="A call for ui.perfetto.dev.")] = "",
    against: Annotated[str, typer.Option("--against", metavar="FILE", help="What changed since that --json.")] = "",
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the machine's limits again, which else happens once.")
    ] = False,
) -> None:
    """Show where the time of a call goes, and why it is not less."""
    from eyas.explain.compare import read_report
    from eyas.explain.measure import explain

    _check_files(json, html, trace)
    before = read_report(Path(against)) if against else None
    loaded = open_module(
        model, device, threads, quiet=json == "-", target=target, precision=precision, tuning_spec=tuning_spec
    )
    function = choose_entry(loaded, entry)
    inputs = make_inputs(input or [], loaded.functions[function].signature)
    report, events = explain(loaded, inputs, function, runs=runs, measure_machine=measure, name=str(model))
    written = []
    if json:
        written += _write(json, json_.dumps(report.to_json(), indent=1))
    if html:
        from eyas.explain.page import make_page

        written += _write(html, make_page(report, events))
    if trace:
        from eyas.explain.trace import make_trace

        written += _write(trace, json_.dumps(make_trace(report, events)))
    if json != "-":
        from eyas.cli.explain_text import print_changes, print_report

        print_report(report, top, sort is Sort.ORDER)
        if before is not None:
            print_changes(report, before, against)
    for path in written:
        note(f"wrote {path}")


def _check_files(*names: Any) -> None:
    """Before anything is measured: two outputs in one file, or a folder that is not there."""
    given = [name for name in names if name and name != "-"]
    if len(set(given)) != len(given):
        raise UsageError(f"--json, --html and --trace need files of their own, got {' '.join(given)}")
    if any(name == "-" for name in names[1:]):
        raise UsageError("--html and --trace need a file; only --json can be written to stdout")
    for name in given:
        if not Path(name).parent.is_dir():
            raise UsageError(f"no such folder: '{Path(name).parent}', for {name}")


def _write(name: str, text: str) -> list[str]:
    if name == "-":
        print(text)
        return []
    try:
        Path(name).write_text(text)
    except OSError as error:
        raise EyasError(f"cannot write '{name}': {error.strerror or error}") from error
    return [name]
