"""`eyas.verify`: everything in order. Compare, find the first wrong layer, cut out a reproducer, name the culprit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eyas.errors import UsageError
from eyas.program.dtypes import numpy_dtype
from eyas.program.examples import random_array
from eyas.program.program import ImportedProgram
from eyas.specs import as_sources
from eyas.targets import Target
from eyas.verification import phases, reproducer
from eyas.verification.bisect import Blame, bisect
from eyas.verification.build import Build
from eyas.verification.compare import Tolerance
from eyas.verification.layers import Tracer
from eyas.verification.report import Report
from eyas.verification.source import Source, open_source

InputMaker = Callable[[ImportedProgram], Sequence[np.ndarray]]


def verify(
    model: Any,
    inputs: Sequence[Any] = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    bisect: bool = False,
    reproducer: str | Path | None = None,
    seed: int = 0,
    disable: Sequence[str] = (),
    target: str = "llvm-cpu",
    device: str | None = None,
    threads: int | None = None,
    workers: int = 0,
    runs: int = 1,
    precision: str | None = None,
    tuning_spec: Any = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Compares a compiled model with its framework, layer by layer, on the same inputs.

    `model` is what `eyas.compile` takes, `inputs` and `kwargs` are one call's arguments; without any, numbers drawn
    from `seed` are used, where shapes are known. The error of a layer is its largest difference relative to its largest
    magnitude; `rtol` and `atol` replace the tolerances of its element type. On a mismatch `bisect` names the pass or
    strategy to blame, and `reproducer` is a folder for the smallest piece of the program that is still wrong. With
    `runs` above 1 each program is called that often, and a result that changes counts. `target` and `device` are those
    of `eyas.compile`: portable modules and other devices are verified as machine code is. With a `precision` the model
    is compiled in it, and tolerances are those of that type. `tuning_spec` is that of `eyas.compile`.

        report = eyas.verify(model, (x,), bisect=True)
        assert report.ok, report
    """
    specs = as_sources(tuning_spec)
    build = Build(device, threads, tuple(disable), workers, runs, Target.parse(target), precision, specs)
    traced = _takes_examples(model, (inputs, kwargs or {}))
    source = open_source(model, inputs if traced else (), (kwargs or {}) if traced else {}, dynamic_shapes, build)

    def arrays(program: ImportedProgram) -> Sequence[np.ndarray]:
        if not inputs and not kwargs and program.signature.arguments:
            return random_inputs(program, seed)
        leaves = source.flatten(program, inputs, kwargs or {})
        return [_as_array(leaf, one.dtype) for leaf, one in zip(leaves, program.signature.arguments, strict=True)]

    return run(source, arrays, build, Tolerance(rtol, atol, precision), bisect, reproducer, progress)


def run(
    source: Source,
    make_inputs: InputMaker,
    build: Build,
    tolerance: Tolerance,
    with_bisect: bool = False,
    folder: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Verifies a source; `make_inputs` sees the imported program and gives its flat inputs."""
    say = progress or (lambda _: None)
    say("importing")
    program = source.program().program
    inputs = [np.asarray(array, order="C") for array in make_inputs(program)]
    say("running the reference")
    tracer = Tracer(source, build, inputs, source.reference(inputs), tolerance, say)
    trace = tracer.trace()
    report = Report(
        str(program.source.description), source.framework, str(program.signature), trace.results, trace.layers
    )
    report.hidden = trace.hidden
    first = trace.first
    if first is None:
        return report
    found = None
    if first.layer.op and (with_bisect or folder is not None):
        found = reproducer.find(tracer, first.layer.name, trace.tapped)
    if with_bisect:
        _name_culprit(report, tracer, found)
    if folder is not None and found is not None:
        blame = f"To blame: {report.blame.name}." if report.blame and report.blame.culprits else ""
        report.reproducer, report.command = str(folder), found.write(Path(folder), build, blame)
        report.reproducer_ops = found.piece.ops
        report.reproducer_dispatches = found.dispatches(build)
    return report


def _name_culprit(report: Report, tracer: Tracer, found: reproducer.Reproducer | None) -> None:
    """Bisects on the reproducer, which compiles quickly, and makes sure on the whole program."""

    def whole_is_right(off: tuple[str, ...]) -> bool:
        tracer.progress(f"the program {_without(off, tracer.build)}")
        return not any(row.wrong for row in tracer.results(off))

    def piece_is_right(off: tuple[str, ...]) -> bool:
        assert found is not None
        tracer.progress(f"the reproducer {_without(off, tracer.build)}")
        return reproducer.is_wrong(tracer, found.piece, found.expected, off) is None

    build = tracer.build
    is_right = piece_is_right if found is not None else whole_is_right
    blame: Blame = bisect(is_right, build.switches, build.strategy_switches)
    if not blame.culprits and found is not None:
        where = phases.explain(tracer.build, found, tracer.tolerance)
        blame = Blame((), blame.cures, blame.tried, f"{blame.reason}; {where}")
    report.blame = blame
    untapped_is_wrong = any(row.wrong for row in report.results)
    if blame.culprits and found is not None and untapped_is_wrong:
        report.confirmed = whole_is_right(blame.culprits)


def _without(off: tuple[str, ...], build: Build) -> str:
    if not off:
        return "once more"
    return f"without {'anything optional' if off == build.switches else ', '.join(off)}"


def _takes_examples(model: Any, inputs: Any) -> bool:
    """Modules and functions are traced with their inputs; files and exported programs have their shapes already."""
    from eyas.frontends import frontend_of

    kind = frontend_of(model, inputs)
    is_function = callable(model) and not hasattr(model, "graph_signature")
    return kind == "jax" or (kind == "torch" and is_function)


def _as_array(leaf: Any, dtype: str) -> np.ndarray:
    if type(leaf).__module__.partition(".")[0] == "torch":
        from eyas.frontends.torch.tensors import as_numpy

        return as_numpy(leaf)
    return np.asarray(leaf).astype(numpy_dtype(dtype), copy=False)


def random_inputs(program: ImportedProgram, seed: int) -> list[np.ndarray]:
    """Arrays of the signature's shapes."""
    arrays = []
    for index, argument in enumerate(program.signature.arguments):
        if not all(isinstance(dim, int) for dim in argument.dims):
            raise UsageError(f"'{argument}' has no fixed size; give inputs")
        shape = [int(dim) for dim in argument.dims]
        arrays.append(random_array(shape, numpy_dtype(argument.dtype), seed + index))
    return arrays
