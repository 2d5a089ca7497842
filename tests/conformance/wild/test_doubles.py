"""The arithmetic that quantised files are judged by is ONNX's own."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.conformance.wild.doubles import evaluate


def _model(nodes: list, weights: dict[str, np.ndarray], shape: list[int]) -> object:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def _agrees(model: object, x: np.ndarray) -> None:
    expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
    found = evaluate(model, {"x": x})["y"].numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_quantised_per_channel(kind: type) -> None:
    random = np.random.default_rng(3)
    weights = {
        "s": np.float32(0.05),
        "z": np.array(7, kind),
        "w": random.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8),
        "ws": random.uniform(0.01, 0.1, 4).astype(np.float32),
        "wz": np.zeros(4, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        helper.make_node("Conv", ["d", "wd"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2]),
    ]
    _agrees(_model(nodes, weights, [1, 3, 9, 8]), random.normal(0, 3, (1, 3, 9, 8)).astype(np.float32))


def test_dynamically_quantised() -> None:
    random = np.random.default_rng(4)
    weights = {"w": random.integers(-128, 128, (16, 5)).astype(np.int8), "wz": np.array(3, np.int8)}
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["p"]),
        helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    _agrees(_model(nodes, weights, [6, 16]), random.normal(0, 3, (6, 16)).astype(np.float32))


def test_small_operators() -> None:
    weights = {
        "start": np.array(0.0, np.float32),
        "end": np.array(7.0, np.float32),
        "step": np.array(1.0, np.float32),
        "axes": np.array([1]),
        "first": np.array([0]),
    }
    nodes = [
        helper.make_node("ReduceL2", ["x", "axes"], ["norm"], keepdims=1),
        helper.make_node("Squeeze", ["norm", "axes"], ["flat"]),
        helper.make_node("Range", ["start", "end", "step"], ["places"]),
        helper.make_node("Sin", ["places"], ["sin"]),
        helper.make_node("Cos", ["places"], ["cos"]),
        helper.make_node("Neg", ["cos"], ["minus"]),
        helper.make_node("Equal", ["places", "start"], ["begins"]),
        helper.make_node("Where", ["begins", "sin", "minus"], ["chosen"]),
        helper.make_node("Mul", ["flat", "chosen"], ["product"]),
        helper.make_node("Identity", ["product"], ["y"]),
    ]
    _agrees(_model(nodes, weights, [7, 5]), np.random.default_rng(5).normal(0, 3, (7, 5)).astype(np.float32))
