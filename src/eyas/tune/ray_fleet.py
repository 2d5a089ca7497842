"""Workers on a Ray cluster (https://docs.ray.io): one actor for each CPU, or as many as asked for."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from eyas.errors import require
from eyas.tune.fleet import Fleet, FleetError, Lost, Maker, Work, said

_DEATHS = 3


class _Actor:
    """What runs on the cluster; Ray makes an actor of it."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._work: Work | None = None

    def call(self, task: Any) -> tuple[bool, Any]:
        try:
            self._work = self._maker.make() if self._work is None else self._work
            return True, self._work(task)
        except Exception as error:  # noqa: BLE001 - it is the task's
            return False, said(error)


@dataclass(eq=False)
class _Busy:
    actor: Any
    task: Any
    since: float


class RayFleet(Fleet):
    """Actors of a cluster that is there already; `address` is what `ray.init` takes, by default the cluster that this
    machine belongs to. The package must be installed on every node as it is here."""

    def __init__(self, maker: Maker, count: int = 0, seconds: float = 0.0, address: str = "") -> None:
        require("ray", "--workers ray")
        import ray  # pyright: ignore[reportMissingImports]

        self._ray, self._maker, self._seconds = ray, maker, seconds
        self._begun = not ray.is_initialized()
        if self._begun:
            try:
                ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
            except ConnectionError as error:
                raise FleetError(
                    f"there is no Ray cluster at '{address or 'auto'}': {error}. Start one with `ray start --head` here"
                    " and `ray start --address=HOST:6379` on the others, or use --workers local"
                ) from error
        self._count = count or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._class = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor)
        self._idle: list[Any] = []
        self._busy: dict[Any, _Busy] = {}
        self._deaths = 0

    @property
    def size(self) -> int:
        return self._count

    def run(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any | Lost]]:
        source, ended = iter(tasks), False
        try:
            while True:
                while not ended and len(self._busy) < self._count and self._may_start():
                    try:
                        task = next(source)
                    except StopIteration:
                        ended = True
                        break
                    actor = self._idle.pop() if self._idle else self._class.remote(self._maker)
                    self._busy[actor.call.remote(task)] = _Busy(actor, task, time.monotonic())
                if not self._busy:
                    return
                yield from self._done()
        finally:
            for one in self._busy.values():  # nobody waits for them any more
                self._ray.kill(one.actor, no_restart=True)
            self._busy.clear()

    def close(self) -> None:
        for actor in [*self._idle, *(one.actor for one in self._busy.values())]:
            self._ray.kill(actor, no_restart=True)
        self._idle.clear()
        self._busy.clear()
        if self._begun:
            self._ray.shutdown()

    def _may_start(self) -> bool:
        if self._idle or self._deaths < _DEATHS * self._count:
            return True
        if self._busy:
            return False
        raise FleetError(f"{self._deaths} workers died one after the other without an answer; no more are started")

    def _done(self) -> Iterator[tuple[Any, Any | Lost]]:
        ready, _ = self._ray.wait(list(self._busy), num_returns=1, timeout=self._patience())
        for one in ready:
            busy = self._busy.pop(one)
            try:
                is_fine, answer = self._ray.get(one)
            except self._ray.exceptions.RayError as error:
                self._deaths += 1
                yield busy.task, Lost(f"its worker died: {type(error).__name__}: {str(error).splitlines()[0]}")
                continue
            self._deaths = 0
            self._idle.append(busy.actor)
            yield busy.task, answer if is_fine else Lost(answer)
        now = time.monotonic()
        for one in [one for one, busy in self._busy.items() if self._seconds and now - busy.since >= self._seconds]:
            busy = self._busy.pop(one)
            self._ray.kill(busy.actor, no_restart=True)
            yield busy.task, Lost(f"it took more than {self._seconds:g} s", is_timeout=True)

    def _patience(self) -> float | None:
        if not self._seconds:
            return None
        return max(0.0, min(one.since for one in self._busy.values()) + self._seconds - time.monotonic())
