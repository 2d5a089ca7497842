"""Reads `model.json` and its weights: shards one after the other, some stored with fewer bits.

Nothing in the files is trusted: shards stay in the model's folder, and every weight must lie within them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from eyas.errors import FrontendError

_DTYPES = {
    "float32": np.float32,
    "float16": np.float16,
    "int32": np.int32,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "bool": np.bool_,
}


@dataclass(frozen=True)
class TfjsFile:
    """A model: its topology as JSON has it, its weights by name, and the signature of a graph model."""

    description: str
    topology: dict[str, Any]
    weights: dict[str, np.ndarray]
    signature: dict[str, Any]

    @property
    def is_graph(self) -> bool:
        return isinstance(self.topology.get("node"), list)


def find_model(path: str) -> str:
    """The file of a model that is given by it or by its folder."""
    return os.path.join(path, "model.json") if os.path.isdir(path) else path


def open_file(path: str | os.PathLike[str]) -> TfjsFile:
    """Reads a model; raises FrontendError for what is none."""
    path = find_model(os.fspath(path))
    if not os.path.isfile(path):
        raise FrontendError(f"no such file: '{path}'")
    description = os.path.basename(path)
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (ValueError, RecursionError) as error:
        raise FrontendError(f"'{path}' is not JSON: {str(error).splitlines()[0]}") from None
    topology = content.get("modelTopology") if isinstance(content, dict) else None
    if not isinstance(topology, dict):
        raise FrontendError(f"'{path}' is not a model of TensorFlow.js: it has no 'modelTopology'")
    try:
        weights = _read_weights(content.get("weightsManifest") or [], os.path.dirname(os.path.abspath(path)))
        signature = content.get("signature") or (content.get("userDefinedMetadata") or {}).get("signature") or {}
        return TfjsFile(description, topology, weights, signature)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise FrontendError(f"'{path}' is damaged: {type(error).__name__}: {str(error).splitlines()[0]}") from None


def _read_weights(manifest: list[Any], folder: str) -> dict[str, np.ndarray]:
    weights: dict[str, np.ndarray] = {}
    for group in manifest:
        data = _join([_map_shard(folder, name) for name in group["paths"]])
        position = 0
        for entry in group["weights"]:
            array, position = _read_weight(entry, data, position)
            weights[entry["name"]] = array
    return weights


def _map_shard(folder: str, name: str) -> np.ndarray:
    if os.path.isabs(name) or ".." in name.replace("\\", "/").split("/"):
        raise FrontendError(f"weights are in '{name}', which is outside the model's folder")
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise FrontendError(f"weights are in '{name}', which is not beside the model: '{path}'")
    return np.memmap(path, np.uint8, "r") if os.path.getsize(path) else np.zeros(0, np.uint8)


def _join(shards: list[np.ndarray]) -> np.ndarray:
    return shards[0] if len(shards) == 1 else np.concatenate(shards) if shards else np.zeros(0, np.uint8)


def _read_weight(entry: dict[str, Any], data: np.ndarray, position: int) -> tuple[np.ndarray, int]:
    """One weight, and where the next begins. Numbers of fewer bits are scale * stored + min, or halves."""
    name, shape = entry["name"], [int(size) for size in entry["shape"]]
    packed = entry.get("quantization") or {}
    kind = packed.get("dtype", entry["dtype"])
    if kind not in _DTYPES or entry["dtype"] not in _DTYPES:
        raise FrontendError(f"weight '{name}' has element type {kind}, which is not supported")
    if min(shape, default=0) < 0:
        raise FrontendError(f"weight '{name}' has shape {shape}")
    count = int(np.prod(shape, dtype=object)) if shape else 1
    size = count * np.dtype(_DTYPES[kind]).itemsize
    if position + size > len(data):
        raise FrontendError(f"weight '{name}' needs {size} bytes at {position}, but its shards have {len(data)}")
    stored = np.frombuffer(data[position : position + size].tobytes(), _DTYPES[kind]).reshape(shape)
    if not packed:
        return stored, position + size
    wanted = np.dtype(_DTYPES[entry["dtype"]])
    if kind == "float16":
        return stored.astype(wanted), position + size
    real = stored.astype(np.float64) * float(packed["scale"]) + float(packed["min"])
    # NumPy's arithmetic makes a scalar, not an array, of an array without dimensions.
    return np.asarray(np.round(real) if wanted.kind in "iu" else real, wanted), position + size
