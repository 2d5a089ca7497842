"""Workers that make trials side by side: processes of this machine, or actors of a Ray cluster that is there already.

A worker is made by a function that can be imported where it runs, and is then called with one task after the other; it
keeps what it needs between them: the device, the dispatch's operands, the baseline. Each worker compares with its own
baseline on its own device, so what it answers is a ratio, which means the same on every machine. A worker that dies
costs the task that it had: that comes back as `Lost`, and another worker takes its place.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from eyas.errors import EyasError, UsageError

FLEETS = ("local", "ray")
Work = Callable[[Any], Any]
_DEATHS = 3
"""Workers that die so often in a row without an answer in between are not replaced any more."""


class FleetError(EyasError):
    """There is no worker left, or none to begin with."""


@dataclass(frozen=True)
class Maker:
    """How a worker is made: `module:function` and what it is given. The function returns what is called with tasks."""

    path: str
    arguments: tuple[Any, ...] = ()

    def make(self) -> Work:
        module, _, name = self.path.partition(":")
        return getattr(importlib.import_module(module), name)(*self.arguments)


@dataclass(frozen=True)
class Lost:
    """What a task became whose worker died, was stopped after its time, or raised."""

    reason: str
    is_timeout: bool = False


class Fleet(ABC):
    """Some workers. A context: they end with it."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Tasks that run at the same moment."""

    @abstractmethod
    def run(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any | Lost]]:
        """Each task with its answer, as they are done. A task is drawn when a worker is free for it, so whoever makes
        them can use what is known by then."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_fleet(name: str, maker: Maker, count: int = 0, seconds: float = 0.0, address: str = "") -> Fleet:
    """The fleet of that name; `count` 0 is a worker for each CPU, `seconds` 0 no limit for a task."""
    if name == "local":
        return LocalFleet(maker, count, seconds)
    if name == "ray":
        from eyas.tune.ray_fleet import RayFleet

        return RayFleet(maker, count, seconds, address)
    raise UsageError(f"there are no workers '{name}'; there are {', '.join(FLEETS)}")


@dataclass(eq=False)
class _Worker:
    process: Any
    pipe: Connection
    task: Any = None
    busy: bool = False
    since: float = 0.0


class LocalFleet(Fleet):
    """Processes of this machine, each with a pipe."""

    def __init__(self, maker: Maker, count: int = 0, seconds: float = 0.0) -> None:
        self._maker, self._count, self._seconds = maker, count or len(os.sched_getaffinity(0)), seconds
        # Not forked: a child must not inherit threads, MLIR contexts or open databases.
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._deaths = 0

    @property
    def size(self) -> int:
        return self._count

    @property
    def processes(self) -> list[int]:
        return [one.process.pid for one in self._workers]

    def run(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any | Lost]]:
        source, ended = iter(tasks), False
        try:
            while True:
                while not ended and (free := self._free()) is not None:
                    try:
                        task = next(source)
                    except StopIteration:
                        ended = True
                        break
                    self._give(free, task)
                busy = [one for one in self._workers if one.busy]
                if not busy:
                    return
                for one in self._ready(busy):
                    yield one.task, self._answer(one)
        finally:
            for one in [one for one in self._workers if one.busy]:  # nobody waits for them any more
                self._end(one)

    def close(self) -> None:
        for one in self._workers:
            one.pipe.close()
            one.process.kill()
        for one in self._workers:
            one.process.join()
        self._workers.clear()

    def _free(self) -> _Worker | None:
        """A worker without a task, started if there may be another one."""
        for one in self._workers:
            if not one.busy:
                return one
        if len(self._workers) >= self._count:
            return None
        if self._deaths >= _DEATHS * self._count:
            if self._workers:
                return None
            raise FleetError(f"{self._deaths} workers died one after the other without an answer; no more are started")
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs, self._maker), daemon=True)
        process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours))
        return self._workers[-1]

    def _give(self, worker: _Worker, task: Any) -> None:
        worker.task, worker.busy, worker.since = task, True, time.monotonic()
        try:
            worker.pipe.send(task)
        except (BrokenPipeError, ConnectionError):
            pass  # it is dead, which reading from it will say

    def _ready(self, busy: list[_Worker]) -> list[_Worker]:
        """Workers that have answered, died, or are to be stopped."""
        patience = None
        if self._seconds:
            patience = max(0.0, min(one.since for one in busy) + self._seconds - time.monotonic())
        found = wait([one.pipe for one in busy], patience)
        now = time.monotonic()
        return [
            one for one in busy if one.pipe in found or (self._seconds and now - one.since >= self._seconds)
        ]  # fmt: skip

    def _answer(self, worker: _Worker) -> Any | Lost:
        worker.busy = False
        if worker.pipe.poll():
            try:
                is_fine, answer = worker.pipe.recv()
                self._deaths = 0
                return answer if is_fine else Lost(answer)
            except (EOFError, ConnectionError):
                self._workers.remove(worker)
                worker.process.join()
                self._deaths += 1
                return Lost(f"its worker died: {_cause(worker.process.exitcode)}")
        self._end(worker)
        return Lost(f"it took more than {self._seconds:g} s", is_timeout=True)

    def _end(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.process.kill()
        worker.process.join()


def _serve(pipe: Connection, maker: Maker) -> None:
    """What a worker's process does. Ctrl-C is for whoever owns it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work: Work | None = None
    while True:
        try:
            task = pipe.recv()
        except (EOFError, ConnectionError):
            return
        try:
            work = maker.make() if work is None else work
            answer = True, work(task)
        except Exception as error:  # noqa: BLE001 - it is the task's
            answer = False, said(error)
        pipe.send(answer)


def said(error: BaseException) -> str:
    """An exception of a task, in a line and with its place."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = f" ({os.path.basename(last[0].filename)}:{last[0].lineno})" if last else ""
    return f"{type(error).__name__}: {error}{place}"


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
