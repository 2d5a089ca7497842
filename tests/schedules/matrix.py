"""Edits schedules as a person would, and runs what comes of it: `python tests/schedules/matrix.py --help`.

For each program and target the default schedules are taken from a dump; one field of one of them is changed in the text
and the dump is resumed, either that of the `hal` phase, or that of the phase before it with the strategy noted on the
function. Each is compiled and run in a process of its own, with buffers that end at pages which must not be touched. It
must be refused in words that name the field, or give the numbers of the source framework.

    right     compiled, ran, and the numbers are those of the reference
    refused   a CompileError that names a field
    wrong     other numbers
    outside   wrote or read outside of its buffers, or never ended
    broken    any other error, a refusal that names nothing, or the compiler died
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
TARGETS = {
    "sse2": "llvm-cpu:x86_64",
    "avx2": "llvm-cpu:x86_64:x86-64-v3",
    "avx512": "llvm-cpu:x86_64:x86-64-v4",
    "vmvx": "vmvx",
}
WAYS = ("schedule", "hal")
"""The phase whose dump is edited."""
SECONDS = 300
"""Longer than any of these programs compiles and runs."""
_FIELDS = re.compile(
    r"\b(tiles|grid|packed|staged|block|written|unknown strategy|schedule)\b|no fields here|is no field"
)


def build_guard(folder: Path) -> Path:
    """The library that places buffers before pages which must not be touched."""
    library = folder / "guard.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "guard.c"], check=True)
    return library


@dataclass
class Prepared:
    """A program that was compiled once, with the dumps that are edited."""

    name: str
    target: str
    dumps: dict[str, str]
    weights: dict[str, Any]
    schedules: dict[str, tuple[str, dict[str, Any]]]
    calls: list[tuple[list[Any], list[Any]]]


def prepare(name: str, target: str) -> Prepared:
    import torch
    from programs import PROGRAMS

    from eyas.pipelines import driver
    from eyas.pipelines.request import Phase, Request
    from eyas.targets import Target

    torch.manual_seed(len(name))
    program = PROGRAMS[name]()
    request = Request(
        program.model,
        program.call,
        dynamic_shapes=program.dynamic,
        targets=(Target.parse(target),),
        last=Phase.SCHEDULE,
    )
    compilation = driver.run(request)
    dumps = {"schedule": compilation.as_text()}
    compilation.run([Phase.HAL])
    dumps["hal"] = compilation.as_text()
    calls = []
    with torch.no_grad():
        for call in (program.call, *program.others):
            results = program.model(*call)
            calls.append(([one.numpy() for one in call], [results.numpy()]))
    return Prepared(name, target, dumps, dict(compilation.parameters), noted_schedules(dumps["hal"]), calls)


def noted_schedules(text: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The strategy and schedule of each executable of a dump, as plain data."""
    found = {}
    for line in text.splitlines():
        function = re.search(r"func\.func private @(\w+)", line)
        noted = re.search(r'codegen\.strategy = #codegen\.strategy<"(\w+)", ({.*?})>', line)
        if function and noted:
            found[function[1]] = (noted[1], _plain(noted[2]))
    return found


def _plain(text: str) -> dict[str, Any]:
    return json.loads(re.sub(r"(\w+) = ", r'"\1": ', re.sub(r" : i64", "", text)))


