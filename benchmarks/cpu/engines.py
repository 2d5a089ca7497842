"""The engines: each opens a prepared model in this process and gives a function of no arguments that runs it once.

Every engine gets the settings that its makers recommend for latency on a CPU, and the thread count that was asked for.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import models as cases
from benchmarks.cpu.models import INPUTS_FILE, MODELS, ONNX_FILE, load_arrays

Call = Callable[[], Any]
"""One run of the model; what it returns goes to `results`."""


@dataclass(frozen=True)
class Session:
    """An engine that is ready: its version, one run, and how a run's answer becomes flat arrays."""

    version: str
    call: Call
    results: Callable[[Any], list[np.ndarray]] = cases.flat


@dataclass(frozen=True)
class Engine:
    """`open(model name, folder, threads)` compiles or loads; it may keep files in the folder for the next process."""

    title: str
    open: Callable[[str, Path, int], Session]


def _eyas(name: str, folder: Path, threads: int) -> Session:
    import eyas

    path = folder / "model.eyas"
    if not path.exists():
        one = MODELS[name]()
        eyas.compile(one.model, one.args, kwargs=one.kwargs).save(path)
    module = eyas.load(path, threads=threads)
    inputs, main = load_arrays(folder / INPUTS_FILE), module.functions["main"]
    return Session(eyas.__version__, lambda: main(*inputs))


def _onnxruntime(name: str, folder: Path, threads: int) -> Session:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(folder / ONNX_FILE), options, providers=["CPUExecutionProvider"])
    inputs = load_arrays(folder / INPUTS_FILE)
    feed = {value.name: array for value, array in zip(session.get_inputs(), inputs, strict=True)}
    return Session(onnxruntime.__version__, lambda: session.run(None, feed))


def _openvino(name: str, folder: Path, threads: int) -> Session:
    import openvino

    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = openvino.Core().compile_model(str(folder / ONNX_FILE), "CPU", settings)
    request, inputs = compiled.create_infer_request(), load_arrays(folder / INPUTS_FILE)
    feed = {at: openvino.Tensor(array, shared_memory=True) for at, array in enumerate(inputs)}

    def call() -> list[np.ndarray]:
        request.infer(feed)
        return [output.data for output in request.output_tensors]

    return Session(openvino.__version__.partition("-")[0], call)


def _torch(name: str, threads: int) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    import torch

    torch.set_num_threads(threads)
    one = MODELS[name]()
    return one.model, one.args, dict(one.kwargs)


def _eager(name: str, folder: Path, threads: int) -> Session:
    import torch

    model, args, kwargs = _torch(name, threads)

    @torch.inference_mode()
    def call() -> Any:
        return model(*args, **kwargs)

    return Session(torch.__version__, call)


def _inductor(name: str, folder: Path, threads: int) -> Session:
    import torch
    import torch._inductor.config

    torch._inductor.config.freezing = True
    model, args, kwargs = _torch(name, threads)
    compiled = torch.compile(model, backend="inductor")

    @torch.no_grad()
    def call() -> Any:
        return compiled(*args, **kwargs)

    return Session(torch.__version__, call)


PEERS = Path(__file__).parents[2] / "build" / "peers"
"""Where `make bench-cpu` installs the engines that Eyas itself does not need."""

IREE_FLAGS = {"plain": (), "data tiling": ("--iree-opt-data-tiling", "--iree-dispatch-creation-data-tiling")}


def _iree(flags: str) -> Callable[[str, Path, int], Session]:
    def open_(name: str, folder: Path, threads: int) -> Session:
        from iree import runtime

        path = folder / f"iree_{flags.replace(' ', '_')}.vmfb"
        if not path.exists():
            _iree_compile(folder, path, IREE_FLAGS[flags])
        runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        config = runtime.Config("local-task")
        module = runtime.load_vm_module(runtime.VmModule.mmap(config.vm_instance, str(path)), config)
        entry = module[next(name for name in module.vm_module.function_names if not name.startswith("_"))]
        inputs = load_arrays(folder / INPUTS_FILE)
        return Session(importlib.metadata.version("iree-base-runtime"), lambda: entry(*inputs), _iree_results)

    return open_


def _iree_results(answer: Any) -> list[np.ndarray]:
    return [np.asarray(part.to_host()) for part in (answer if isinstance(answer, (tuple, list)) else [answer])]


def _iree_compile(folder: Path, path: Path, flags: tuple[str, ...]) -> None:
    text, tools = folder / "iree.mlir", PEERS / "bin"
    if not text.exists():
        _run(str(tools / "iree-import-onnx"), str(folder / ONNX_FILE), "-o", str(text))
    device = ("--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu")
    cpu = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3")
    _run(str(tools / "iree-compile"), str(text), "-o", str(path), *device, *cpu, *flags)


def _run(*command: str) -> None:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=900)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        reason = next((line for line in lines if "error:" in line), lines[-1] if lines else f"exit {done.returncode}")
        raise RuntimeError(f"{Path(command[0]).name}: {reason.partition('error:')[2] or reason}"[:200])


def _xla(name: str, folder: Path, threads: int) -> Session:
    from benchmarks.cpu.xla import open_xla

    return open_xla(name, folder, threads)


ENGINES: Mapping[str, Engine] = {
    "eyas": Engine("Eyas", _eyas),
    "onnxruntime": Engine("ONNX Runtime", _onnxruntime),
    "openvino": Engine("OpenVINO", _openvino),
    "eager": Engine("PyTorch eager", _eager),
    "inductor": Engine("Inductor", _inductor),
    "xla": Engine("XLA", _xla),
    "iree": Engine("IREE", _iree("plain")),
    "iree_tiled": Engine("IREE, data tiling", _iree("data tiling")),
}


def environment(threads: int) -> dict[str, str]:
    """What a child must know before it imports anything: OpenMP reads its thread count once."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(PEERS)]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
