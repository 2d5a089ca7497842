"""One dispatch for one CPU: through LLVM in a child process, and linked."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from tests.conformance.matrix.collect import Dispatch
from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.children import compile_jobs
from eyas.codegen.common.analysis import analysis_of
from eyas.codegen.jobs import Job
from eyas.dialects import codegen
from eyas.errors import EyasError
from eyas.ir import make_context, parse_module
from eyas.passes.hal.pack_weights import note_packed
from eyas.targets import Target

CPUS = (
    *(f"x86_64:{cpu}" for cpu in ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "haswell", "skylake")),
    *(f"x86_64:{cpu}" for cpu in ("skylake-avx512", "icelake-server", "sapphirerapids", "graniterapids")),
    *(f"x86_64:{cpu}" for cpu in ("znver2", "znver3", "znver4", "znver5")),
    *(
        f"aarch64:{cpu}"
        for cpu in ("cortex-a53", "cortex-a76", "neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1")
    ),
    *("riscv64:generic-rv64", "riscv64:generic-rv64:+v", "riscv64:spacemit-x60"),
)
"""Architecture and CPU of each target."""


@dataclass(frozen=True)
class Result:
    """What became of one dispatch for one CPU; `problem` is empty when it was compiled as it should be, and linked."""

    dispatch: str
    cpu: str
    strategy: str
    problem: str


def compile_all(pairs: Sequence[tuple[Dispatch, str]], workers: int) -> list[Result]:
    """Compiles each dispatch for its CPU, so many at a time."""
    jobs = [_job(dispatch, Target.parse(f"llvm-cpu:{cpu}")) for dispatch, cpu in pairs]
    results = []
    for (dispatch, cpu), job in zip(pairs, jobs, strict=True):
        if isinstance(job, str):
            results.append(Result(dispatch.digest, cpu, "", job))
    kept = [(pair, job) for pair, job in zip(pairs, jobs, strict=True) if isinstance(job, Job)]
    try:
        made = compile_jobs([job for _, job in kept], workers)
    except EyasError:  # one of them: each by itself, to know which
        made = [_alone(job) for _, job in kept]
    for ((dispatch, cpu), _), one in zip(kept, made, strict=True):
        if isinstance(one, str):
            results.append(Result(dispatch.digest, cpu, "", one))
            continue
        problem = one.given_up or _link(one.object, Target.parse(f"llvm-cpu:{cpu}"))
        results.append(Result(dispatch.digest, cpu, one.strategy, problem))
    return results


def _alone(job: Job):
    try:
        return compile_jobs([job], 1)[0]
    except EyasError as error:
        return f"{type(error).__name__}: {error}"


def _job(dispatch: Dispatch, target: Target) -> Job | str:
    """With the strategy noted that is selected for the target, and all weights packed that it would like packed."""
    module = parse_module(dispatch.text, make_context(), dispatch.name)
    function = module.body.operations[0]
    try:
        with module.context, mlir.Location.unknown():
            found = analysis_of(function, {}, target.near_bytes)
            strategy, _ = backend_of(target).select(function, target, frozenset(), found)
            name = mlir.StringAttr.get(strategy.name)
            function.attributes[codegen.STRATEGY] = codegen.StrategyAttr.get(name, strategy.schedule_attribute())
            if strategy.packable:
                note_packed(function, list(strategy.packable))
    except EyasError as error:
        return f"{type(error).__name__}: {error}"
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    text = module.operation.get_asm(enable_debug_info=False)
    return Job(dispatch.name, buffer.getvalue(), str(target), (), text)


def _link(object_: bytes, target: Target) -> str:
    try:
        backend_of(target).link([object_], ["kernel"], target, "dispatch")
    except EyasError as error:
        return f"not linked: {error}"
    return ""
