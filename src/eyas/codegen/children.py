"""Compiles dispatches in child processes, so that what LLVM does to its process is never done to the user's.

A child whose job ends it, takes too long or too much memory is replaced, and the job is done again with more caution
(`jobs.Caution`); `containment` tells the user. Children wait for further compilations of their process.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from eyas import knobs
from eyas.codegen import worker
from eyas.codegen.containment import Death, contained, died_each_time
from eyas.codegen.jobs import Caution, Job, Listing
from eyas.errors import InternalError
from eyas.targets import Target
from eyas.targets.registry import codegen_module

_BYTES_PER_SHARE = 64 << 10
"""A dispatch of so much bytecode has twice the time of a small one."""
_WALL_PER_CPU = 10
"""A machine may be busy: so much longer than its processor time may a job take by the clock."""
_ATTENTION_S = 0.2
"""How long Ctrl-C may go unnoticed: the signal may come to another thread than the one that waits, or right before it
does."""
_MOST_EARLY = 8
"""Children that are started before it is known how many jobs there will be."""


OnDone = Callable[[str, float | None], None]
"""Hears the name of a dispatch and its seconds of processor time, None if the cache had it."""


def compile_jobs(
    jobs: Sequence[Job],
    workers: int,
    on_done: OnDone | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> list[Any]:
    """Compiles all jobs, `workers` at a time, and returns the CompiledDispatch of each in order. `on_done` hears each
    job's name and its seconds of processor time."""
    if knobs.compiles_in_process():
        return [_in_process(job, on_done) for job in jobs]
    batch = _Batch(jobs, on_done)
    threads = [threading.Thread(target=batch.serve, daemon=True) for _ in range(min(max(workers, 1), len(jobs)) - 1)]
    for thread in threads:
        thread.start()
    try:
        batch.serve()
        for thread in threads:
            while thread.is_alive():
                thread.join(_ATTENTION_S)
    except BaseException:  # Ctrl-C
        batch.stop()
        raise
    return [contained(job, result, on_warning) for job, result in zip(jobs, batch.results, strict=True)]


def prepare_children(target: Target, count: int = 0) -> None:
    """Starts the children of a compilation that is to come, so that they are ready when it has jobs for them."""
    if not knobs.compiles_in_process():
        pool.prepare(codegen_module(target), count or min(len(os.sched_getaffinity(0)), _MOST_EARLY))


def _in_process(job: Job, on_done: OnDone | None) -> Any:
    begin = time.thread_time()
    made = worker.run_safely(job)
    if isinstance(made, BaseException):
        raise made
    if on_done is not None:
        on_done(job.name, time.thread_time() - begin)
    return made


class _Batch:
    """The jobs of one compilation, which several threads take in turn, each with a child."""

    def __init__(self, jobs: Sequence[Job], on_done: OnDone | None) -> None:
        self.jobs, self.results, self._on_done = jobs, [None] * len(jobs), on_done
        self._queue: SimpleQueue[int] = SimpleQueue()
        # The longest text first, so that no child is left with a large job at the end.
        for index in sorted(range(len(jobs)), key=lambda index: -len(jobs[index].bytecode)):
            self._queue.put(index)
        self._busy: set[Child] = set()
        self._stopped = False

    def serve(self) -> None:
        while not self._stopped:
            try:
                index = self._queue.get_nowait()
            except Empty:
                return
            job = self.jobs[index]
            seconds: list[float] = []
            self.results[index] = self._compile(job, seconds)
            if self._on_done is not None:
                self._on_done(job.name, sum(seconds))

    def stop(self) -> None:
        """Ends the children that are at work; the threads that wait for them see to the rest."""
        self._stopped = True
        for child in list(self._busy):
            child.process.kill()

    def _compile(self, job: Job, seconds: list[float]) -> Any:
        """A CompiledDispatch or an error, with the deaths on the way to it; appends what each try took."""
        from eyas.codegen.caution import steps_of

        deaths: list[tuple[Caution, Death]] = []
        steps = steps_of(Target.parse(job.target))
        for caution in steps:
            begin = time.monotonic()
            try:
                made = self._ask(replace(job, caution=caution, text=""), seconds)
            except ChildDied as died:
                seconds.append(time.monotonic() - begin)
                if self._stopped:
                    return InternalError(f"compiling dispatch '{job.name}' was interrupted")
                deaths.append((caution, died.death))
                continue
            if isinstance(made, BaseException) and deaths and caution is not steps[-1]:
                deaths.append((caution, Death(f"failed: {made}", "")))
                continue
            return (made, deaths, self._listing(job, deaths[0][0])) if deaths else made
        return died_each_time(job, deaths)

    def _ask(self, job: Job | Listing, seconds: list[float] | None = None) -> Any:
        plain = job if isinstance(job, Job) else job.job
        child = pool.take(codegen_module(Target.parse(plain.target)))
        self._busy.add(child)
        try:
            made, took = child.ask(job, knobs.compile_seconds() * (1 + len(plain.bytecode) / _BYTES_PER_SHARE))
        except BaseException:
            child.close()
            raise
        finally:
            self._busy.discard(child)
        pool.give_back(child)
        if seconds is not None:
            seconds.append(took)
        return made

    def _listing(self, job: Job, caution: Caution) -> str:
        try:
            text = self._ask(Listing(replace(job, caution=caution, text="")))
        except ChildDied:
            return ""
        return text if isinstance(text, str) else ""


