"""Rows of results, and the machine they were measured on."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measurement against one bar. `ratio` is measured / baseline where there is a baseline."""

    what: str
    measured: float
    unit: str
    limit: float | None = None
    baseline: str = ""
    ratio: float | None = None
    note: str = ""
    noisy: bool = False
    limits_ratio: bool = False
    failed: bool = False

    @property
    def passed(self) -> bool | None:
        """None when there is no bar, or when the machine was too busy to tell: then neither a pass nor a miss counts,
        because other work slows one engine more than another."""
        if self.failed:
            return False
        seen = self.ratio if self.limits_ratio else self.measured
        return None if self.limit is None or seen is None or self.noisy else seen <= self.limit


def failure(what: str, unit: str, limit: float | None, error: object) -> Row:
    """A row for something that did not run at all."""
    return Row(what, float("inf"), unit, limit, note=f"failed: {error}", failed=True)


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    from eyas.targets import Target

    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.machine(),
        "threads": len(os.sched_getaffinity(0)),
        "target": str(Target.host()),
        "load_average": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def print_machine(facts: dict[str, Any]) -> None:
    print(f"{facts['cpu']}, {facts['threads']} threads, target {facts['target']}, load {facts['load_average']}")


def print_row(row: Row) -> None:
    verdict = {True: "ok", False: "MISSED", None: "noisy" if row.noisy else ""}[row.passed]
    bar = "" if row.limit is None else f"bar {row.limit:g}{' x' if row.limits_ratio else ' ' + row.unit}".rstrip()
    versus = f"{row.ratio:.3g} x {row.baseline}" if row.ratio is not None else row.baseline
    parts = (
        f"  {row.what:<44}",
        f"{row.measured:10.4g} {row.unit:<8}",
        f"{bar:<14}",
        f"{verdict:<7}",
        versus,
        row.note,
    )
    print("  ".join(parts).rstrip(), flush=True)


def as_json(benchmark: str, row: Row) -> dict[str, Any]:
    return {"benchmark": benchmark, **asdict(row), "passed": row.passed}
