"""Trials of lowerings in a child process that is kept: upstream aborts on some graphs, and a start costs half a second.

The child reads one program after another and answers each with a byte; when it dies, that is the answer, and the next
trial starts a new one. It ends with its parent, whose pipe is then closed.
"""

from __future__ import annotations

import atexit
import io
import os
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, Any

from eyas.errors import EyasError
from eyas.frontends.contract import TrialFailed, prepare_context
from eyas.ir import mlir, parse_module
from eyas.passes import parse_pipeline

_SIZE = struct.Struct("<Q")
_DONE = b"."


class _Child:
    """A process that lowers what it is sent. Only the process that started it may use it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from eyas.frontends.onnx.trial import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def survives(self, module: bytes, pipelines: Sequence[str]) -> bool:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.errors.seek(0)
        self.errors.truncate()
        try:
            for part in (module, "\n".join(pipelines).encode()):
                self.process.stdin.write(_SIZE.pack(len(part)) + part)
            self.process.stdin.flush()
            return self.process.stdout.read(1) == _DONE
        except BrokenPipeError:
            return False

    def last_words(self) -> list[str]:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip().splitlines()

    def close(self) -> None:
        if self.owner != os.getpid():
            return
        self.process.kill()
        self.process.communicate()
        self.errors.close()


class _Trials:
    """The one child of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: _Child | None = None
        atexit.register(self.close)

    def run(self, module: bytes, pipelines: Sequence[str]) -> None:
        with self._lock:
            if self._child is None or self._child.owner != os.getpid():
                self._child = _Child()
            if self._child.survives(module, pipelines):
                return
            lines = self._child.last_words()
            self.close()
        telling = [line for line in lines if "nhandled" in line or "nsupported" in line] or lines or ["it crashes"]
        raise TrialFailed(f"the importer aborts on it: {telling[0].strip()[:200]}")

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


_trials = _Trials()


def try_lowering(module: mlir.Module, pipelines: Sequence[str]) -> None:
    """Raises `TrialFailed` when lowering the module would end the process; ordinary failures are for the caller."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    _trials.run(buffer.getvalue(), pipelines)


def serve() -> None:
    """The child's half: any ordinary failure will happen again, with its message, in the parent."""
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (data := _read_part(source)) is not None:
        pipelines = (_read_part(source) or b"").decode().split("\n")
        _try(data, pipelines)
        answers.write(_DONE)
        answers.flush()


def _try(data: bytes, pipelines: Sequence[str]) -> None:
    module: Any = parse_module(data, prepare_context())
    for pipeline in pipelines:
        try:
            parse_pipeline(pipeline).run(module)
        except EyasError:
            return


def _read_part(source: IO[bytes]) -> bytes | None:
    head = source.read(_SIZE.size)
    return source.read(*_SIZE.unpack(head)) if len(head) == _SIZE.size else None
