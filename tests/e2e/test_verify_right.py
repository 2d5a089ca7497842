"""Right models of each framework: `eyas.verify` says so, and names their layers and places."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from tests.tools.faults import chain, mlp, net, verify, wrong_exp
from torch import nn

import eyas

pytestmark = pytest.mark.usefixtures("faults_in_this_process")


def _names(report):
    return [row.layer.name for row in report.layers]


def test_a_right_torch_module():
    model, inputs = net()
    report = eyas.verify(model, inputs, workers=1)
    assert report.ok, report
    assert _names(report) == ["conv2d", "relu", "max_pool2d", "view", "linear", "softmax"]
    assert report.layers[0].layer.op == "aten.conv2d.default" and "faults.py:" in report.layers[0].layer.place
    assert report.blame is None and report.reproducer is None
    assert all(row.difference.error < 1e-5 for row in report.layers)


def test_a_right_torch_file_with_a_dynamic_size_and_nested_results(tmp_path):
    class Nested(nn.Module):
        def forward(self, x, *, scale):
            values, places = torch.max(x * scale, 1)
            return {"values": values, "places": places, "none": None, "both": (x.relu(), x.to(torch.bfloat16))}

    x, scale = torch.randn(2, 7), torch.tensor(3.0)
    batch = torch.export.Dim("batch", min=1, max=9)
    exported = torch.export.export(
        Nested(), (x,), {"scale": scale}, dynamic_shapes={"x": {0: batch}, "scale": None}, strict=False
    )
    torch.export.save(exported, tmp_path / "model.pt2")
    for model in (exported, tmp_path / "model.pt2"):
        report = eyas.verify(model, (torch.randn(5, 7),), kwargs={"scale": scale}, workers=1)
        assert report.ok, report
        assert len(report.results) == 4 and report.results[0].shape == (5,)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_right_torch_modules_of_other_types(dtype):
    """Also: an argument named as a function of Python is, an op that writes in place, a buffer that changes."""

    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(8))
            self.norm = nn.LayerNorm(8)

        def forward(self, input):
            self.seen.add_(input.sum(0))
            y = self.norm(input) + self.seen
            y.relu_()
            return y * 2

    torch.manual_seed(0)
    report = eyas.verify(Counting().to(dtype).eval(), (torch.randn(3, 8, dtype=dtype),), workers=1)
    assert report.ok and len(report.layers) >= 5, report


def test_a_right_onnx_model():
    report = eyas.verify(mlp(), workers=1)
    assert report.ok, report
    assert _names(report) == ["h", "t", "e", "s", "n", "m", "y"] and "onnxruntime" in report.reference
    assert report.layers[0].layer.place == "node 'first'"


def test_onnx_without_onnxruntime(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    report = eyas.verify(mlp(), workers=1)
    assert report.ok and "reference evaluator" in report.reference


def test_a_right_jax_function():
    jax = pytest.importorskip("jax")
    weight = np.random.default_rng(0).standard_normal((32, 8)).astype(np.float32)

    @jax.jit
    def function(tree, x):
        hidden = jax.numpy.tanh(x @ tree["w"])
        total, _ = jax.lax.scan(lambda carry, row: (carry + row, row), jax.numpy.zeros(32), hidden)
        return {"y": jax.nn.softmax(hidden @ weight), "total": total}

    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    w = np.random.default_rng(2).standard_normal((16, 32)).astype(np.float32)
    report = eyas.verify(function, ({"w": w}, x), workers=1)
    assert report.ok, report
    assert {"dot_general_0", "tanh_1"} <= set(_names(report)) and any(
        name.startswith("scan") for name in _names(report)
    )
    assert "test_verify_right.py:" in report.layers[0].layer.place


def test_a_wrong_jax_function(monkeypatch):
    jax = pytest.importorskip("jax")
    wrong_exp(monkeypatch)
    x = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)
    report = verify(lambda x: jax.numpy.exp(x) + 1, (x,))
    assert report.blame is not None and report.blame.name == "expand-math"
    assert report.first is not None and report.first.layer.op == "exp"


def test_right_text():
    text, inputs = chain()
    report = eyas.verify(text, inputs, workers=1)
    assert report.ok and len(report.layers) == 5 and report.layers[0].layer.place == "line 9"
