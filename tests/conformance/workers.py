"""Cases in child processes: a crash or a hang costs one child and is one case's outcome.

A child is a fresh interpreter, not a fork: the frameworks start threads when they are imported or first used. It runs
this file with the name of a function, takes names of cases on standard input and answers with one line of JSON each.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.conformance.outcome import Outcome, one_line

START_S = 120.0


@dataclass
class _Child:
    """One process, the case that it is at, and how many it may still take."""

    process: subprocess.Popen[str]
    name: str
    begin: float
    deadline: float
    left: int
    slot: int


def run_all(
    check: str,
    names: Sequence[str],
    on_outcome: Callable[[Outcome], None],
    *,
    jobs: int = 1,
    timeout_s: float = 120.0,
    lifetime: int = 1 << 30,
    environment: Mapping[str, str] | None = None,
    pinned: bool = False,
    until: float = float("inf"),
) -> list[Outcome]:
    """Outcomes in the order of the names. `check` is 'module:function', from the name of a case to its `Outcome`.

    A child is replaced after `lifetime` cases, for frameworks that never give memory back. Children that are `pinned`
    share the processors out among them, so that none starts threads and processes for all. No case is begun after
    `until`, in seconds of `time.monotonic`; those then have no outcome.
    """
    outcomes: dict[str, Outcome] = {}
    waiting = iter(names)
    jobs = min(max(1, jobs), len(names))
    processors = sorted(os.sched_getaffinity(0))
    shares = [processors[slot::jobs] or processors for slot in range(jobs)]
    selector = selectors.DefaultSelector()
    command = [sys.executable, "-m", "tests.conformance.workers", check]

    def give(child: _Child | None, slot: int) -> None:
        """The next case to this child, or to a new one when it is gone or worn out."""
        name = next(waiting, None) if time.monotonic() < until else None
        if child is not None and (name is None or child.left == 0):
            _stop(child)
            child = None
        if name is None:
            return
        start = 0.0
        if child is None:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                # What is tested is compiled here, not found.
                env={**os.environ, "EYAS_CACHE": "off", **(environment or {})},
            )
            if pinned:
                os.sched_setaffinity(process.pid, shares[slot])
            child, start = _Child(process, "", 0.0, 0.0, lifetime, slot), START_S
        child.name, child.left = name, child.left - 1
        child.begin = time.monotonic()
        child.deadline = child.begin + start + timeout_s
        try:
            child.process.stdin.write(name + "\n")
            child.process.stdin.flush()
        except BrokenPipeError:
            pass  # its end of the answers is closed too, which is seen below
        selector.register(child.process.stdout, selectors.EVENT_READ, child)

    for slot in range(jobs):
        give(None, slot)
    while selector.get_map():
        children = [key.data for key in selector.get_map().values()]
        soonest = min(child.deadline for child in children)
        ready = {key.data.process.pid for key, _ in selector.select(max(0.0, soonest - time.monotonic()))}
        for child in children:
            if child.process.pid not in ready and time.monotonic() < child.deadline:
                continue
            selector.unregister(child.process.stdout)
            outcome, alive = _outcome(child, child.process.pid in ready, timeout_s)
            outcomes[outcome.name] = outcome
            on_outcome(outcome)
            give(child if alive else None, child.slot)
    return [outcomes[name] for name in names if name in outcomes]


def _outcome(child: _Child, ready: bool, timeout_s: float) -> tuple[Outcome, bool]:
    """What happened, and whether the child can go on."""
    answer = child.process.stdout.readline() if ready else ""
    if answer:
        return Outcome(**json.loads(answer)), True
    seconds = time.monotonic() - child.begin
    if not ready:
        _stop(child)
        return Outcome(child.name, "crashed", f"no answer after {timeout_s:.0f} s", seconds), False
    code = child.process.wait()
    _stop(child)
    why = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return Outcome(child.name, "crashed", f"the process died: {why}", seconds), False


def _stop(child: _Child) -> None:
    child.process.kill()
    child.process.communicate()


def main(check: str) -> None:
    # What native code prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    module, _, function = check.partition(":")
    run = getattr(importlib.import_module(module), function)
    for line in sys.stdin:
        name, begin = line.strip(), time.perf_counter()
        try:
            outcome = run(name)
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            outcome = Outcome(name, "crashed", reason, time.perf_counter() - begin)
        answers.write(json.dumps(dataclasses.asdict(outcome)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
