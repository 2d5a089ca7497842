"""`eyas tune`: which schedule of each dispatch is fastest on this machine, found by trying."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.common import (
    INPUT_HELP,
    MODEL_ENDINGS,
    PRECISION_HELP,
    TARGET_HELP,
    make_inputs,
    note,
    print_json,
    print_table,
    show_time,
)
from eyas.errors import EyasError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eyas.pipelines.request import Request
    from eyas.tune.database import Database
    from eyas.tune.session import Listener
    from eyas.tune.tuning import Tuned, Wish

NAME = "tune"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class OrderName(StrEnum):
    """What decides which candidates are tried first."""

    RANDOM = "random"
    HEURISTIC = "heuristic"
    LEARNED = "learned"


def command(
    models: Annotated[
        list[Path] | None, typer.Argument(metavar="[MODEL]", help="A model; with --merge the specs to merge.")
    ] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The spec. [default: MODEL.spec.mlir]")] = None,
    input: Annotated[list[str] | None, typer.Option("-i", "--input", help=INPUT_HELP)] = None,
    target: Annotated[str, typer.Option(help=TARGET_HELP)] = "",
    precision: Annotated[str | None, typer.Option(help=PRECISION_HELP)] = None,
    budget: Annotated[str, typer.Option(help="How long it may take: 90s, 20m, 2h.")] = "20m",
    trials: Annotated[int | None, typer.Option(min=1, help="Of each dispatch at most.")] = None,
    dispatches: Annotated[
        list[str] | None, typer.Option("--dispatches", help="Only these, by name or a part of it; may be repeated.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="[default: the CPUs of this process]")] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(help="See `eyas devices`; several take turns. [default: the CPU; for GPU targets the first]"),
    ] = None,
    order: Annotated[OrderName, typer.Option(help="What is tried first.")] = OrderName.LEARNED,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    cold: Annotated[
        bool | None,
        typer.Option(
            "--cold/--warm",
            help="Operands out of caches, or in them. [default: cold if the model's weights are more than those hold]",
        ),
    ] = None,
    no_graph: Annotated[bool, typer.Option("--no-graph", help="Try no passes without.")] = False,
    database: Annotated[
        Path | None, typer.Option(help="Where trials are kept. [default: tuning.db in the cache]")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the last session of the database.")] = False,
    report: Annotated[str, typer.Option(metavar="FILE", help="A page on what the database has; tunes nothing.")] = "",
    merge: Annotated[bool, typer.Option("--merge", help="Make one spec of several; the first decides.")] = False,
    show_space: Annotated[
        str, typer.Option("--show-space", metavar="DISPATCH", help="Print what can be chosen for a dispatch.")
    ] = "",
    dump_constraints: Annotated[
        str, typer.Option("--dump-constraints", metavar="DISPATCH", help="The same as MLIR's SMT dialect.")
    ] = "",
    workers: Annotated[str, typer.Option(help="Processes that compile: a number, or `ray`. [default: CPUs]")] = "",
    json: Annotated[bool, typer.Option("--json", help="All that was found as JSON.")] = False,
) -> None:
    """Find faster schedules for a model, by trying them.

    They are written to a tuning spec, which `eyas compile MODEL --tuning-spec SPEC` uses. Each candidate is compared
    with plain loops before it is timed; trials are kept, and a session that was stopped goes on with --resume.
    """
    paths = models or []
    if merge:
        _merge(paths, output)
        return
    from eyas.tune.database import Database

    with Database(database) as opened:
        if report:
            _report(opened, Path(report))
            return
        seconds = parse_budget(budget)
        if resume:
            path, wish, session_target = _last_session(opened, seconds, paths)
            target = target or session_target
        else:
            if len(paths) != 1:
                raise UsageError(f"give one model to tune, got {len(paths)}; --merge takes several specs")
            path, wish = paths[0], None
        request, arrays = _request(path, target, precision, input or [])
        if show_space or dump_constraints:
            _show(request, arrays, show_space, dump_constraints, device, threads)
            return
        from eyas.tune.tuning import Wish, tune, write_spec

        if wish is None:
            wish = Wish(
                seconds, tuple(device or ()), threads, order.value, seed, trials, tuple(dispatches or ()), cold,
                not no_graph, "", _workers(workers),
            )  # fmt: skip
        output = output or Path(f"{path.stem}.spec.mlir")
        if not output.parent.is_dir():
            raise UsageError(f"no such folder: '{output.parent}', for {output}")
        with _progress(json, wish.seconds) as listener:
            tuned = tune(request, arrays, wish, opened, listener, description=str(path.absolute()))
        write_spec(output, tuned.spec)
        if json:
            print_json(to_json(tuned, output))
        else:
            _print(tuned, path, output)


def parse_budget(text: str) -> float:
    """`20m` as seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"--budget {text}: give a time such as 90s, 20m or 2h")
    return float(match[1]) * _UNITS[match[2] or "s"]


