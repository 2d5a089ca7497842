"""A bar chart: per model, each engine's time over that of the fastest peer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cpu.engines import ENGINES
from benchmarks.cpu.measure import Result

LIMIT = 4.0
"""Bars are cut here, with the number written on them; IREE can be 30 times slower than the rest."""


def draw(path: Path, results: Sequence[Result], titles: Mapping[str, str], facts: Mapping[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    counts = sorted({row.threads for row in results}, reverse=True)
    models = list(dict.fromkeys(row.model for row in results))
    figure, axes = pyplot.subplots(len(counts), 1, figsize=(14, 4.2 * len(counts)), squeeze=False)
    for (axis,), threads in zip(axes, counts, strict=True):
        for place, (engine, described) in enumerate(ENGINES.items()):
            xs, heights = [], []
            for at, model in enumerate(models):
                rows = [row for row in results if (row.model, row.threads) == (model, threads)]
                peers = [row.median_ms for row in rows if row.engine != "eyas" and row.median_ms]
                mine = next((row.median_ms for row in rows if row.engine == engine), None)
                if mine and peers:
                    xs.append(at + 0.11 * (place - (len(ENGINES) - 1) / 2))
                    heights.append(mine / min(peers))
            bars = axis.bar(xs, [min(height, LIMIT) for height in heights], 0.1, label=described.title)
            for bar, height in zip(bars, heights, strict=True):
                axis.text(bar.get_x() + 0.05, min(height, LIMIT), f"{height:.2g}", ha="center", va="bottom", size=6)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(models)), [titles[model] for model in models], rotation=12, size=8)
        axis.set_ylim(0, LIMIT * 1.05)
        axis.set_ylabel("time / fastest peer")
        axis.set_title(f"{threads} thread{'s' * (threads > 1)}, {facts['cpu']}", size=9)
    axes[0][0].legend(ncols=len(ENGINES), fontsize=7, loc="upper left")
    figure.tight_layout()
    figure.savefig(path)
