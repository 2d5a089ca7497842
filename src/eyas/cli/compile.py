"""`eyas compile`: a model in, a `.eyas` module (or the program after some phase) out."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.common import PRECISION_HELP, TUNING_HELP, describe_tuning, example_inputs, print_json, show_bytes
from eyas.errors import EyasError, UsageError

if TYPE_CHECKING:
    from eyas.pipelines.request import Phase

NAME = "compile"


def command(
    model: Annotated[Path, typer.Argument(help=".onnx, .pt2, .mlir, .mlirbc or .stablehlo; with --from, a dump.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="[default: MODEL with .eyas or .mlir]")] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="See `eyas targets`; repeated, a variant for each. [default: llvm-cpu]")
    ] = None,
    input: Annotated[
        list[str] | None, typer.Option(help="Fixes a dynamic input: 1x3x224x224xf32, or NAME=1x3x224x224xf32.")
    ] = None,
    dump_phases: Annotated[Path | None, typer.Option(help="Folder for the program after each phase.")] = None,
    from_: Annotated[str, typer.Option("--from", help="MODEL is what this phase left; go on after it.")] = "",
    to: Annotated[str, typer.Option("--to", help="Stop after this phase and write MLIR text.")] = "",
    parameters: Annotated[
        Path | None, typer.Option(help="Weights for --from. [default: parameters.safetensors beside MODEL]")
    ] = None,
    disable: Annotated[list[str] | None, typer.Option(help="A pass or strategy to leave out; may be repeated.")] = None,
    max_arena: Annotated[int, typer.Option(help="Cap on bytes of intermediate values; 0 for none.")] = 0,
    precision: Annotated[str | None, typer.Option(help=PRECISION_HELP)] = None,
    tuning_spec: Annotated[list[Path] | None, typer.Option(help=TUNING_HELP)] = None,
    no_default_specs: Annotated[
        bool, typer.Option("--no-default-specs", help="Without tuning specs that come with the package.")
    ] = False,
    external_weights: Annotated[
        Path | None, typer.Option(help="Write weights to this safetensors file, which stays beside the module.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that compile kernels; 0 for one per CPU.")] = 0,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Use and keep nothing; see `eyas cache`.")] = False,
    timings: Annotated[bool, typer.Option("--timings", help="Say where the time went.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no summary.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
) -> None:
    """Compile a model into a module."""
    from eyas.cache.store import open_store
    from eyas.cli.reproducer import CommandWatcher
    from eyas.pipelines import driver
    from eyas.pipelines.request import Phase, Request, Services
    from eyas.pipelines.timings import Timings
    from eyas.specs import SpecSource
    from eyas.targets import best_first, parse_targets

    begin = time.perf_counter()
    last = _phase(to, "--to") if to else Phase.VM
    after = _phase(from_, "--from") if from_ else None
    _check(model, output, external_weights, after, last, bool(input))
    output = output or model.with_suffix(".mlir" if to else ".eyas")
    if output.exists() and output.samefile(model):
        raise UsageError(f"'{output}' would overwrite the model; choose another with -o")
    arrays, named = example_inputs(input or [])
    request = Request(
        str(model) if after is None else _read_dump(model, parameters),
        arrays,
        named,
        targets=parse_targets(target or "llvm-cpu"),
        disable=tuple(disable or ()),
        max_arena_bytes=max_arena,
        precision=precision,
        after=after,
        last=last,
        external_weights=external_weights,
        tuning_specs=tuple(map(SpecSource.read, tuning_spec or ())),
        default_specs=not no_default_specs,
    )
    stopwatch = Timings()
    watchers = (CommandWatcher(), stopwatch, *_progress(quiet or json))
    services = Services(None if no_cache else open_store(), workers, dump_phases, watchers)
    if to:
        output.write_text(driver.run(request, services).as_text())
        if not quiet and not json:
            print(f"{output}: the program after phase '{to}'")
        if timings:
            print(stopwatch.finish().as_text())
        return
    result = driver.compile(request, services)
    result.save(output)
    summary = _summary(output, result.manifest, begin, dict(result.seconds))
    if len(request.targets) > 1:
        summary["variants"] = [str(one) for one in best_first(request.targets)]
    if timings and json:
        summary["timings"] = stopwatch.finish().as_dict()
    _report(summary, quiet, json)
    if timings and not json:
        print(stopwatch.finish().as_text())


def _read_dump(path: Path, parameters: Path | None) -> Any:
    from eyas.pipelines.dumps import read_dump_file

    return read_dump_file(path, parameters)


def _report(summary: dict[str, Any], quiet: bool, json: bool) -> None:
    if json:
        print_json(summary)
    elif not quiet:
        _print(summary)


def _phase(name: str, option: str) -> Phase:
    from eyas.pipelines.request import Phase

    try:
        return Phase(name)
    except ValueError:
        raise UsageError(f"{option} {name}: no such phase; phases: {', '.join(p.value for p in Phase)}") from None


def _check(
    model: Path, output: Path | None, external: Path | None, first: Phase | None, last: Phase, inputs: bool
) -> None:
    if not model.is_file():
        raise EyasError(f"no such file: '{model}'")
    if first is not None and first.ordinal > last.ordinal:
        raise UsageError(f"--from {first.value} is after --to {last.value}")
    if first is not None and inputs:
        raise UsageError("--input has no meaning with --from: a dump has its shapes already")
    folder = (output or model).parent.resolve()
    if external is not None and external.parent.resolve() != folder:
        raise UsageError(f"--external-weights {external}: the file must be beside the module, in '{folder}'")


def _progress(quiet: bool) -> tuple[Any, ...]:
    if quiet or not sys.stderr.isatty():
        return ()
    from eyas.pipelines.progress import CompileProgress

    return (CompileProgress(),)


def _summary(output: Path, manifest: Any, begin: float, phases: dict[str, float]) -> dict[str, Any]:
    return {
        "module": str(output),
        "bytes": output.stat().st_size,
        "target": manifest["provenance"]["target"],
        "kernels": len(manifest["kernels"]),
        "flops": manifest["flops"],
        **manifest["memory"],
        **({"tuning": tuning} if (tuning := manifest["provenance"].get("tuning")) else {}),
        "cached": not phases,
        "seconds": round(time.perf_counter() - begin, 3),
        "phase_seconds": {name: round(value, 3) for name, value in phases.items()},
    }


def _print(summary: dict[str, Any]) -> None:
    parts = [show_bytes(summary["bytes"])]
    if variants := summary.get("variants"):
        parts.append(f"variants for {', '.join(variants)}")
    else:
        parts.append(f"{summary['kernels']} kernels for {summary['target']}")
    if summary.get("arena_bytes"):
        parts.append(f"arena {show_bytes(summary['arena_bytes'])}")
    if summary["cached"]:
        parts.append("from the cache")
    print(f"{summary['module']}: {', '.join(parts)}, {summary['seconds']:.1f} s")
    for line in describe_tuning(summary.get("tuning", [])):
        print(line)