def to_text(value: Any) -> str:
    """Plain data as an MLIR attribute, as one would write it by hand."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {to_text(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_text, value)) + "]"
    return json.dumps(value)


def edited(dump: str, function: str, attribute: str) -> str:
    """A dump whose function has this strategy."""
    lines = dump.splitlines()
    for number, line in enumerate(lines):
        if not re.search(rf"func\.func private @{function}\b", line):
            continue
        if "codegen.strategy = " in line:
            lines[number] = re.sub(r"codegen\.strategy = #codegen\.strategy<.*?}>", lambda _: attribute, line)
        else:
            lines[number] = line.replace("attributes {", f"attributes {{{attribute}, ", 1)
    return "\n".join(lines)


def attempt(prepared: Prepared, function: str, edit: Any, way: str, guard: ctypes.CDLL | None) -> tuple[str, str]:
    """The outcome of one edit, and what there is to say about it. Runs in a process of its own."""
    import numpy as np

    from eyas.errors import EyasError
    from eyas.pipelines import driver
    from eyas.pipelines.dumps import read_dump
    from eyas.pipelines.request import Phase, Request
    from eyas.targets import Target

    attribute = f'codegen.strategy = #codegen.strategy<"{edit.strategy}", {to_text(edit.schedule)}>'
    text = edited(prepared.dumps[way], function, attribute)
    try:
        request = Request(
            read_dump(text, prepared.weights),
            targets=(Target.parse(prepared.target),),
            disable=("optimize-llvm",),
            after=Phase(way),
        )
        result = driver.compile(request)
    except EyasError as error:
        said = str(error).split("as noted:")[-1]
        named = type(error).__name__ == "CompileError" and _FIELDS.search(said)
        return ("refused" if named else "broken"), f"{type(error).__name__}: {error}"
    if guard is not None:
        guard.guard_on()
    module = result.load("local-task", threads=2)
    worst = 0.0
    for inputs, expected in prepared.calls:
        arrays = [array if guard is None else _guarded(array, guard) for array in inputs]
        results = module(*arrays)
        results = results if isinstance(results, tuple | list) else [results]
        for ours, theirs in zip(results, expected, strict=True):
            ours = np.asarray(ours).astype(np.float64)
            theirs = theirs.astype(np.float64)
            if ours.shape != theirs.shape or not np.isfinite(ours).all():
                return "wrong", "shape or values that are not numbers"
            worst = max(worst, float(np.abs(ours - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-3)))
        if guard is not None and guard.guard_check():
            return "outside", "something was written beside a buffer"
    return ("right" if worst < 2e-5 else "wrong"), f"largest difference {worst:.1e}"


def _guarded(array: Any, guard: ctypes.CDLL) -> Any:
    """A copy whose last element is the last before a page that must not be touched."""
    import numpy as np

    guard.guard_place.restype = ctypes.c_void_p
    guard.guard_place.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
    place = guard.guard_place(64, max(array.nbytes, 1))
    memory = (ctypes.c_char * array.nbytes).from_address(place)
    copy = np.frombuffer(memory, array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def apart(*arguments: Any) -> tuple[str, str]:
    """`attempt` in a child, so that whatever it does ends there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.alarm(SECONDS)
            try:
                outcome = attempt(*arguments)
            except BaseException as error:
                outcome = "broken", f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(outcome, pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    if data:
        return pickle.loads(data)
    return "outside", f"the process ended with signal {os.WTERMSIG(status)}"


def all_edits(prepared: Prepared, random_: random.Random, pairs: int) -> Iterator[tuple[str, Any]]:
    from edits import edits, misspelt, together

    for number, (function, (strategy, schedule)) in enumerate(prepared.schedules.items()):
        if strategy == "loops":
            continue
        for edit in edits(strategy, schedule):
            yield function, edit
        for edit in together(strategy, schedule, random_, pairs):
            yield function, edit
        if number == 0 and prepared.name in ("linear", "softmax"):
            for edit in misspelt(strategy, schedule):
                yield function, edit


def _is_enough(tried: collections.Counter[str], wanted: int) -> bool:
    """So many were tried, and a third of them ran; or twice as many."""
    total = sum(tried.values())
    return total >= 2 * wanted or (total >= wanted and tried["refused"] <= total * 2 // 3)


def run(
    names: list[str], targets: list[str], per_program: int, seed: int, pairs: int, in_turn: bool, report: Any
) -> dict[str, Any]:
    """Tries edits of programs for targets, `per_program` of each (0: all), and counts what becomes of them. `in_turn`
    gives each program one of the targets."""
    compile_here()
    path = os.environ.get("LD_PRELOAD")
    guard = ctypes.CDLL(path) if path else None
    counts: collections.Counter[str] = collections.Counter()
    by_strategy: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    bad: list[str] = []
    for number, name in enumerate(names):
        for target in [targets[number % len(targets)]] if in_turn else targets:
            random_ = random.Random(f"{seed} {name} {target}")
            prepared = prepare(name, TARGETS[target])
            found = list(all_edits(prepared, random_, pairs))
            begin, tried = time.time(), collections.Counter()
            for function, edit in random_.sample(found, len(found)) if per_program else found:
                if per_program and _is_enough(tried, per_program):
                    break
                for way in random_.choices(WAYS) if per_program else WAYS:
                    outcome, text = apart(prepared, function, edit, way, guard)
                    tried[outcome] += 1
                    by_strategy[f"{target} {prepared.schedules[function][0]}"][outcome] += 1
                    line = f"{name} | {target} | {function} | {way} | {edit.what} -> {outcome}: {text}"
                    if outcome not in ("right", "refused"):
                        bad.append(line)
                        print(line, file=sys.stderr, flush=True)
                    if report is not None:
                        print(line, file=report, flush=True)
            counts.update(tried)
            print(
                f"{name} {target}: {sum(tried.values())} edits in {time.time() - begin:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return {"counts": counts, "by_strategy": by_strategy, "bad": bad}


def compile_here() -> None:
    """Has executables compiled in the process that asks: it is one of its own already."""
    from eyas.codegen.backends import backend_of
    from eyas.ir import make_context, parse_module
    from eyas.passes.codegen import compile_executables
    from eyas.targets import Target

    def compile_jobs(jobs, *_, **__):
        made = []
        for job in jobs:
            target = Target.parse(job.target)
            module = parse_module(job.bytecode, make_context(), job.name)
            made.append(backend_of(target).compile(module, target, frozenset(job.disabled)))
        return made

    compile_executables.compile_jobs = compile_jobs


def plant_overrun() -> None:
    """Tails of workgroups are forgotten: lanes run beyond the piece of a workgroup, and beyond the last element."""
    from eyas.codegen.llvm_cpu.emit import NestEmitter

    NestEmitter._divides = lambda self, loop, step: True


def main() -> None:
    from programs import PROGRAMS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="names, separated by commas")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--per-program", type=int, default=0, help="how many edits of each program; 0 for all")
    parser.add_argument("--pairs", type=int, default=30, help="how many edits of several fields for each schedule")
    parser.add_argument("--in-turn", action="store_true", help="each program for one of the targets")
    parser.add_argument("--plant", action="store_true", help="plant a fault in the code generator, which must be found")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where to write the counts")
    parser.add_argument("--report", type=Path, help="where to write a line for each edit")
    options = parser.parse_args()
    if "LD_PRELOAD" not in os.environ:
        with tempfile.TemporaryDirectory(prefix="eyas-guard-") as folder:
            environment = {**os.environ, "LD_PRELOAD": str(build_guard(Path(folder)))}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)
    if options.plant:
        plant_overrun()
    names, targets = options.programs.split(","), options.targets.split(",")
    report = open(options.report, "w") if options.report else None
    result = run(names, targets, options.per_program, options.seed, options.pairs, options.in_turn, report)
    for strategy, counts in sorted(result["by_strategy"].items()):
        print(f"{strategy:24}", ", ".join(f"{counts[one]} {one}" for one in sorted(counts)))
    print("all:", ", ".join(f"{count} {one}" for one, count in sorted(result["counts"].items())))
    if options.json:
        options.json.write_text(json.dumps(result))
    sys.exit(1 if result["bad"] else 0)


if __name__ == "__main__":
    main()
