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

_ENGINES = {
    "onnxruntime": "ONNX Runtime",
    "litert": "LiteRT",
    "torch": "PyTorch",
    "tfjs": "TensorFlow.js (one thread)",
}
_PACKAGES = ("eyas", "onnxruntime", "ai-edge-litert", "torch")


def summary(outcomes: Sequence[Outcome], cases: Mapping[str, Wild]) -> list[str]:
    """How many are right, how long they took to compile, and how fast they are beside each engine."""
    measured = {one.name: json.loads(one.reason) for one in outcomes if one.kind == "passed"}
    lines = [f"{len(measured)} of {len(outcomes)} are right."]
    if not measured:
        return lines
    compile_s = sorted(one["compile_s"] for one in measured.values())
    most = compile_s[min(len(compile_s) - 1, math.ceil(0.95 * len(compile_s)) - 1)]
    lines.append(
        f"Compiled cold: median {statistics.median(compile_s):.1f} s, 95 % within {most:.1f} s, at most "
        f"{compile_s[-1]:.1f} s."
    )
    for engine, title in _ENGINES.items():
        own = {
            name: one["theirs_ms"] / one["eyas_ms"] for name, one in measured.items() if cases[name].engine == engine
        }
        if own:
            mean = math.exp(statistics.fmean(map(math.log, own.values())))
            slowest = min(own, key=own.__getitem__)
            lines.append(
                f"Beside {title}, {len(own)} files: geometric mean {mean:.2f} x, least {own[slowest]:.2f} x "
                f"({slowest}), {sum(ratio >= 1 for ratio in own.values())} at least as fast."
            )
    return lines


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
        *_paragraphs(summary(outcomes, cases)),
        "",
        "| file | | compile s | ms | theirs ms | x | difference | what it is |",
        "|---|---|---:|---:|---:|---:|---:|---|",
        *(_row(outcome, cases[outcome.name]) for outcome in outcomes),
    ]
    if left := [outcome for outcome in outcomes if outcome.kind != "passed"]:
        lines += ["", "| not passed | kind | reason |", "|---|---|---|"]
        lines += [f"| {one.name} | {one.kind} | {one.reason.replace('|', '/')} |" for one in left]
    path.write_text("\n".join(lines) + "\n")


def _paragraphs(lines: Sequence[str]) -> list[str]:
    return [line for text in lines for line in (text, "")][:-1]


def _row(outcome: Outcome, case: Wild) -> str:
    if outcome.kind != "passed":
        return f"| {outcome.name} | {outcome.kind} | | | | | | {case.about} |"
    one = json.loads(outcome.reason)
    ratio = one["theirs_ms"] / one["eyas_ms"]
    times = f"{one['compile_s']:.1f} | {one['eyas_ms']:.3g} | {one['theirs_ms']:.3g} | {ratio:.2f}"
    return f"| {outcome.name} | right | {times} | {one['error']:.0e} | {case.about} |"


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
