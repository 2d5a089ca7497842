"""The engines: each opens a prepared model in this process and gives a function of no arguments that runs it once.

Every engine gets the settings that its makers recommend for latency on a CPU, and the thread count that was asked for.
"""

from __future__ import annotations

import os
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


def iree(backend: str, *flags: str) -> Callable[[str, Path, int], Session]:
    """IREE on the ONNX file, for one of its backends."""

    def open_(name: str, folder: Path, threads: int) -> Session:
        from benchmarks.cpu.iree import compile_module, import_onnx, open_module, results, version

        path = compile_module(import_onnx(folder / ONNX_FILE), backend, flags)
        entry, inputs = open_module(path, threads), load_arrays(folder / INPUTS_FILE)
        return Session(version(), lambda: entry(*inputs), results)

    return open_


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
    "iree": Engine("IREE", iree("llvm-cpu")),
    "iree_tiled": Engine("IREE, data tiling", iree("llvm-cpu", "data-tiling")),
}


def environment(threads: int) -> dict[str, str]:
    """What a child must know before it imports anything: OpenMP reads its thread count once."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(PEERS)]))
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
