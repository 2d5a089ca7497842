"""TensorFlow.js itself, in Node: the engine that models of TF.js were made for. Its packages are fetched from npm."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from tests.conformance.packages import File, Missing
from tests.conformance.wild.case import Call, file

_SERVER = Path(__file__).with_name("tfjs_server.js")
_CORE = ("@tensorflow/tfjs@4.22.0", "dist/tf.min.js")
_WASM = "@tensorflow/tfjs-backend-wasm@4.22.0"
_KERNELS = ("dist/tf-backend-wasm.node.js", "dist/tfjs-backend-wasm.wasm", "dist/tfjs-backend-wasm-simd.wasm")
_DTYPES = {"float32": np.float32, "int32": np.int32, "bool": np.uint8}


class Engine:
    """A model in a process of Node, which ends with this object."""

    def __init__(self, model: Path):
        node = shutil.which("node")
        if node is None:
            raise Missing("Node.js is not installed; TensorFlow.js runs in it")
        core, scripts = file(*_CORE).path(), [file(_WASM, member).path() for member in _KERNELS]
        self._folder = tempfile.TemporaryDirectory()
        command = [node, str(_SERVER), str(core), str(scripts[0]), str(scripts[0].parent), str(model)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self._process.kill()
            self._process.wait()

    def __call__(self, call: Call) -> list[np.ndarray]:
        folder = Path(self._folder.name)
        inputs: list[dict[str, Any]] = []
        for index, (name, value) in enumerate(call.items()):
            kind = "bool" if value.dtype == np.bool_ else "float32" if value.dtype.kind == "f" else "int32"
            path = folder / f"in{index}"
            np.ascontiguousarray(value, _DTYPES[kind]).tofile(path)
            inputs.append({"name": name, "dtype": kind, "shape": list(value.shape), "path": str(path)})
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"inputs": inputs, "outputs": str(folder / "out")}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "Node ended without an answer"}
        if "error" in answer:
            raise RuntimeError(f"TensorFlow.js: {answer['error']}")
        data, results, position = (folder / "out").read_bytes(), [], 0
        for one in answer["outputs"]:
            dtype, count = np.dtype(_DTYPES[one["dtype"]]), int(np.prod(one["shape"], dtype=np.int64))
            array = np.frombuffer(data, dtype, count, position).reshape(one["shape"])
            results.append(array.astype(np.bool_) if one["dtype"] == "bool" else array)
            position += count * dtype.itemsize
        return results


def files() -> tuple[File, ...]:
    """What is fetched for it."""
    return (file(*_CORE), *(file(_WASM, member) for member in _KERNELS))
