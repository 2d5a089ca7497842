"""Lowering in a child process that is kept: upstream aborts on some graphs, and a start costs half a second.

The child reads one program after another and answers with the lowered one, or with nothing where it cannot be lowered;
when it dies, that is the answer, and the next program starts a new one. It ends with its parent, whose pipe is then
closed.
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
from typing import IO

from eyas.errors import EyasError
from eyas.frontends.contract import prepare_context
from eyas.frontends.onnx.lowering import lower_graph
from eyas.ir import mlir, parse_module

_SIZE = struct.Struct("<Q")


class LoweringDied(Exception):
    """A child process that lowered a program ended."""


class _Child:
    """A process that lowers what it is sent. Only the process that started it may use it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from eyas.frontends.onnx.apart import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def lowered(self, module: bytes) -> bytes | None:
        """None when the child died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.errors.seek(0)
        self.errors.truncate()
        try:
            _write_part(self.process.stdin, module)
            return _read_part(self.process.stdout)
        except BrokenPipeError:
            return None

    def last_words(self) -> list[str]:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip().splitlines()

    def close(self) -> None:
        if self.owner != os.getpid():
            return
        self.process.kill()
        self.process.communicate()
        self.errors.close()


class _Only:
    """The one child of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: _Child | None = None
        atexit.register(self.close)

    def lowered(self, module: bytes) -> bytes:
        with self._lock:
            if self._child is None or self._child.owner != os.getpid():
                self._child = _Child()
            if (answer := self._child.lowered(module)) is not None:
                return answer
            lines = self._child.last_words()
            self.close()
        telling = [line for line in lines if "nhandled" in line or "nsupported" in line] or lines or ["it crashes"]
        raise LoweringDied(f"the importer aborts on it: {telling[0].strip()[:200]}")

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None


_only = _Only()


def lower_apart(module: mlir.Module) -> mlir.Module:
    """The lowered module. Raises `LoweringDied` when lowering it would end the process."""
    if data := _only.lowered(_bytecode(module)):
        # A context of its own: names of weights are taken in the given one.
        return parse_module(data, prepare_context())
    # It fails here as it did there, with a message about a module that is at hand.
    lower_graph(module)
    return module


def serve() -> None:
    """The child's half."""
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (data := _read_part(source)) is not None:
        module = parse_module(data, prepare_context())
        try:
            lower_graph(module)
        except EyasError:
            _write_part(answers, b"")
        else:
            _write_part(answers, _bytecode(module))


def _bytecode(module: mlir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _write_part(target: IO[bytes], data: bytes) -> None:
    target.write(_SIZE.pack(len(data)) + data)
    target.flush()


def _read_part(source: IO[bytes]) -> bytes | None:
    """None at the end."""
    head = source.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    data = source.read(size)
    return data if len(data) == size else None
