"""Cases in forked worker processes: a crash or a hang costs one worker and is one case's outcome."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.onnx.cases import Case
from tests.conformance.onnx.check import Outcome, Status, check

TIMEOUT_S = 20.0


@dataclass
class _Worker:
    """One process and the case that it is at."""

    pipe: Any = None
    process: Any = None
    index: int = -1
    deadline: float = field(default=0.0)


def run_all(
    cases: Sequence[Case], jobs: int, on_outcome: Callable[[Case, Outcome], None], work: Callable = check
) -> list[Outcome]:
    """Outcomes in the order of the cases."""
    # The import is paid once; every worker is a fork, so that replacing a dead one takes milliseconds.
    import eyas.api
    import eyas.frontends.onnx.importer
    import eyas.pipelines.compiled  # noqa: F401

    context = multiprocessing.get_context("fork")
    outcomes: list[Outcome | None] = [None] * len(cases)
    waiting = iter(range(len(cases)))
    busy: list[_Worker] = []

    def start(worker: _Worker) -> None:
        worker.index = next(waiting, -1)
        if worker.index < 0:
            _stop(worker)
            return
        if worker.process is None:
            worker.pipe, other = context.Pipe()
            worker.process = context.Process(target=_serve, args=(other, cases, work), daemon=True)
            worker.process.start()
            other.close()
        worker.deadline = time.monotonic() + TIMEOUT_S
        worker.pipe.send(worker.index)
        busy.append(worker)

    for _ in range(max(1, jobs)):
        start(_Worker())
    while busy:
        soonest = min(worker.deadline for worker in busy)
        ready = multiprocessing.connection.wait([w.pipe for w in busy], max(0.0, soonest - time.monotonic()))
        for worker in list(busy):
            outcome = _outcome(worker, worker.pipe in ready)
            if outcome is None:
                continue
            busy.remove(worker)
            outcomes[worker.index] = outcome
            on_outcome(cases[worker.index], outcome)
            start(worker)
    return [outcome for outcome in outcomes if outcome is not None]


def _outcome(worker: _Worker, ready: bool) -> Outcome | None:
    if ready:
        try:
            return worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            worker.process.join(5)
            code = worker.process.exitcode or 0
            _stop(worker)
            why = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            return Outcome(Status.CRASHED, f"the process died: {why}")
    if time.monotonic() >= worker.deadline:
        _stop(worker)
        return Outcome(Status.TIMEOUT, f"not done after {TIMEOUT_S:.0f} s", TIMEOUT_S)
    return None


def _stop(worker: _Worker) -> None:
    if worker.process is not None:
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()
        worker.process = worker.pipe = None


def _serve(pipe: Any, cases: Sequence[Case], work: Callable) -> None:
    # What LLVM prints on its way down belongs to the outcome, not on the terminal.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    while True:
        try:
            index = pipe.recv()
        except EOFError:
            return
        pipe.send(work(cases[index]))