class ChildDied(Exception):
    """A child ended, or was ended, before it had an answer."""

    def __init__(self, death: Death) -> None:
        super().__init__(death.cause)
        self.death = death


class Child:
    """A process that compiles what it is sent, and loads the module of its argument before it is asked. Only the
    process that started it may use it. `program` is what it runs, a module that calls `worker.serve`."""

    def __init__(self, *arguments: str, program: str = "eyas.codegen.worker") -> None:
        self.owner, self.jobs = os.getpid(), 0
        self._errors = tempfile.TemporaryFile(prefix="eyas-worker-")  # noqa: SIM115 - closed with the child
        # A session of its own: Ctrl-C is for the parent, which then ends it.
        self.process = subprocess.Popen(
            [sys.executable, "-m", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def ask(self, job: Any, seconds: float, wall_s: float | None = None) -> tuple[Any, float]:
        """What the child makes of a job within so much processor time, and how much of it that took; by the clock it
        may be `wall_s`, which is several times as much unless it is given."""
        wall_s = _WALL_PER_CPU * seconds if wall_s is None else wall_s
        assert self.process.stdin is not None and self.process.stdout is not None
        self.jobs += 1
        begin = os.fstat(self._errors.fileno()).st_size
        try:
            worker.send(self.process.stdin, (job, seconds))
            return pickle.loads(self._read(time.monotonic() + wall_s))
        except (BrokenPipeError, EOFError, pickle.UnpicklingError):
            self._wait()
            raise ChildDied(self._death(seconds, begin)) from None
        except TimeoutError:
            self.close()
            cause = f"it took more than {wall_s:g} s"
            raise ChildDied(Death(cause, self._said(begin))) from None

    def close(self) -> None:
        if self.owner == os.getpid():
            self.process.kill()
            self._wait()

    def _wait(self) -> None:
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except BrokenPipeError:  # what was still to be sent
                pass

    def _read(self, deadline: float) -> bytes:
        (size,) = struct.unpack("<Q", self._read_bytes(8, deadline))
        return self._read_bytes(size, deadline)

    def _read_bytes(self, count: int, deadline: float) -> bytes:
        assert self.process.stdout is not None
        parts, poll = [], select.poll()
        poll.register(self.process.stdout.fileno(), select.POLLIN)
        while count:
            while not poll.poll(_ATTENTION_S * 1000):
                if time.monotonic() > deadline:
                    raise TimeoutError
            part = os.read(self.process.stdout.fileno(), min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _death(self, seconds: float, begin: int) -> Death:
        said, code = self._said(begin), self.process.returncode
        words = said.lower()
        if code == worker.OUT_OF_MEMORY or any(hint in words for hint in ("out of memory", "bad_alloc", "memoryerror")):
            return Death(f"it took more than {knobs.compile_memory_bytes() / 2**30:.3g} GiB of memory", said)
        if code == -signal.SIGPROF:
            return Death(f"it took more than {seconds:g} s of processor time", said)
        if code < 0:
            return Death(f"its process was ended by {signal.Signals(-code).name}", said)
        return Death(f"its process ended with exit code {code}", said)

    def _said(self, begin: int) -> str:
        """The end of what the child wrote to its standard error since then."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), 8192, max(begin, size - 8192)).decode(errors="replace")


class Pool:
    """Children that wait for the next compilation: starting one takes longer than compiling a dozen kernels."""

    # MLIR contexts keep every type and attribute that they have seen.
    MOST_JOBS = 2000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        atexit.register(self.close)

    @property
    def idle(self) -> tuple[Child, ...]:
        return tuple(self._idle)

    def take(self, backend: str) -> Child:
        with self._lock:
            self._drop_dead()
            if self._idle:
                return self._idle.pop()
        return Child(backend)

    def prepare(self, backend: str, count: int) -> None:
        """Sees to it that `count` children wait."""
        with self._lock:
            self._drop_dead()
            self._idle += [Child(backend) for _ in range(count - len(self._idle))]

    def give_back(self, child: Child) -> None:
        if child.jobs >= self.MOST_JOBS:
            child.close()
            return
        with self._lock:
            self._idle.append(child)

    def close(self) -> None:
        """Ends all that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.close()

    def _drop_dead(self) -> None:
        mine = [child for child in self._idle if child.owner == os.getpid()]
        self._idle = [child for child in mine if child.process.poll() is None]


pool = Pool()
