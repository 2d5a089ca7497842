"""Differences that are the reference's, such as numbers half way between two steps, are no faults."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from tests.tools.faults import short_contraction, verify
from torch import nn

from eyas.codegen.common.passes import approximations, expand_math
from eyas.verification import onnx_source, torch_source

pytestmark = pytest.mark.usefixtures("faults_in_this_process")


def quantized() -> tuple[onnx.ModelProto, tuple[np.ndarray]]:
    """u8 x s8 products with sums in 32 bits, scaled, rounded to u8, and scaled back."""
    random = np.random.default_rng(5)
    nodes = [
        helper.make_node("MatMulInteger", ["x", "w"], ["sums"], "product"),
        helper.make_node("Cast", ["sums"], ["floats"], "cast", to=TensorProto.FLOAT),
        helper.make_node("QuantizeLinear", ["floats", "scale", "zero"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], "dequantize"),
        helper.make_node("Exp", ["small"], ["y"], "exp"),
    ]
    nodes.insert(4, helper.make_node("Mul", ["d", "factor"], ["small"], "scale down"))
    constants = {
        "w": random.integers(-128, 128, (64, 16)).astype(np.int8),
        "scale": np.float32(64),  # sums are whole numbers, so many lie exactly between two steps
        "zero": np.uint8(128),
        "factor": np.float32(1e-5),
    }
    graph = helper.make_graph(
        nodes,
        "quantized",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [256, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [256, 16])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    large, small = (random.integers(*ends, (128, 64)) for ends in ((128, 256), (0, 16)))
    return model, (np.concatenate([large, small]).astype(np.uint8),)


def _reference_that(monkeypatch, change) -> None:
    """ONNX Runtime with some of its values changed, and all that depends on them; it runs nodes alone the same way."""
    run = onnx_source._run_onnxruntime

    def changed(proto, wanted, feeds):
        known = dict(feeds)
        for one in proto.graph.initializer:
            known[one.name] = numpy_helper.to_array(one)
        for node in proto.graph.node:
            part = onnx_source._alone(proto, node.output[0], known)
            _, (value,) = run(part, [node.output[0]], {one.name: known[one.name] for one in part.graph.input})
            known[node.output[0]] = change(node, known, value)
        return "onnxruntime", [known[name] for name in wanted]

    monkeypatch.setattr(onnx_source, "_run_onnxruntime", changed)


def saturated(node, known, value):
    """As on a CPU with AVX2 and without VNNI: sums of two products stop at the ends of 16 bits."""
    if node.op_type != "MatMulInteger":
        return value
    products = known["x"].astype(np.int64)[:, :, None] * known["w"].astype(np.int64)[None]
    pairs = np.clip(products[:, 0::2] + products[:, 1::2], -(1 << 15), (1 << 15) - 1)
    return pairs.sum(1).astype(np.int32)


def away_from_zero(node, known, value):
    """Ties are rounded away from zero instead of to the even neighbour."""
    if node.op_type != "QuantizeLinear":
        return value
    scaled = known["floats"].astype(np.float64) / 64
    return np.clip(np.trunc(scaled + np.copysign(0.5, scaled)) + 128, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(("change", "layer"), [(saturated, "sums"), (away_from_zero, "q")], ids=["saturated", "tie"])
def test_a_reference_that_is_not_exact_is_no_fault(monkeypatch, change, layer):
    model, inputs = quantized()
    assert verify(model, inputs).ok
    _reference_that(monkeypatch, change)
    report = verify(model, inputs)
    excused = [row.layer.name for row in report.rows if row.agrees_with]
    assert report.ok and excused[0] == layer and "y" in excused, report
    assert "right for what it is computed from" in str(report) and "reference evaluator" in str(report)


def test_a_fault_behind_a_tie_is_still_found(monkeypatch):
    model, inputs = quantized()
    _reference_that(monkeypatch, away_from_zero)
    monkeypatch.setitem(expand_math._FUNCTIONS, "math.exp", lambda x: approximations.exp(x * 1.5))
    report = verify(model, inputs)
    assert not report.ok and report.first is not None and report.first.layer.name == "y", report
    assert report.blame is not None and report.blame.name == "expand-math"


def test_a_wrong_integer_is_not_excused(monkeypatch):
    model, inputs = quantized()
    short_contraction(monkeypatch, steps=4)  # bytes are summed by fours
    report = verify(model, inputs)
    assert not report.ok and report.first is not None and report.first.layer.name == "sums", report
    assert report.blame is not None and report.blame.name == "contraction"


def test_a_tie_of_torch_is_no_fault(monkeypatch):
    """A float that differs within tolerance is rounded to the other side of a tie."""

    class Rounded(nn.Module):
        def forward(self, x):
            return torch.round(x * 0.1).to(torch.int32).to(torch.float32) + 0.25

    x = torch.arange(-40, 40, dtype=torch.float32).reshape(8, 10)
    assert verify(Rounded(), (x,)).ok
    run_node = torch_source._Recorder.run_node

    def off_by_a_bit(self, n):
        value = run_node(self, n)
        return value * (1 + 2e-7) if n.name == "mul" else value

    monkeypatch.setattr(torch_source._Recorder, "run_node", off_by_a_bit)
    report = verify(Rounded(), (x,))
    assert report.ok and any(row.agrees_with for row in report.rows), report
