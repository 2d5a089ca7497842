"""PyTorch's operator database: `python -m tests.conformance.torch_ops [--only REGEX] [--passes f32,gradients]`."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conformance.outcome import Outcome
from tests.conformance.report import write_section
from tests.conformance.target import add_arguments, set_target
from tests.conformance.torch_ops.check import SAMPLES, SEED, chosen, parse_case
from tests.conformance.torch_ops.ops import DTYPES, names_of
from tests.conformance.torch_ops.report import HEADING, origin, section, tables
from tests.conformance.workers import run_all

TIMEOUT_S = 300
GROUP = 24

# A pass and an op.
Key = tuple[str, str]
Found = dict[Key, dict[int, list]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="REGEX", help="ops whose name it is found in")
    parser.add_argument("--passes", default=",".join(DTYPES), help=f"some of {','.join(DTYPES)}")
    parser.add_argument("--samples", default="all", metavar="N", help="samples of each op, or all")
    parser.add_argument("--seed", type=int, default=0, help="of the samples, and of which are taken")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds for one group of samples")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing after so long")
    parser.add_argument("--results", type=Path, help="file of JSON lines that is added to; what it has is not run")
    parser.add_argument("--write", type=Path, help="Markdown file whose section is replaced")
    add_arguments(parser)
    options = parser.parse_args()
    set_target(options)
    os.environ[SEED], os.environ[SAMPLES] = str(options.seed), options.samples
    passes = options.passes.split(",")
    if unknown := set(passes) - set(DTYPES):
        parser.error(f"no such pass: {', '.join(sorted(unknown))}; there are {', '.join(DTYPES)}")
    until = time.monotonic() + 60 * options.minutes
    names = [(pass_, op) for pass_ in passes for op in names_of(pass_) if re.search(options.only, op)]
    lines = _lines(options.results)
    counts = _counts(names, lines, options, until)
    wanted = {key: chosen(key[1], counts[key]) for key in names if key in counts}
    found = _found(lines, wanted)
    _run(wanted, found, options, until)
    results = {key: [found[key][i] for i in sorted(found[key])] for key in wanted if found.get(key)}
    print("\n".join(tables(results, counts)))
    if options.write:
        write_section(
            options.write, HEADING, section(results, counts, _origins(_lines(options.results), list(results)))
        )
    bad = ("wrong", "crashed", "bug")
    return 1 if any(part[1] in bad for parts in results.values() for part in parts) else 0


def _counts(names: Sequence[Key], lines: list[dict], options: argparse.Namespace, until: float) -> dict[Key, int]:
    """How many samples each op has; making them takes long enough to be shared out too."""
    counts = {(line["pass"], line["op"]): line["count"] for line in lines if line.get("seed") == options.seed}

    def note(outcome: Outcome) -> None:
        pass_, _, op = outcome.name.partition("/")
        if outcome.kind == "passed":
            counts[pass_, op] = int(outcome.reason)
            _add(options.results, {"pass": pass_, "op": op, "seed": options.seed, "count": counts[pass_, op]})
        else:
            print(f"no samples   {outcome.name}: {outcome.reason}", flush=True)

    cases = [f"{pass_}/{op}" for pass_, op in names if (pass_, op) not in counts]
    check = "tests.conformance.torch_ops.check:count_samples"
    run_all(check, cases, note, jobs=options.jobs, timeout_s=options.timeout, pinned=True, until=until)
    return counts


def _run(wanted: dict[Key, list[int]], found: Found, options: argparse.Namespace, until: float) -> None:
    """Groups of samples; one that kills its process, or takes too long, is halved."""
    cases = []
    for (pass_, op), indices in wanted.items():
        known = found.get((pass_, op), {})
        for start in range(0, len(indices), GROUP):
            stop = min(start + GROUP, len(indices))
            if any(index not in known for index in indices[start:stop]):
                cases.append(f"{pass_}/{op}@{start}:{stop}")

    def note(outcome: Outcome) -> None:
        op, pass_, start, stop = parse_case(outcome.name)
        parts = outcome.parts
        if outcome.kind == "crashed":
            if stop - start > 1:
                middle = (start + stop) // 2
                halves.extend([f"{pass_}/{op}@{start}:{middle}", f"{pass_}/{op}@{middle}:{stop}"])
                return
            parts = [[wanted[pass_, op][start], "crashed", outcome.reason]]
        for part in parts:
            found.setdefault((pass_, op), {})[part[0]] = list(part)
        for (kind, reason), same in _by_reason(parts).items():
            print(f"{kind:12} {pass_}/{op} {same[0]} ({len(same)}): {reason}", flush=True)
        seconds = round(outcome.seconds, 2)
        line = {"pass": pass_, "op": op, "seconds": seconds, "parts": list(parts), "origin": origin()}
        _add(options.results, line)

    while cases and time.monotonic() < until:
        halves: list[str] = []
        run_all(
            "tests.conformance.torch_ops.check:check_range",
            cases,
            note,
            jobs=options.jobs,
            timeout_s=options.timeout,
            lifetime=40,
            pinned=True,
            until=until,
        )
        cases = halves


def _by_reason(parts: Sequence[Sequence[Any]]) -> dict[tuple[str, str], list[int]]:
    """Samples that did not pass, by kind and reason."""
    reasons: dict[tuple[str, str], list[int]] = {}
    for index, kind, reason in parts:
        if kind not in ("passed", "skipped"):
            reasons.setdefault((kind, reason), []).append(index)
    return reasons


def _add(path: Path | None, line: dict[str, Any]) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _lines(path: Path | None) -> list[dict[str, Any]]:
    """What runs before this one left. One that was killed may have left half a line at its end."""
    lines = []
    if path is not None and path.exists():
        text = path.read_text()
        for line in text.splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        if text and not text.endswith("\n"):
            with path.open("a") as file:
                file.write("\n")
    return lines


def _origins(lines: list[dict[str, Any]], names: Sequence[Key]) -> dict[str, list[str]]:
    """By pass, what its results were made with; of an op that was run twice, the later. Now, if no file says."""
    last = {(line["pass"], line["op"]): line.get("origin", "unknown") for line in lines if "parts" in line}
    origins: dict[str, list[str]] = {}
    for key in names:
        made = last.get(key, origin())
        if made not in origins.setdefault(key[0], []):
            origins[key[0]].append(made)
    return origins


def _found(lines: list[dict[str, Any]], wanted: dict[Key, list[int]]) -> Found:
    """By op and sample; of a sample that was run twice, the later."""
    found: Found = {}
    for line in lines:
        if "parts" in line:
            key = line["pass"], line["op"]
            mine = set(wanted.get(key, ()))
            found.setdefault(key, {}).update({part[0]: part for part in line["parts"] if part[0] in mine})
    return found


if __name__ == "__main__":
    sys.exit(main())