def to_json(tuned: Tuned, output: Path) -> dict[str, Any]:
    """What was found, for machines."""
    kept = tuned.kept
    return {
        "spec": str(output),
        "session": tuned.session,
        "entries": len(tuned.spec.entries),
        "disable": list(kept.choice.disable),
        "gain": list(kept.ratio.as_tuple()),
        "noise": kept.noise.level,
        "dispatches": list(tuned.rows),
        "dropped": list(kept.dropped),
        "notes": list(tuned.notes),
    }


def _request(path: Path, target: str, precision: str | None, specs: list[str]) -> tuple[Request, Any]:
    if not path.is_file():
        raise EyasError(f"no such file: '{path}'")
    if path.suffix.lower() not in (*MODEL_ENDINGS, ".tflite"):
        raise UsageError(f"'{path}' is no model; tuning needs the source: {', '.join(MODEL_ENDINGS)}")
    from eyas.pipelines.request import Request
    from eyas.targets import Target

    request = Request(str(path), targets=(Target.parse(target or "llvm-cpu"),), precision=precision)
    return request, lambda signature: make_inputs(specs, signature)


def _workers(text: str) -> int:
    if text and not text.isdecimal():
        raise UsageError(f"--workers {text}: give a number of processes")
    return int(text or 0)


def _last_session(database: Database, seconds: float, paths: list[Path]) -> tuple[Path, Wish, str]:
    from dataclasses import replace

    from eyas.tune.tuning import Wish

    sessions = database.sessions()
    wanted = {str(path.absolute()) for path in paths}
    found = [one for one in sessions if not wanted or one.model in wanted]
    if not found:
        raise UsageError(f"nothing to resume: {database.path} has {len(sessions)} sessions, none of them of this model")
    last = found[-1]
    wish = replace(Wish.from_json(dict(last.options)), session=last.id, seconds=seconds)
    return Path(last.model), wish, last.target


def _report(database: Database, path: Path) -> None:
    from eyas.tune.report import write_report

    write_report(database, path)
    note(f"wrote {path}")


def _merge(paths: list[Path], output: Path | None) -> None:
    if len(paths) < 2 or output is None:
        raise UsageError("--merge needs two specs or more, and -o for the one that is made of them")
    from eyas.tune.spec import Spec, merge
    from eyas.tune.tuning import write_spec

    for path in paths:
        if not path.is_file():
            raise EyasError(f"no such file: '{path}'")
    merged = merge([Spec.parse(path.read_text(), str(path)) for path in paths], note)
    write_spec(output, merged)
    print(f"{output}: {len(merged.entries)} entries of {len(paths)} specs")


def _show(request: Request, arrays: Any, shown: str, dumped: str, device: Any, threads: int | None) -> None:
    from eyas.ir import mlir
    from eyas.tune.dispatches import open_model
    from eyas.tune.show import dump_constraints, show_space

    model = open_model(request, arrays, device[0] if device else None, threads, runs=1)
    dispatch = model.find(shown or dumped)
    with dispatch.function.operation.context, mlir.Location.unknown():
        show = show_space if shown else dump_constraints
        print(show(dispatch.function, dispatch.target, frozenset(request.disable)))


@contextmanager
def _progress(quiet: bool, seconds: float) -> Iterator[Listener]:
    """On a terminal a bar that vanishes; in a pipe a line for each dispatch and note."""
    from eyas.cli.tune_progress import Bar, Lines

    if quiet:
        from eyas.tune.session import Listener

        yield Listener()
    elif sys.stderr.isatty():
        with Bar(seconds) as bar:
            yield bar
    else:
        yield Lines()


def _print(tuned: Tuned, model: Path, output: Path) -> None:
    kept = tuned.kept
    rows: list[tuple[Any, ...]] = [("share", "trials", "before", "after", "gain", "dispatch", "schedule")]
    for row in sorted(tuned.rows, key=lambda one: -one["share"]):
        in_model = row["in_model_before_us"] is not None and row["gain"] is not None
        before = row["in_model_before_us"] if in_model else row["us"]
        after = row["in_model_after_us"] if in_model else row["us"] / row["gain"] if row["us"] and row["gain"] else None
        times = [show_time(us) if us else "" for us in (before, after)]
        gain = f"{before / after:.2f} x" if before and after else ""
        rows.append((f"{row['share']:.1%}", row["trials"], *times, gain, row["dispatch"], row["schedule"] or ""))
    print_table(rows, numbers=range(5))
    print()
    for text in kept.dropped:
        print(f"not kept: {text}")
    if kept.choice.entries or kept.ratio.estimate != 1:
        low, estimate, high = kept.ratio.as_tuple()
        print(
            f"{model}: {estimate:.3f} x as fast ({low:.3f} to {high:.3f}; equal code differs by {kept.noise.level:.1%})"
        )
    else:
        print(f"{model}: nothing is faster beyond noise (equal code differs by {kept.noise.level:.1%})")
    wrong = sum(row["wrong"] + row["crashed"] for row in tuned.rows)
    if wrong:
        print(f"{wrong} candidates were wrong or ended their process; what shows it is kept beside the database")
    # A spec decides schedules; passes are left out by whoever compiles.
    without = "".join(f" --disable {name}" for name in kept.choice.disable)
    print(f"wrote {output}: {len(tuned.spec.entries)} entries; eyas compile {model} --tuning-spec {output}{without}")
