"""`eyas compile`: a model in, a `.eyas` module (or the program after some phase) out."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eyas.cli.common import example_inputs, print_json, show_bytes
from eyas.errors import EyasError, UsageError

if TYPE_CHECKING:
    from eyas.cache.modules import ModuleCache
    from eyas.pipelines.compiler import Compilation
    from eyas.pipelines.phases import Options, Phase

NAME = "compile"


def command(
    model: Annotated[Path, typer.Argument(help=".onnx, .pt2, .mlir, .mlirbc or .stablehlo; with --from, a dump.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="[default: MODEL with .eyas or .mlir]")] = None,
    target: Annotated[str, typer.Option(help="See `eyas targets`.")] = "llvm-cpu",
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
    external_weights: Annotated[
        Path | None, typer.Option(help="Write weights to this safetensors file, which stays beside the module.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that compile kernels; 0 for one per CPU.")] = 0,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Use and keep nothing; see `eyas cache`.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress and no summary.")] = False,
    json: Annotated[bool, typer.Option("--json", help="The summary as JSON.")] = False,
) -> None:
    """Compile a model into a module."""
    from eyas.cache.modules import ModuleCache
    from eyas.cache.store import open_store
    from eyas.frontends.collection import paused_collection
    from eyas.module.container import read
    from eyas.pipelines.phases import Options, Phase

    begin = time.perf_counter()
    last = _phase(to, "--to") if to else Phase.VM
    first = _phase(from_, "--from") if from_ else None
    _check(model, output, external_weights, first, last, bool(input))
    store = None if no_cache else open_store()
    options = Options(target, tuple(disable or ()), max_arena, workers, store=store)
    output = output or model.with_suffix(".mlir" if to else ".eyas")
    if output.exists() and output.samefile(model):
        raise UsageError(f"'{output}' would overwrite the model; choose another with -o")
    modules = fingerprint = None
    if first is None and not to and not external_weights:
        modules = ModuleCache.of(store, target, options.disable, max_arena)
    if modules is not None:
        fingerprint = _fingerprint(model, input or [], modules)
        output.parent.mkdir(parents=True, exist_ok=True)
        if fingerprint is not None and not dump_phases and modules.copy(fingerprint, output):
            _report(_summary(output, read(output, verify=False).manifest, begin, {}), quiet, json)
            return
    if last.ordinal >= Phase.CODEGEN.ordinal:
        from eyas.codegen.children import prepare_children

        prepare_children(target, workers)
    with paused_collection():
        compilation = _run(model, options, first, last, parameters, input or [], dump_phases, quiet or json)
    if to:
        output.write_text(compilation.as_text())
        if not quiet and not json:
            print(f"{output}: the program after phase '{to}'")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    finished = compilation.finish(external_weights)
    finished.write(output)
    if modules is not None and fingerprint is not None and not finished.gave_up:
        modules.keep_copy(fingerprint, output)
    _report(_summary(output, finished.manifest, begin, compilation.seconds), quiet, json)


def _fingerprint(model: Path, inputs: list[str], modules: ModuleCache) -> str | None:
    """The digest by which this very compilation is found again; None for what has one only once it is imported."""
    from eyas.frontends import frontend_of
    from eyas.frontends.staging import stage

    if frontend_of(model) != "from_onnx":
        return None
    arrays, named = example_inputs(inputs)
    return stage(str(model), arrays, named, None, modules.store.largest_bytes).fingerprint


def _report(summary: dict[str, Any], quiet: bool, json: bool) -> None:
    if json:
        print_json(summary)
    elif not quiet:
        _print(summary)


def _phase(name: str, option: str) -> Phase:
    from eyas.pipelines.phases import Phase

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


def _run(
    model: Path,
    options: Options,
    first: Phase | None,
    last: Phase,
    parameters: Path | None,
    inputs: list[str],
    dump: Path | None,
    quiet: bool,
) -> Compilation:
    from eyas.cli import reproducer
    from eyas.frontends import import_model
    from eyas.pipelines.compiler import PARAMETERS_FILE, Compilation
    from eyas.pipelines.phases import Phase

    with _progress(quiet) as shown:
        if shown is not None:
            options = replace(options, on_kernel=shown.on_kernel)
        if first is None:
            arrays, named = example_inputs(inputs)
            compilation = Compilation.of(import_model(str(model), *arrays, **named), options)
        else:
            from eyas.pipelines import weights_file

            beside = model.parent / PARAMETERS_FILE
            file = parameters or (beside if beside.exists() else None)
            weights = weights_file.read(file) if file else {}
            compilation = Compilation.resume(model.read_bytes(), options, weights, str(model))
        reproducer.watch(compilation)
        following = list(Phase)[0 if first is None else first.ordinal + 1 :]
        if following:
            on_phase = None if shown is None else lambda phase: shown.on_phase(phase, compilation)
            compilation.run(following[0], last, dump, on_phase=on_phase)
    return compilation


def _progress(quiet: bool) -> Any:
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from eyas.cli.progress import CompileProgress

    return CompileProgress()


def _summary(output: Path, manifest: Any, begin: float, phases: dict[str, float]) -> dict[str, Any]:
    return {
        "module": str(output),
        "bytes": output.stat().st_size,
        "target": manifest["provenance"]["target"],
        "kernels": len(manifest["kernels"]),
        "flops": manifest["flops"],
        **manifest["memory"],
        "cached": not phases,
        "seconds": round(time.perf_counter() - begin, 3),
        "phase_seconds": {name: round(value, 3) for name, value in phases.items()},
    }


def _print(summary: dict[str, Any]) -> None:
    parts = [show_bytes(summary["bytes"]), f"{summary['kernels']} kernels for {summary['target']}"]
    if summary.get("arena_bytes"):
        parts.append(f"arena {show_bytes(summary['arena_bytes'])}")
    if summary["cached"]:
        parts.append("from the cache")
    print(f"{summary['module']}: {', '.join(parts)}, {summary['seconds']:.1f} s")
