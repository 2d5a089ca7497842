"""Compiles dispatches in parallel, in child processes that speak length-prefixed pickles over their pipes.

A child is started as `python -m eyas.codegen.worker`, so that a user's script needs no `if __name__ == "__main__"` and
no thread of the parent is forked. Errors come back as data.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import IO, Any

from eyas.errors import EyasError, InternalError


@dataclass(frozen=True)
class Job:
    """One dispatch: its module as MLIR bytecode, and how to compile it."""

    name: str
    bytecode: bytes
    target: str
    disabled: tuple[str, ...] = ()


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


def _serve(jobs: Sequence[Job], queue: SimpleQueue, results: list[Any], on_done: Callable | None) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-m", "eyas.codegen.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        while True:
            try:
                index = queue.get_nowait()
            except Empty:
                break
            try:
                _send(child.stdin, jobs[index])
                results[index] = _receive(child.stdout)
            except (BrokenPipeError, EOFError):
                results[index] = InternalError(f"the compile worker died on dispatch '{jobs[index].name}'")
                return
            if on_done is not None:
                on_done(jobs[index].name)
    finally:
        child.stdin.close()
        child.wait()


def _run(job: Job) -> Any:
    from eyas.codegen.llvm_cpu.backend import _worker_context
    from eyas.codegen.llvm_cpu.compile import compile_dispatch
    from eyas.ir import parse_module
    from eyas.targets import Target

    module = parse_module(job.bytecode, _worker_context(), job.name)
    return compile_dispatch(module, Target.parse(job.target), frozenset(job.disabled))


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
    while True:
        try:
            job = _receive(sys.stdin.buffer)
        except EOFError:
            return
        _send(output, _run_safely(job))


if __name__ == "__main__":
    main()
