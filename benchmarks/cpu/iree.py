"""IREE: ONNX or StableHLO to a module that is compiled once and kept, and that module opened."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cpu.engines import PEERS

_BACKENDS = {
    "llvm-cpu": ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"),
    "vmvx": ("--iree-opt-level=O3",),
}
_FLAGS = {
    "data-tiling": ("--iree-opt-data-tiling", "--iree-dispatch-creation-data-tiling"),
    "microkernels": ("--iree-vmvx-enable-microkernels",),
}


def version() -> str:
    return importlib.metadata.version("iree-base-runtime")


def import_onnx(path: Path) -> Path:
    """The model as IREE's importer reads it."""
    text = path.with_name("iree.mlir")
    if not text.exists():
        _run("iree-import-onnx", str(path), "-o", str(text))
    return text


def compile_module(source: Path, backend: str, flags: Sequence[str] = ()) -> Path:
    """A module beside its source, compiled unless it is there. What failed once fails again at once."""
    path = source.with_name("_".join([source.stem, backend, *flags]) + ".vmfb")
    failed = path.with_suffix(".failed")
    if failed.exists():
        raise RuntimeError(failed.read_text())
    if not path.exists():
        device = ("--iree-hal-target-device=local", f"--iree-hal-local-target-device-backends={backend}")
        chosen = [option for flag in flags for option in _FLAGS[flag]]
        try:
            _run("iree-compile", str(source), "-o", str(path), *device, *_BACKENDS[backend], *chosen)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failed.write_text(str(error))
            raise
    return path


def open_module(path: Path, threads: int) -> Callable[..., Any]:
    """The function of a module; its arguments are arrays, of NumPy or on IREE's device."""
    from iree import runtime

    runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = runtime.Config("local-task")
    module = runtime.load_vm_module(runtime.VmModule.mmap(config.vm_instance, str(path)), config)
    # Beside each function there is one for callers that bring fences, and there are private ones.
    return module[next(name for name in module.vm_module.function_names if name[0] != "_" and "$" not in name)]


def results(answer: Any) -> list[np.ndarray]:
    return [np.asarray(part.to_host()) for part in (answer if isinstance(answer, (tuple, list)) else [answer])]


def _run(tool: str, *arguments: str) -> None:
    command = [sys.executable, str(PEERS / "bin" / tool), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = next((line for line in lines if "error:" in line), lines[-1] if lines else f"exit {done.returncode}")
        raise RuntimeError(f"{tool}: {reason.partition('error:')[2] or reason}"[:200])
