"""Three pictures: the loss curve, held-out digits with what the network says, and the latencies."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.cpu.engines import PEERS
from benchmarks.cpu.measure import Result
from examples.mnist_resnet50.bench import CASES, time_of
from examples.mnist_resnet50.data import Digits
from examples.mnist_resnet50.engines import ENGINES


def _pyplot() -> Any:
    """matplotlib without a screen; `make bench-cpu` installs it among the peers."""
    if str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def draw_losses(path: Path, losses: Sequence[float], width: int = 25) -> None:
    """The loss of every step, and its running mean."""
    pyplot = _pyplot()
    figure, axis = pyplot.subplots(figsize=(8, 4))
    axis.plot(losses, linewidth=0.5, alpha=0.4, label="each step")
    if len(losses) > width:
        mean = np.convolve(losses, np.ones(width) / width, "valid")
        axis.plot(np.arange(len(mean)) + width - 1, mean, label=f"mean of {width} steps")
    axis.set_yscale("log")
    axis.set_xlabel("step")
    axis.set_ylabel("cross-entropy")
    axis.legend()
    _save(figure, path)


def draw_predictions(path: Path, digits: Digits, said: np.ndarray, rows: int = 4, columns: int = 10) -> None:
    """Held-out digits chosen at random, with what the network says; the last row has mistakes, if there are any."""
    pyplot = _pyplot()
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(digits), rows * columns, replace=False)
    wrong = np.flatnonzero(said != digits.labels)[:columns]
    chosen[len(chosen) - len(wrong) :] = wrong
    figure, axes = pyplot.subplots(rows, columns, figsize=(columns * 0.9, rows * 1.1))
    for axis, at in zip(axes.flat, chosen, strict=True):
        right = said[at] == digits.labels[at]
        axis.imshow(digits.images[at], cmap="gray_r")
        axis.set_title(
            f"{said[at]}" if right else f"{said[at]}, is {digits.labels[at]}", color="k" if right else "r", size=9
        )
        axis.set_axis_off()
    _save(figure, path)


def draw_latencies(path: Path, results: Sequence[Result], machine: str) -> None:
    """A bar for each engine and thread count, on a logarithmic scale."""
    pyplot = _pyplot()
    counts = sorted({row.threads for row in results})
    engines = [engine for engine in ENGINES if any(row.engine == engine for row in results)]
    cases = [case for case in CASES if any(row.model == case and row.median_ms for row in results)]
    if not cases:
        return
    size = (7 * len(cases), 0.45 * len(engines) + 1.2)
    figure, grid = pyplot.subplots(1, len(cases), figsize=size, sharey=True, squeeze=False)
    axes = grid[0]
    for axis, case in zip(axes, cases, strict=True):
        for place, threads in enumerate(counts):
            times = [time_of(results, case, engine, threads) for engine in engines]
            at = [row + 0.38 * (place - (len(counts) - 1) / 2) for row, time in enumerate(times) if time]
            known = [time for time in times if time]
            bars = axis.barh(at, known, 0.36, label=f"{threads} core{'s' * (threads > 1)}")
            axis.bar_label(
                bars, [f"{time:.3g} ms" if time < 1000 else f"{time:,.0f} ms" for time in known], padding=2, size=7
            )
        axis.set_xscale("log")
        axis.margins(x=0.2)
        axis.set_yticks(range(len(engines)), [ENGINES[engine].title for engine in engines], size=8)
        axis.set_title({"inference": "one image", "training": "one training step"}[case], size=10)
        axis.set_xlabel("ms")
    axes[0].invert_yaxis()
    axes[0].legend(fontsize=8)
    figure.suptitle(machine, size=9)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
