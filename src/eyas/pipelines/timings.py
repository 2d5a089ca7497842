"""Where the time of a compilation went: phases, their slowest passes, and the slowest kernels."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from eyas.pipelines.request import Phase, Watcher

IMPORT, WRITE = "import", "write"
_SHORT = 0.01
"""Passes that took fewer seconds are not worth a line."""
_MOST_PASSES, _MOST_KERNELS = 4, 10


class Timings(Watcher):
    """Listens to a compilation from its beginning, when this is made, to `finish`."""

    def __init__(self) -> None:
        self.phases: defaultdict[str, float] = defaultdict(float)
        self.passes: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.kernels: defaultdict[str, float] = defaultdict(float)
        """Seconds of processor time in the processes that compile, several of which run side by side."""
        self.cached = 0
        self._phase, self._begin = IMPORT, time.perf_counter()
        self._lock = threading.Lock()

    def __exit__(self, *_: object) -> None:
        """The program is compiled; what is left is to write it."""
        self._next(WRITE)

    def on_phase(self, phase: Phase, compilation: Any) -> None:
        """A phase begins, so the one before is done."""
        self._next(phase.value)

    def on_pass(self, name: str, seconds: float) -> None:
        """A pass of the phase is done."""
        self.passes[self._phase][name] += seconds

    def on_kernel(self, name: str, seconds: float | None) -> None:
        """A kernel was compiled, or was in the cache. Called from several threads."""
        with self._lock:
            self.kernels[name] += seconds or 0
            self.cached += seconds is None

    def finish(self) -> Timings:
        """The module is written."""
        self._next(self._phase)
        return self

    def _next(self, phase: str) -> None:
        now = time.perf_counter()
        self.phases[self._phase] += now - self._begin
        self._phase, self._begin = phase, now

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "phases": _rounded(self.phases),
            "passes": {phase: _rounded(passes) for phase, passes in self.passes.items()},
            "kernels": _rounded(self.kernels),
            "kernels_from_cache": self.cached,
        }

    def as_text(self) -> str:
        """A table: a phase per line with its slowest passes; then the slowest kernels."""
        total = sum(self.phases.values())
        lines = [_line("all", total, total, "")]
        for phase, seconds in self.phases.items():
            slowest = [
                f"{name} {took:.2f}"
                for name, took in _slowest(self.passes.get(phase, {}), _MOST_PASSES)
                if took >= _SHORT
            ]
            lines.append(_line(phase, seconds, total, ", ".join(slowest)))
        if self.kernels:
            everything, count = sum(self.kernels.values()), len(self.kernels)
            found = f", {self.cached} of them from the cache" if self.cached else ""
            kernels = f"{count} kernel" + ("s" if count > 1 else "")
            lines += ["", f"{kernels}{found}: {everything:.2f} s of processor time in code generation"]
            for name, seconds in _slowest(self.kernels, _MOST_KERNELS):
                if seconds >= _SHORT:
                    lines.append(_line(f"  {name}", seconds, everything, ""))
        return "\n".join(lines)


def _line(name: str, seconds: float, total: float, detail: str) -> str:
    share = 100 * seconds / total if total else 0
    return f"{name:<10} {seconds:8.2f} s {share:4.0f} %  {detail}".rstrip()


def _slowest(seconds: Mapping[str, float], most: int) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda one: one[1], reverse=True)[:most]


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in seconds.items()}
