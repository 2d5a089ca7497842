"""What a file was made for: each engine loads it and runs a call with two threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tests.conformance.packages import Missing
from tests.conformance.wild.case import Call, Wild

THREADS = 2
Run = Callable[[Call], list[np.ndarray]]


def reference(case: Wild, source: Any) -> Run:
    """The engine of the case with the model loaded. `source` is a path, or what `case.build` made."""
    return {"onnxruntime": _onnxruntime, "litert": _litert, "torch": _torch, "tfjs": _tfjs}[case.engine](source)


def arrays(results: Any) -> list[np.ndarray]:
    """Results in order, as arrays."""
    if isinstance(results, dict):
        results = list(results.values())
    if not isinstance(results, (tuple, list)):
        results = [results]
    flat = []
    for value in results:
        flat += arrays(value) if isinstance(value, (tuple, list, dict)) else [np.asarray(value)]
    return flat


def _onnxruntime(source: Any) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = THREADS, 3
    stored = str(source) if isinstance(source, (str, Path)) else source.SerializeToString()
    session = onnxruntime.InferenceSession(stored, options, providers=["CPUExecutionProvider"])
    return lambda call: arrays(session.run(None, dict(call)))


def _litert(source: Any) -> Run:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError:
        raise Missing("LiteRT is not installed: pip install ai-edge-litert") from None
    interpreter = Interpreter(str(source), num_threads=THREADS)
    interpreter.allocate_tensors()
    inputs = {one["name"]: one["index"] for one in interpreter.get_input_details()}
    outputs = [one["index"] for one in interpreter.get_output_details()]

    def run(call: Call) -> list[np.ndarray]:
        for name, value in call.items():
            interpreter.set_tensor(inputs[name], value)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    return run


def _torch(model: Any) -> Run:
    import torch

    torch.set_num_threads(THREADS)

    def run(call: Call) -> list[np.ndarray]:
        with torch.no_grad():
            return _numpy(model(*map(torch.from_numpy, call.values())))

    return run


def _tfjs(source: Any) -> Run:
    from tests.conformance.wild.tfjs_engine import Engine

    return Engine(Path(source))


def _numpy(results: Any) -> list[np.ndarray]:
    values: Sequence[Any] = results if isinstance(results, (tuple, list)) else [results]
    return [value.numpy() if hasattr(value, "numpy") else np.asarray(value) for value in values]
