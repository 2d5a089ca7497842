"""Checks in a child process: an abort or a hang of the compiler is an outcome with its graph, and the run goes on."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.check import Outcome, check
from tests.fuzz.graph import Graph

from eyas.codegen.worker import receive, send

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60.0
"""Of processor time; on a busy machine it lasts up to `PATIENCE` times as long."""
PATIENCE = 3


class Checker:
    """One child, started when needed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen | None = None
        self._errors = tempfile.TemporaryFile()

    def check(self, graph: Graph) -> Outcome:
        child = self._child or self._start()
        assert child.stdin is not None and child.stdout is not None
        begin = time.perf_counter()
        try:
            send(child.stdin, graph)
            if not _answers(child):
                self.close()
                seconds = time.perf_counter() - begin
                return Outcome("hung", f"not done after {seconds:.0f} s", seconds=seconds)
            return receive(child.stdout)
        except (EOFError, BrokenPipeError):
            return Outcome("crashed", self._epitaph(), seconds=time.perf_counter() - begin)

    def _start(self) -> subprocess.Popen:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "EYAS_CACHE": "off"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), *sys.path]))
        command = [sys.executable, "-m", "tests.fuzz.checker"]
        pipe = subprocess.PIPE
        self._errors.seek(0)
        self._errors.truncate()
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._errors, env=environment, cwd=ROOT)
        return self._child

    def _epitaph(self) -> str:
        """How the child died, and what LLVM or the C library said on the way down."""
        assert self._child is not None
        try:
            code = self._child.wait(10)
        except subprocess.TimeoutExpired:
            code = 0
        self.close()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        said = [line.strip() for line in lines if "ssert" in line or "LLVM ERROR" in line or "error:" in line.lower()]
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return f"{how}: {said[-1][-300:] if said else ''}"

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        pass
            self._child = None


def _answers(child: subprocess.Popen) -> bool:
    begin, busy = time.monotonic(), _busy_s(child.pid)
    while not select.select([child.stdout], [], [], 5.0)[0]:
        waited = time.monotonic() - begin
        if waited > PATIENCE * TIMEOUT_S or (waited > TIMEOUT_S and _busy_s(child.pid) - busy > TIMEOUT_S):
            return False
    return True


def _busy_s(process: int) -> float:
    """Processor time so far; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            graph = receive(sys.stdin.buffer)
        except EOFError:
            return
        send(output, check(graph))


if __name__ == "__main__":
    main()
