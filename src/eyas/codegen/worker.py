"""Compiles dispatches in parallel, in child processes that speak length-prefixed pickles over their pipes.

A child is started as `python -m eyas.codegen.worker`, so that a user's script needs no `if __name__ == "__main__"` and
no thread of the parent is forked. It waits for further compilations of its parent. Errors come back as data.
"""

from __future__ import annotations

import atexit
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import IO, Any

from eyas.errors import EyasError, InternalError


@dataclass(frozen=True)
class Job:
    """One dispatch: its module as MLIR bytecode, and how to compile it. `text` is the module without names and
    locations: jobs with equal texts make equal code."""

    name: str
    bytecode: bytes
    target: str
    disabled: tuple[str, ...] = ()
    text: str = ""


def compile_jobs(jobs: Sequence[Job], workers: int, on_done: Callable[[str], None] | None = None) -> list[Any]:
    """Compiles all jobs, `workers` at a time, and returns the CompiledDispatch of each in order."""
    if workers <= 1 or len(jobs) <= 2:
        results = []
        for job in jobs:
            results.append(_run(job))
            if on_done is not None:
                on_done(job.name)
        return results
    queue: SimpleQueue[int] = SimpleQueue()
    # The longest text first, so that no worker is left with a large job at the end.
    for index in sorted(range(len(jobs)), key=lambda index: -len(jobs[index].bytecode)):
        queue.put(index)
    results: list[Any] = [None] * len(jobs)
    threads = [
        threading.Thread(target=_serve, args=(jobs, queue, results, on_done), daemon=True) for _ in range(workers - 1)
    ]
    for thread in threads:
        thread.start()
    while True:  # this process is a worker too
        try:
            index = queue.get_nowait()
        except Empty:
            break
        results[index] = _run_safely(jobs[index])
        if on_done is not None:
            on_done(jobs[index].name)
    for thread in threads:
        thread.join()
    for job, result in zip(jobs, results, strict=True):
        if isinstance(result, BaseException):
            raise result
        if result is None:
            raise InternalError(f"the compile worker died on dispatch '{job.name}'")
    return results


def prepare_workers(workers: int = 0) -> None:
    """Starts the children of a compilation that is to come, so that they are ready when it has jobs for them."""
    _children.prepare((workers or len(os.sched_getaffinity(0))) - 1)


def _serve(jobs: Sequence[Job], queue: SimpleQueue, results: list[Any], on_done: Callable | None) -> None:
    child = _children.take()
    while True:
        try:
            index = queue.get_nowait()
        except Empty:
            break
        try:
            results[index] = child.compile(jobs[index])
        except (BrokenPipeError, EOFError):
            results[index] = InternalError(f"the compile worker died on dispatch '{jobs[index].name}'")
            child.close()
            return
        if on_done is not None:
            on_done(jobs[index].name)
    _children.give_back(child)


class _Child:
    """A process that compiles what it is sent. Only the process that started it may use it."""

    def __init__(self) -> None:
        self.owner, self.jobs = os.getpid(), 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "eyas.codegen.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def compile(self, job: Job) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.jobs += 1
        _send(self.process.stdin, replace(job, text=""))
        return _receive(self.process.stdout)

    def close(self) -> None:
        if self.owner == os.getpid():
            self.process.kill()
            self.process.communicate()


class _Children:
    """Children that wait for the next compilation: starting one takes longer than compiling a dozen kernels."""

    # MLIR contexts keep every type and attribute that they have seen.
    MOST_JOBS = 2000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Child] = []
        atexit.register(self.close)

    def take(self) -> _Child:
        with self._lock:
            self._idle = [child for child in self._idle if child.owner == os.getpid()]
            while self._idle:
                child = self._idle.pop()
                if child.process.poll() is None:
                    return child
        return _Child()

    def prepare(self, count: int) -> None:
        """Sees to it that `count` children wait."""
        with self._lock:
            self._idle = [child for child in self._idle if child.owner == os.getpid() and child.process.poll() is None]
            self._idle += [_Child() for _ in range(count - len(self._idle))]

    def give_back(self, child: _Child) -> None:
        if child.jobs >= self.MOST_JOBS:
            child.close()
            return
        with self._lock:
            self._idle.append(child)

    def close(self) -> None:
        for child in self._idle:
            child.close()
        self._idle = []


_children = _Children()


def _run(job: Job) -> Any:
    from eyas.codegen.backends import backend_of
    from eyas.ir import parse_module
    from eyas.targets import Target

    target = Target.parse(job.target)
    module = parse_module(job.bytecode, _context(), job.name)
    return backend_of(target).compile(module, target, frozenset(job.disabled))


@lru_cache(maxsize=1)
def _context() -> Any:
    """One context per process: making one takes as long as lowering a small kernel."""
    from eyas.ir import make_context

    return make_context()


def _warm_up() -> None:
    """Loads what every job needs, while the parent is still busy with the first."""
    import eyas.codegen.llvm_cpu.compile  # noqa: F401

    _context()


def _run_safely(job: Job) -> Any:
    try:
        return _run(job)
    except EyasError as error:
        return error
    except Exception as error:
        return InternalError(f"compiling dispatch '{job.name}' failed: {type(error).__name__}: {error}")


def _send(stream: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> Any:
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    (size,) = struct.unpack("<Q", header)
    return pickle.loads(stream.read(size))


def main() -> None:
    """The child's loop. Its own prints must not reach the pipe."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _warm_up()
    while True:
        try:
            job = _receive(sys.stdin.buffer)
        except EOFError:
            return
        _send(output, _run_safely(job))


if __name__ == "__main__":
    main()
