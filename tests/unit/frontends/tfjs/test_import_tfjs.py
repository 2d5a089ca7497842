"""Models of TensorFlow.js: a graph model against NumPy, and files that are none."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("onnx")

import eyas  # noqa: E402
from eyas.errors import FrontendError  # noqa: E402

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def write(folder, weights, nodes, **entries):
    """A graph model with weights in one shard."""
    specs = [{"name": name, "shape": list(array.shape), "dtype": "float32"} for name, array in weights.items()]
    manifest = [{"paths": ["group1-shard1of1.bin"], "weights": specs}]
    (folder / "group1-shard1of1.bin").write_bytes(b"".join(array.tobytes() for array in weights.values()))
    content = {"format": "graph-model", "modelTopology": {"node": nodes}, "weightsManifest": manifest, **entries}
    (folder / "model.json").write_text(json.dumps(content))


def nodes():
    shape = {"shape": {"dim": [{"size": "-1"}, {"size": "4"}]}}
    kind = {"type": "DT_FLOAT"}
    return [
        {"name": "x", "op": "Placeholder", "attr": {"dtype": kind, "shape": shape}},
        {"name": "w", "op": "Const", "attr": {"dtype": kind}},
        {"name": "product", "op": "MatMul", "input": ["x", "w"], "attr": {"T": kind}},
        {"name": "y", "op": "Relu", "input": ["product"], "attr": {"T": kind}},
    ]


def test_a_graph_model(tmp_path):
    weight = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)
    write(tmp_path, {"w": weight}, nodes())
    for source in (tmp_path, tmp_path / "model.json"):
        module = eyas.compile(source)
        for x in (X, X[:1]):
            np.testing.assert_allclose(module(x), np.maximum(x @ weight, 0), rtol=1e-5, atol=1e-6)


def test_weights_stay_in_the_folder(tmp_path):
    write(tmp_path, {"w": np.zeros((4, 2), np.float32)}, nodes())
    path = tmp_path / "model.json"
    content = json.loads(path.read_text())
    content["weightsManifest"][0]["paths"] = ["../outside.bin"]
    path.write_text(json.dumps(content))
    with pytest.raises(FrontendError, match="outside the model's folder"):
        eyas.compile(path)


def test_what_is_no_model(tmp_path):
    path = tmp_path / "model.json"
    for text, part in (("[", "not JSON"), ("{}", "no 'modelTopology'")):
        path.write_text(text)
        with pytest.raises(FrontendError, match=part):
            eyas.compile(path)
    write(tmp_path, {"w": np.zeros((4, 2), np.float32)}, nodes())
    (tmp_path / "group1-shard1of1.bin").write_bytes(bytes(8))
    with pytest.raises(FrontendError, match="needs 32 bytes"):
        eyas.compile(path)
