"""Latency of one image and of one training step, on every engine, in turns, on one core and on two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cpu.measure import Result, measure
from examples.mnist_resnet50 import data
from examples.mnist_resnet50.engines import ENGINES, prepare
from examples.mnist_resnet50.model import resnet50
from examples.mnist_resnet50.train import Settings

SUITE = "examples.mnist_resnet50.engines"
CASES = ("inference", "training")
LIMIT_S = 240.0


def prepare_cases(folder: Path, settings: Settings, trained: Any, digits: data.Digits, train_batch: int) -> None:
    """An image for the trained network, and a batch for a fresh one (the trained one has hardly a gradient left)."""
    prepare("inference", settings, trained, [data.normalise(digits.images[:1])], folder / "inference")
    fresh = resnet50(settings.width, settings.blocks, open_branches=True)
    prepare("training", settings, fresh, data.batch(digits, 0, train_batch), folder / "training")


def run(
    folder: Path, cases: Sequence[str], engines: Sequence[str], threads: Sequence[int], rounds: int
) -> list[Result]:
    """All rows; those of one case and thread count were measured in turns."""
    results = []
    for case in cases:
        for count in threads:
            rows = measure(case, engines, folder / case, count, rounds, SUITE, LIMIT_S)
            print_rows(case, count, rows)
            results += rows
    return results


def print_rows(case: str, threads: int, rows: Sequence[Result]) -> None:
    print(f"\n{case}, {threads} thread{'s' * (threads > 1)}")
    base = time_of(rows, case, "llvm", threads)
    for row in sorted(rows, key=lambda row: row.median_ms or math.inf):
        if row.median_ms is None:
            print(f"  {ENGINES[row.engine].title:<30} {row.reason}")
            continue
        ratio = f"{row.median_ms / base:8.2f} x llvm-cpu" if base else ""
        print(f"  {ENGINES[row.engine].title:<30} {row.median_ms:11.3f} ms {ratio}  error {row.error:.0e}", flush=True)


def time_of(results: Sequence[Result], case: str, engine: str, threads: int) -> float | None:
    found = [row for row in results if (row.model, row.engine, row.threads) == (case, engine, threads)]
    return found[0].median_ms if found else None


def ratio(results: Sequence[Result], case: str, slow: str, fast: str, threads: int) -> float | None:
    """How many times longer the one takes than the other."""
    one, other = (time_of(results, case, engine, threads) for engine in (slow, fast))
    return one / other if one and other else None
