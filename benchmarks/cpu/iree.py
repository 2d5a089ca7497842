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

_LOCAL = ("--iree-hal-target-device=local", "--iree-opt-level=O3")
_BACKENDS = {
    "llvm-cpu": (*_LOCAL, "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=host"),
    "vmvx": (*_LOCAL, "--iree-hal-local-target-device-backends=vmvx"),
    # What ends on lavapipe 22.3: with O3, or with buffers by their addresses, MiniLM took more than 100 s.
    "vulkan": ("--iree-hal-target-device=vulkan", "--iree-vulkan-dispatch-abi=descriptors"),
}
_FLAGS = {
    "data-tiling": ("--iree-opt-data-tiling", "--iree-dispatch-creation-data-tiling"),
    "microkernels": ("--iree-vmvx-enable-microkernels",),
    **{name: (f"--iree-vulkan-target={name}",) for name in ("llvmpipe", "ampere", "ada", "rdna3", "valhall")},
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
        chosen = [option for flag in flags for option in _FLAGS[flag]]
        try:
            _run("iree-compile", str(source), "-o", str(path), *_BACKENDS[backend], *chosen)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failed.write_text(str(error))
            raise
    return path


def open_module(path: Path, threads: int, driver: str = "local-task") -> Callable[..., Any]:
    """The function of a module; its arguments are arrays, of NumPy or on IREE's device."""
    from iree import runtime

    runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
    config = runtime.Config(driver)
    module = runtime.load_vm_module(runtime.VmModule.mmap(config.vm_instance, str(path)), config)
    # Beside each function there is one for callers that bring fences, and there are private ones.
    return module[next(name for name in module.vm_module.function_names if name[0] != "_" and "$" not in name)]


def results(answer: Any) -> list[np.ndarray]:
    return [_on_host(part) for part in (answer if isinstance(answer, (tuple, list)) else [answer])]


def _on_host(array: Any) -> np.ndarray:
    """A copy of a result. `to_host` hands NumPy's memory to the device, which Vulkan refuses unless it is aligned."""
    from iree import runtime

    if array._is_mappable():
        return np.asarray(array.to_host())
    source, device, usage = array._buffer_view.get_buffer(), array._device, runtime.BufferUsage
    target = device.allocator.allocate_buffer(
        memory_type=int(runtime.MemoryType.HOST_LOCAL | runtime.MemoryType.DEVICE_VISIBLE),
        allowed_usage=int(usage.TRANSFER_TARGET | usage.MAPPING_SCOPED),
        allocation_size=source.byte_length(),
    )
    semaphore = device.create_semaphore(0)
    begin, end = (runtime.HalFence.create_at(semaphore, value) for value in (0, 1))
    device.queue_copy(source, target, wait_semaphores=begin, signal_semaphores=end)
    end.wait()
    return np.array(target.map().asarray(array._buffer_view.shape, array._get_raw_dtype()))


def _run(tool: str, *arguments: str) -> None:
    command = [sys.executable, str(PEERS / "bin" / tool), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = next((line for line in lines if "error:" in line), lines[-1] if lines else f"exit {done.returncode}")
        raise RuntimeError(f"{tool}: {reason.partition('error:')[2] or reason}"[:200])
