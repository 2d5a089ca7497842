"""The tables of docs/experiments/mnist-resnet50.md, from the results of a run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cpu.measure import Result
from examples.mnist_resnet50.bench import CASES, ratio, time_of
from examples.mnist_resnet50.engines import ENGINES
from tests.conformance.report import write_section

PICTURES = ("loss.png", "predictions.png", "latency.png")


def rows_of(results: Mapping[str, Any]) -> list[Result]:
    fields = Result.__dataclass_fields__
    return [Result(**{key: row[key] for key in fields}) for row in results["rows"]]


def bars(results: Mapping[str, Any]) -> list[str]:
    """Lines of a table: what was to be shown, and what was seen. One core unless said."""
    rows = rows_of(results)
    lines = ["| what | bar | measured |", "|---|---|---:|"]
    for target, right in results["accuracy"].items():
        lines.append(f"| held-out accuracy after {len(results['losses'])} steps, {target} | >= 98 % | {right:.2%} |")
    for what, bar, slow, fast in (
        ("microkernels over the plain interpreter, width 1", "", "interpreter", "vmvx_1"),
        ("microkernels over the plain interpreter", ">= 178 x", "interpreter", "vmvx"),
        ("multiple dispatch over width 1", ">= 1.3 x", "vmvx_1", "vmvx"),
        ("vmvx against llvm-cpu", "<= 1.4 x", "vmvx", "llvm"),
        ("IREE's VMVX with microkernels against ours", ">= 20 x", "iree_vmvx", "vmvx"),
    ):
        found = ratio(rows, "inference", slow, fast, 1)
        lines.append(f"| {what} | {bar} | {_times(found)} |")
    return lines


def latencies(results: Mapping[str, Any]) -> list[str]:
    """Lines of a table: every engine, image and training step, one core and two."""
    rows = rows_of(results)
    counts = sorted({row.threads for row in rows})
    heads = [f"{case}, {count} core{'s' * (count > 1)}" for case in CASES for count in counts]
    lines = [f"| engine | version | {' | '.join(heads)} |", "|---|---|" + "---:|" * len(heads)]
    for engine, described in ENGINES.items():
        mine = [row for row in rows if row.engine == engine]
        if not mine:
            continue
        version = next((row.version for row in mine if row.version), "")
        cells = [_cell(rows, case, engine, count) for case in CASES for count in counts]
        lines.append(f"| {described.title} | {version} | {' | '.join(cells)} |")
    reasons = {(ENGINES[row.engine].title, row.model, row.reason) for row in rows if row.reason}
    if reasons:
        lines += ["", *(f"- {title}, {case}: {reason}" for title, case, reason in sorted(reasons))]
    return lines


def training(results: Mapping[str, Any]) -> list[str]:
    settings, losses = results["settings"], results["losses"]
    ends = np.mean(losses[:20]), np.mean(losses[-100:])
    return [
        f"{settings['steps']} steps of {settings['batch']} images, AdamW, rate up to {settings['peak_rate']:g} in"
        f" {settings['warm_up']} steps and down along a cosine, weight decay {settings['weight_decay']:g}: mean loss"
        f" {ends[0]:.2f} in the first 20 steps, {ends[1]:.4f} in the last 100. A step took {results['step_s']:.2f} s"
        " in the median, with whatever else the machine did.",
        "",
        "Held-out accuracy: "
        + ", ".join(f"{right:.2%} as `{target}`" for target, right in results["accuracy"].items())
        + ".",
        "",
        "![loss of each step](mnist-resnet50-loss.png)",
        "",
        "Held-out digits chosen at random, with what the network says; the last row has mistakes:",
        "",
        "![held-out digits and predictions](mnist-resnet50-predictions.png)",
    ]


def write(path: Path, folder: Path, results: Mapping[str, Any]) -> None:
    """Rewrites the sections that are measured, and copies the pictures beside the page."""
    machine = results["machine"]
    about = (
        f"{machine['cpu']}, {machine['threads']} threads, target `{machine['target']}`, one process for each engine,"
    )
    about += " in turns; medians in ms. "
    trained = any(row.model == "training" for row in rows_of(results))
    images = f"A training step has {results['train_batch']} images."
    about += images if trained else "Training was not timed in this run."
    write_section(path, "What was to be shown", bars(results))
    write_section(path, "Training", training(results))
    if results["rows"]:
        chart = ["", "![latencies](mnist-resnet50-latency.png)"]
        write_section(path, "Latency", [about, "", *latencies(results), *chart])
    for name in PICTURES:
        if (folder / name).exists():
            shutil.copyfile(folder / name, path.with_name(f"{path.stem}-{name}"))


def _cell(rows: Sequence[Result], case: str, engine: str, threads: int) -> str:
    time = time_of(rows, case, engine, threads)
    return "-" if time is None else f"{time:.3g}" if time < 1000 else f"{time:.0f}"


def _times(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.3g} x"
