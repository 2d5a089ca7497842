"""Turns: the processes of all engines are open, one of them runs at a time, and each comes up in every round."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchmarks.cpu.engines import environment

TOLERANCE = 1e-3
"""Largest difference from PyTorch over its largest value; engines that are further away are not timed."""
ROUND_MS = 600.0


@dataclass
class Result:
    """One engine on one model with one thread count; `reason` says why there are no times."""

    model: str
    engine: str
    threads: int
    version: str = ""
    error: float | None = None
    reason: str = ""
    rounds_ms: list[list[float]] = field(default_factory=list)

    @property
    def median_ms(self) -> float | None:
        times = [time for turn in self.rounds_ms for time in turn]
        return statistics.median(times) if times else None

    @property
    def spread(self) -> float | None:
        """How far the medians of the rounds are apart, over their median."""
        medians = [statistics.median(turn) for turn in self.rounds_ms]
        return (max(medians) - min(medians)) / statistics.median(medians) if medians else None


class Worker:
    """A child with one engine; `turn` has it run for a while."""

    def __init__(self, engine: str, model: str, folder: Path, threads: int, log: IO[str]) -> None:
        self.result = Result(model, engine, threads)
        command = [sys.executable, "-m", "benchmarks.cpu.worker", engine, model, str(folder), str(threads)]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=log, text=True, bufsize=1, env=environment(threads)
        )
        opened = self._read()
        self.result.version, self.result.error = opened.get("version", ""), opened.get("error")
        self.result.reason = opened.get("failed", "")
        if not self.result.reason and not (self.result.error is not None and self.result.error <= TOLERANCE):
            self.result.reason = f"wrong: {self.result.error:.1e} from PyTorch"
        if self.result.reason:
            self.close()

    def turn(self) -> None:
        """Warms up, then runs about `ROUND_MS` long."""
        warm = self._ask(2)
        self.result.rounds_ms.append(self._ask(max(3, min(200, round(ROUND_MS / max(min(warm), 1e-3))))))

    def close(self) -> None:
        self.child.kill()
        self.child.wait()

    def _ask(self, runs: int) -> list[float]:
        assert self.child.stdin is not None
        print(json.dumps({"runs": runs}), file=self.child.stdin, flush=True)
        return self._read()["ms"]

    def _read(self) -> dict:
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        return json.loads(line) if line else {"failed": f"the process died with {self.child.wait()}"}


def measure(model: str, engines: Sequence[str], folder: Path, threads: int, rounds: int) -> list[Result]:
    """Times all engines on one model in turns; the order of a round is turned by one each time."""
    with open(folder / "engines.log", "a", encoding="utf-8") as log:
        workers = [Worker(engine, model, folder, threads, log) for engine in engines]
        running = [worker for worker in workers if not worker.result.reason]
        try:
            for turn in range(rounds):
                shift = turn % max(len(running), 1)
                for worker in running[shift:] + running[:shift]:
                    worker.turn()
        finally:
            for worker in running:
                worker.close()
    return [worker.result for worker in workers]
