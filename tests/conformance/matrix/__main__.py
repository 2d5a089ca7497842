"""Dispatches of the zoo, for every CPU: compiled and linked, not run. Goes on where it was interrupted.

python -m tests.conformance.matrix [--dispatches 320] [--jobs N] [--folder FOLDER] [--write docs/conformance.md]
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import logging
import os
import random
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path

from tests.conformance.matrix.collect import Dispatch, dispatches_of, sampled
from tests.conformance.matrix.compile import CPUS, Result, compile_all
from tests.conformance.report import write_section

from eyas.errors import EyasError
from eyas.targets import Target

HEADING = "Compile matrix"
# So many of one model: then many models have a part in it.
PER_MODEL = 32
BATCH = 40


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.matrix", description=__doc__)
    parser.add_argument("--dispatches", type=int, default=320, help="how many different ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--folder", type=Path, default=Path("build/compile-matrix"), help="what was done before")
    parser.add_argument("--write", type=Path, help="Markdown file whose section is replaced")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    dispatches = _collected(options.folder / "dispatches.jsonl", options.dispatches)
    results = _compiled(options.folder / "results.jsonl", dispatches, options.jobs)
    lines = report(dispatches, results)
    print("\n".join(lines))
    if options.write:
        write_section(options.write, HEADING, lines)
    return int(any(one.problem for one in results))


def _collected(path: Path, count: int) -> list[Dispatch]:
    """From what was collected before, and from further models until there are enough."""
    from tests.conformance.zoo.check import all_cases

    logging.disable(logging.WARNING)
    found = {one.digest: one for one in _read(path, Dispatch)}
    names = list(all_cases())
    random.Random(0).shuffle(names)
    visited = {one.model for one in found.values()}
    with path.open("a") as file:
        for name in names:
            if len(found) >= count:
                break
            if name in visited:
                continue
            new = [one for one in _of_case(name) if one.digest not in found]
            for one in sampled(new, PER_MODEL):
                found[one.digest] = one
                print(json.dumps(dataclasses.asdict(one)), file=file, flush=True)
            print(f"{len(found):4} dispatches after {name}", flush=True)
    return list(found.values())[:count]


def _of_case(name: str) -> list[Dispatch]:
    import torch
    from tests.conformance.zoo.check import all_cases

    torch.manual_seed(0)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            program = all_cases()[name].make()
            return list(dispatches_of(name, program.model, program.inputs(0)))
        except (EyasError, ImportError, OSError) as error:
            print(f"skipped {name}: {error}", flush=True)
            return []


def _compiled(path: Path, dispatches: list[Dispatch], jobs: int) -> list[Result]:
    wanted = {(one.digest, cpu): (one, cpu) for one in dispatches for cpu in CPUS}
    done = {(one.dispatch, one.cpu): one for one in _read(path, Result) if (one.dispatch, one.cpu) in wanted}
    left = [pair for key, pair in wanted.items() if key not in done]
    random.Random(0).shuffle(left)
    begin = time.monotonic()
    with path.open("a") as file:
        for start in range(0, len(left), BATCH):
            for one in compile_all(left[start : start + BATCH], jobs):
                done[one.dispatch, one.cpu] = one
                print(json.dumps(dataclasses.asdict(one)), file=file, flush=True)
                if one.problem:
                    print(f"{one.dispatch} for {one.cpu}: {one.problem}", flush=True)
            print(f"{len(done):5} of {len(wanted)}, {time.monotonic() - begin:.0f} s", flush=True)
    return list(done.values())


def _read(path: Path, kind: type) -> Iterable:
    lines = path.read_text().splitlines() if path.exists() else []
    return [kind(**json.loads(line)) for line in lines]


def report(dispatches: list[Dispatch], results: list[Result]) -> list[str]:
    """Lines of Markdown: a row for each CPU, and what did not compile as it should."""
    models = {one.model for one in dispatches}
    problems = [one for one in results if one.problem]
    lines = [
        f"{len(dispatches)} different dispatches of {len(models)} models of the zoo, each through LLVM for"
        f" {len(CPUS)} CPUs and linked: {len(results)} compilations, {len(problems)} that did not go as they should"
        f" (`make compile-matrix`, {datetime.date.today().isoformat()}).",
        "",
        "| CPU | vectors | dispatches | with a strategy other than loops | problems |",
        "|---|---:|---:|---:|---:|",
    ]
    for cpu in CPUS:
        mine = [one for one in results if one.cpu == cpu]
        fast = sum(one.strategy not in ("", "loops") for one in mine)
        bits = Target.parse(f"llvm-cpu:{cpu}").vector_bits
        bad = sum(bool(one.problem) for one in mine)
        lines.append(f"| {cpu} | {bits or 'none'} | {len(mine)} | {fast} | {bad} |")
    if problems:
        names = {one.digest: f"{one.model} {one.name}" for one in dispatches}
        lines += ["", "| dispatch | CPU | problem |", "|---|---|---|"]
        lines += [f"| {names[one.dispatch]} | {one.cpu} | {one.problem.replace('|', '/')} |" for one in problems]
    return lines


if __name__ == "__main__":
    sys.exit(main())
