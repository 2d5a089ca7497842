"""Candidates compiled side by side in processes of their own, each with a limit on its time.

A process that dies of a candidate costs that candidate and nothing else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from eyas.codegen.children import Child, ChildDied
from eyas.errors import CompileError, EyasError
from eyas.tune.making import Made, Small
from eyas.tune.trials import Status
from eyas.tune.worker import Order

SECONDS = 30.0
"""Of processor time that a candidate may take; a usual one takes a fifth of a second."""
_MOST_JOBS = 400
"""MLIR contexts keep every attribute that they have seen."""


@dataclass(frozen=True)
class Failed:
    """A candidate that is no module: refused by the compiler, or the end of the process that compiled it."""

    status: Status
    reason: str
    said: str = ""
    """The last that its process wrote to its standard error."""


class Compilers:
    """Processes that compile candidates, `count` at a time; as many as this process has CPUs by default."""

    def __init__(self, count: int = 0, seconds: float = SECONDS) -> None:
        self.count = count or len(os.sched_getaffinity(0))
        self.seconds = seconds
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="eyas-tune")
        self._closed = False

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes, also those that are at work."""
        self._closed = True
        with self._lock:
            children, self._idle = [*self._idle, *self._busy], []
        for child in children:
            child.process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for child in children:
            child.close()

    def compile(self, small: Small, schedules: Sequence[str | None]) -> Iterator[tuple[int, Made | Failed]]:
        """What becomes of each schedule, as it is done: its number, and a module or why there is none."""
        waiting = {self._pool.submit(self._one, Order(small, one)): number for number, one in enumerate(schedules)}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            for one in waiting:
                one.cancel()

    def compile_one(self, small: Small, schedule: str | None = None) -> Made:
        """A module that must be had; raises what keeps it from being one."""
        ((_, made),) = self.compile(small, [schedule])
        if isinstance(made, Failed):
            raise CompileError(f"'{small.name}' for {small.target}: {made.reason}")
        return made

    def _one(self, order: Order) -> Made | Failed:
        child = self._take()
        try:
            made, _ = child.ask(order, self.seconds)
        except ChildDied as died:
            self._forget(child)
            cause = died.death.cause
            status = Status.TIMEOUT if "took more than" in cause and "memory" not in cause else Status.CRASHED
            return Failed(status, f"compiling it: {cause}", died.death.said)
        except BaseException:
            self._forget(child)
            raise
        self._give_back(child)
        if isinstance(made, CompileError):
            return Failed(Status.REFUSED, str(made))
        if isinstance(made, EyasError):
            return Failed(Status.CRASHED, str(made))
        return made

    def _take(self) -> Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.process.poll() is None:
                    self._busy.add(child)
                    return child
        child = Child(program="eyas.tune.worker")
        with self._lock:
            self._busy.add(child)
        return child

    def _give_back(self, child: Child) -> None:
        with self._lock:
            self._busy.discard(child)
            if child.jobs < _MOST_JOBS and not self._closed:
                self._idle.append(child)
                return
        child.close()

    def _forget(self, child: Child) -> None:
        with self._lock:
            self._busy.discard(child)
        child.close()
