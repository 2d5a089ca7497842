"""Calls that are under way: what `submit` returns, and the queue that runs them."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import os
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any

from eyas.runtime import _core


class Future(concurrent.futures.Future[Any]):
    """The outcome of a submitted call: `.result(timeout)`, `.done()`, `.add_done_callback(f)`, `.cancel()`, `await`.

    Callbacks run on the thread that runs the context's calls.
    """

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self).__await__()


_Job = tuple[Future, Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]


class CallQueue:
    """Runs the calls that were submitted to a context one after the other, on a thread of its own.

    While there are any, the context asks us before other calls (`_core.Context.before`), which so keep their place in
    the order. The thread ends with the queue; when the interpreter exits, calls that were submitted are finished first.
    """

    def __init__(self, context: _core.Context) -> None:
        self._context = context
        self._restart()

    def _restart(self) -> None:
        """At first, and in a forked child, which has neither our thread nor the calls of its parent."""
        self._process, self._lock = os.getpid(), threading.Lock()
        self._executor: concurrent.futures.ThreadPoolExecutor | None = None
        self._jobs: collections.deque[_Job] = collections.deque()
        self._waiting, self._thread = 0, 0
        self._context.before = None

    def submit(self, call: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Future:
        if self._process != os.getpid():
            self._restart()
        future = Future()
        with self._lock:
            if self._executor is None:
                self._executor = concurrent.futures.ThreadPoolExecutor(1, "eyas-calls")
            self._jobs.append((future, call, args, named))
            try:
                self._executor.submit(self._run)
            except RuntimeError:  # the interpreter is about to exit
                self._jobs.pop()
                raise
            self._waiting += 1
            self._context.before = self._wait
        return future

    def _run(self) -> None:
        future, call, args, named = self._jobs.popleft()
        self._thread = threading.get_ident()
        result = error = None
        going = future.set_running_or_notify_cancel()
        if going:
            try:
                result = call(*args, **named)
            except BaseException as raised:
                error = raised
        with self._lock:
            self._waiting -= 1
            if not self._waiting:
                self._context.before = None
        if error is not None:
            future.set_exception(error)
        elif going:
            future.set_result(result)
        # The traceback of an error has this frame, which must hold neither the future nor the arguments.
        del future, call, args, named, result, error

    def _wait(self) -> None:
        """Returns when all calls that were submitted so far have ended."""
        if self._process != os.getpid():
            self._restart()
        if self._thread == threading.get_ident():
            return
        with self._lock:
            last = self._executor.submit(lambda: None) if self._executor and self._waiting else None
        if last is not None:
            last.result()
