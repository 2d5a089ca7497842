"""The process that generates code: started by `children`, it compiles what it is sent, and may die of it.

It speaks length-prefixed pickles over its pipes: a job and its limit in, the result and its seconds of processor time
out. Errors come back as data. It is `python -m eyas.codegen.worker`, so
that a user's script needs no `if __name__ == "__main__"` and no thread of the parent is forked.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import pickle
import resource
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import IO, Any

from eyas import knobs
from eyas.codegen.jobs import Job, Listing
from eyas.codegen.planted import die_if_planted
from eyas.errors import EyasError, InternalError

OUT_OF_MEMORY = 71
"""The exit code of a process that Python's own allocations brought to its limit."""


def compile_job(job: Job) -> Any:
    """The CompiledDispatch of a job, made in this process."""
    backend, *rest = _prepared(job)
    return replace(backend.compile(*rest), caution=int(job.caution))


def list_job(job: Job) -> str:
    """The code of a job as text, before the step that is not ours."""
    backend, *rest = _prepared(job)
    return backend.listing(*rest)


def _prepared(job: Job) -> tuple[Any, Any, Any, frozenset[str]]:
    from eyas.codegen.backends import backend_of
    from eyas.codegen.caution import prepare
    from eyas.ir import parse_module
    from eyas.targets import Target

    target = Target.parse(job.target)
    backend = backend_of(target)
    module = parse_module(job.bytecode, _context(), job.name)
    disabled = prepare(module, job.caution, backend, target, frozenset(job.disabled))
    return backend, module, target, disabled


@lru_cache(maxsize=1)
def _context() -> Any:
    """One context per process: making one takes as long as lowering a small kernel."""
    from eyas.ir import make_context

    return make_context()


def _warm_up(backend: str) -> None:
    """Loads what the first jobs need, while the parent is still busy with other things."""
    importlib.import_module(backend)
    _context()


def run_safely(job: Job | Listing) -> Any:
    """What a job gives, or its error."""
    name = job.name if isinstance(job, Job) else job.job.name
    try:
        return compile_job(job) if isinstance(job, Job) else list_job(job.job)
    except EyasError as error:
        return error
    except MemoryError:
        raise
    except Exception as error:
        return InternalError(f"compiling dispatch '{name}' failed: {type(error).__name__}: {error}")


def send(stream: IO[bytes], value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    header = stream.read(8)
    if len(header) < 8:
        raise EOFError
    (size,) = struct.unpack("<Q", header)
    return pickle.loads(stream.read(size))


def main() -> None:
    def answer(job: Job | Listing) -> Any:
        if isinstance(job, Job):
            die_if_planted(job)
        return run_safely(job)

    serve(answer, lambda: _warm_up(sys.argv[1]))


def serve(answer: Callable[[Any], Any], warm_up: Callable[[], None], limit_memory: bool = True) -> None:
    """The child's loop. Its own prints must not reach the pipe."""
    parent = os.getppid()
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    if limit_memory:
        _limit_memory()
    faulthandler.enable()
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    try:
        warm_up()
        while True:
            job, seconds = receive(sys.stdin.buffer)
            signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process
            # Of this thread: Linux counts that of a process in ticks of milliseconds while a timer of it runs.
            begin = time.thread_time()
            result = answer(job)
            signal.setitimer(signal.ITIMER_PROF, 0)
            send(output, (result, time.thread_time() - begin))
    except (EOFError, BrokenPipeError):  # the parent is done with us
        os._exit(0)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _limit_memory() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = knobs.compile_memory_bytes()
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _follow(parent: int) -> None:
    """Ends with the parent also when that is killed in the middle of a job."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    main()
