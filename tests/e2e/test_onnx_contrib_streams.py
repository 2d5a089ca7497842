"""Layers of `com.microsoft` that keep a state from call to call, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto  # noqa: E402
from tests.tools.onnx_nodes import check_node, node_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import UnsupportedOpError  # noqa: E402

RNG = np.random.default_rng(4)
MS, OUT = "com.microsoft", {"y": TensorProto.FLOAT, "state": TensorProto.FLOAT}


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("steps, past, bias, options", [
    (9, True, True, {}),
    (1, True, False, {"activation": "silu"}),
    (2, False, True, {"activation": "swish"}),
    (5, False, False, {"dilation": 2}),
    (3, True, True, {"dilation": 3, "activation": "silu"}),
])  # fmt: skip
def test_causal_convolution(steps, past, bias, options):
    channels, taps = 6, 4
    length = (taps - 1) * options.get("dilation", 1)
    inputs = {"x": normal(2, channels, steps), "w": normal(channels, 1, taps), "b": normal(channels) if bias else None}
    inputs["past"] = normal(2, channels, length) if past else None
    check_node("CausalConvWithState", inputs, OUT, MS, constants=["w"], dynamic=["x", "past"], **options)


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_causal_convolution_with_channels_last(shape, past):
    inputs = {"x": normal(2, 5, *shape), "w": normal(6, 1, 3), "b": normal(6)}
    inputs["past"] = normal(2, 2, *shape) if past else None
    check_node("CausalConvWithState", inputs, OUT, MS, constants=["w", "b"], channels_last=1)


def attention(rule, heads, groups, steps, past=True, wide=True, batch=2):
    depth, columns = 8, 6
    inputs = {"q": normal(batch, steps, heads * depth), "k": normal(batch, steps, groups * depth) * 0.3}
    inputs["v"] = normal(batch, steps, groups * columns)
    inputs["past"] = normal(batch, groups, depth, columns) if past else None
    gate = normal(batch, steps, groups * (depth if wide else 1))
    inputs["decay"] = -np.abs(gate) if "gated" in rule else None
    inputs["beta"] = RNG.random((batch, steps, groups if wide else 1)).astype(np.float32) if "delta" in rule else None
    return inputs


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("heads, groups", [(4, 4), (4, 2), (2, 4)])
def test_linear_attention(rule, heads, groups):
    inputs = attention(rule, heads, groups, steps=5)
    check_node("LinearAttention", inputs, OUT, MS, q_num_heads=heads, kv_num_heads=groups, update_rule=rule)


@pytest.mark.parametrize("steps, past, wide", [(1, True, True), (80, False, False), (3, False, True)])
def test_linear_attention_of_few_and_many_steps(steps, past, wide):
    """More steps than are unrolled, no state before, one number for a head, an open batch."""
    inputs = attention("gated_delta", 4, 2, steps, past, wide)
    options = {"dynamic": ["q", "k", "v", "past", "decay", "beta"], "scale": 0.25}
    check_node("LinearAttention", inputs, OUT, MS, q_num_heads=4, kv_num_heads=2, **options)


def test_what_is_not_known_is_refused():
    model, _ = node_model("LinearAttention", attention("delta", 3, 2, 4), OUT, MS, q_num_heads=3, kv_num_heads=2)
    with pytest.raises(UnsupportedOpError, match="multiple"):
        eyas.compile(model)
    inputs = attention("linear", 2, 2, 4)
    model, _ = node_model("LinearAttention", inputs, OUT, MS, q_num_heads=2, kv_num_heads=2)
    with pytest.raises(UnsupportedOpError, match="no input decay"):
        eyas.compile(model)
