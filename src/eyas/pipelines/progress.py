"""Progress of a compilation on a terminal: the phase, and in codegen how many kernels are done."""

from __future__ import annotations

import threading
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from eyas.dialects import flow
from eyas.pipelines.request import Phase, Watcher


class CompileProgress(Watcher):
    """A bar that vanishes when the work is done. Kernels report from several threads."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description:<9}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        columns += (TextColumn("[dim]{task.fields[detail]}"),)
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("import", total=None, detail="")
        self._lock = threading.Lock()

    def __enter__(self) -> CompileProgress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_phase(self, phase: Phase, compilation: Any) -> None:
        """A phase begins."""
        total, detail = None, phase.description
        if phase is Phase.CODEGEN:
            total = sum(flow.is_executable(op) for op in compilation.module.body.operations)
            detail = f"{total} kernels"
        self._progress.reset(self._task, total=total, description=phase.value, detail=detail)

    def on_pass(self, name: str, seconds: float) -> None:
        """A pass of the phase is done."""
        if self._progress.tasks[self._task].total is None:
            self._progress.update(self._task, detail=f"after {name}")

    def on_kernel(self, name: str, seconds: float | None) -> None:
        """A kernel was compiled."""
        with self._lock:
            self._progress.update(self._task, advance=1, detail=name)
