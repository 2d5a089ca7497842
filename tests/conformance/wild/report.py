"""The page of the suite: every file with its times beside those of the engine that it was made for."""

from __future__ import annotations

import datetime
import json
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.conformance.outcome import Outcome
from tests.conformance.wild.case import Wild

_PACKAGES = ("eyas", "onnxruntime", "ai-edge-litert", "torch")


def summary(outcomes: Sequence[Outcome]) -> list[str]:
    """How many are right, how long they took to compile, and how fast they are."""
    measured = [json.loads(outcome.reason) for outcome in outcomes if outcome.kind == "passed"]
    lines = [f"{len(measured)} of {len(outcomes)} are right."]
    if not measured:
        return lines
    compile_s = sorted(one["compile_s"] for one in measured)
    ratios = [one["theirs_ms"] / one["eyas_ms"] for one in measured]
    most = compile_s[min(len(compile_s) - 1, math.ceil(0.95 * len(compile_s)) - 1)]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    return [
        *lines,
        f"Compiled cold: median {statistics.median(compile_s):.1f} s, 95 % within {most:.1f} s, at most "
        f"{compile_s[-1]:.1f} s.",
        f"Speed against the engine that each was made for: geometric mean {mean:.2f}, least {min(ratios):.2f}, "
        f"{sum(ratio >= 1 for ratio in ratios)} of {len(ratios)} at least as fast.",
    ]


def write_page(path: Path, outcomes: Sequence[Outcome], cases: Mapping[str, Wild]) -> None:
    packages = {file.package for case in cases.values() for file in case.files}
    versions = ", ".join(filter(None, map(_version, _PACKAGES)))
    lines = [
        "# Models in the wild",
        "",
        f"`make conformance-wild ARGS='--write docs/wild.md'`, {datetime.date.today().isoformat()}, {versions}, "
        f"Python {platform.python_version()} on {platform.machine()}, two threads.",
        "",
        f"{len(cases)} model files from {len(packages)} packages of PyPI and npm that others made, compiled as they "
        "are: sizes that a file leaves open stay open. Each is run on photographs, speech or text, twice with other "
        "sizes where it has open ones, and compared with the engine that it was made for. Compile times are cold, with "
        "empty caches. `x` is that engine's time divided by ours, of the fastest calls of blocks that took turns.",
        "",
        *summary(outcomes),
        "",
        "| file | | compile s | ms | theirs ms | x | difference | what it is |",
        "|---|---|---:|---:|---:|---:|---:|---|",
        *(_row(outcome, cases[outcome.name]) for outcome in outcomes),
    ]
    if left := [outcome for outcome in outcomes if outcome.kind != "passed"]:
        lines += ["", "| not passed | kind | reason |", "|---|---|---|"]
        lines += [f"| {one.name} | {one.kind} | {one.reason.replace('|', '/')} |" for one in left]
    path.write_text("\n".join(lines) + "\n")


def _row(outcome: Outcome, case: Wild) -> str:
    if outcome.kind != "passed":
        return f"| {outcome.name} | {outcome.kind} | | | | | | {case.about} |"
    one = json.loads(outcome.reason)
    ratio = one["theirs_ms"] / one["eyas_ms"]
    times = f"{one['compile_s']:.1f} | {one['eyas_ms']:.2f} | {one['theirs_ms']:.2f} | {ratio:.2f}"
    return f"| {outcome.name} | right | {times} | {one['error']:.0e} | {case.about} |"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
