"""Turns: the processes of all engines are open, one of them runs at a time, and each comes up in every round.

The others are stopped meanwhile: an engine that has nothing to do may still look for work all the time. IREE's Vulkan
on lavapipe waits in two threads that never sleep, which took half of two cores from whoever had the turn.
"""

from __future__ import annotations

import json
import queue
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchmarks.cpu.engines import environment

TOLERANCE = 1e-3
"""Largest difference from PyTorch over its largest value; engines that are further away are not timed."""
ROUND_MS = 600.0
LONG_MS = 2000.0
"""Runs longer than this need no warming up, and one of them is a turn."""
LAST_MS = 10_000.0
"""Runs longer than this are timed in the first round only."""
ENGINES = "benchmarks.cpu.engines"


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

    def __init__(
        self, suite: str, engine: str, model: str, folder: Path, threads: int, log: IO[str], limit_s: float | None
    ) -> None:
        self.result = Result(model, engine, threads)
        self.limit_s = limit_s
        command = [sys.executable, "-m", "benchmarks.cpu.worker", suite, engine, model, str(folder), str(threads)]
        pipe = subprocess.PIPE
        self.child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=log, text=True, bufsize=1, env=environment(threads)
        )
        self.lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        opened = self._read(None)
        self.result.version = opened.get("version", "")
        answered = opened if "failed" in opened else self._read(limit_s)
        self.result.error, self.result.reason = answered.get("error"), answered.get("failed", "")
        if not self.result.reason and not (self.result.error is not None and self.result.error <= TOLERANCE):
            self.result.reason = f"wrong: {self.result.error:.1e} from PyTorch"
        if self.result.reason:
            self.close()
        else:
            self.child.send_signal(signal.SIGSTOP)

    def turn(self) -> None:
        """Warms up, then runs about `ROUND_MS` long."""
        if self.result.reason or (self.result.median_ms or 0) > LAST_MS:
            return
        self.child.send_signal(signal.SIGCONT)
        times = self._ask(1)
        if times and times[0] <= LONG_MS:
            warm = [*times, *self._ask(1)]
            times = self._ask(max(3, min(200, round(ROUND_MS / max(min(warm), 1e-3)))))
        if times:
            self.result.rounds_ms.append(times)
        self.child.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        self.child.kill()
        self.child.wait()

    def _ask(self, runs: int) -> list[float]:
        assert self.child.stdin is not None
        print(json.dumps({"runs": runs}), file=self.child.stdin, flush=True)
        answer = self._read(None if self.limit_s is None else runs * self.limit_s)
        self.result.reason = answer.get("failed", "")
        return answer.get("ms", [])

    def _listen(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put("")

    def _read(self, limit_s: float | None) -> dict:
        """The child's next line; without one in time it is killed."""
        try:
            line = self.lines.get(timeout=limit_s)
        except queue.Empty:
            self.close()
            return {"failed": f"no answer within {limit_s:g} s"}
        return json.loads(line) if line else {"failed": f"the process died with {self.child.wait()}"}


def measure(
    model: str,
    engines: Sequence[str],
    folder: Path,
    threads: int,
    rounds: int,
    suite: str = ENGINES,
    limit_s: float | None = None,
) -> list[Result]:
    """Times all engines on one model in turns; the order of a round is turned by one each time.

    `suite` is the module that has the engines. A run that takes longer than `limit_s` is the engine's last.
    """
    with open(folder / "engines.log", "a", encoding="utf-8") as log:
        workers = [Worker(suite, engine, model, folder, threads, log, limit_s) for engine in engines]
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
