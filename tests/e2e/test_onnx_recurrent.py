"""RNN, GRU and LSTM of ONNX in random forms, against ONNX Runtime: options with each other, on several targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.tools.onnx_nodes import reference

import eyas

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ACTIVATIONS = ["Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "Elu", "Affine"]


def random_layer(seed: int, dynamic: bool, layout: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A layer of one operator with options that the seed says. Weights are constants, the rest is given."""
    rng = np.random.default_rng(seed)
    op = list(GATES)[seed % 3]
    steps, batch, inputs, hidden = (int(rng.integers(1, most)) for most in (9, 6, 9, 40))
    direction = ["forward", "reverse", "bidirectional"][rng.integers(3)]
    count, gates = 2 if direction == "bidirectional" else 1, GATES[op]

    def normal(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) * 0.7).astype(np.float32)

    def maybe(value: np.ndarray) -> np.ndarray | None:
        return value if rng.integers(2) else None

    operands: dict[str, np.ndarray | None] = {
        "x": normal(steps, batch, inputs),
        "w": normal(count, gates * hidden, inputs),
        "r": normal(count, gates * hidden, hidden),
        "b": maybe(normal(count, 2 * gates * hidden)),
        "lengths": maybe(rng.integers(1, steps + 1, batch).astype(np.int32)),
        "h": maybe(normal(count, batch, hidden)),
    }
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if op == "LSTM":
        operands |= {"c": maybe(normal(count, batch, hidden)), "p": maybe(normal(count, 3 * hidden))}
        attributes["input_forget"] = int(rng.integers(4) == 0)
    if op == "GRU":
        attributes["linear_before_reset"] = int(rng.integers(2))
    if rng.integers(3) == 0:
        attributes["clip"] = float(rng.uniform(0.3, 2.0))
    if rng.integers(2):
        kinds = {"RNN": 1, "GRU": 2, "LSTM": 3}[op]
        attributes["activations"] = [str(rng.choice(ACTIVATIONS)) for _ in range(kinds * count)]
        attributes["activation_alpha"] = [0.3] * 6
        attributes["activation_beta"] = [0.4] * 6
    return make_model(op, operands, attributes, dynamic)


def make_model(
    op: str, operands: dict[str, np.ndarray | None], attributes: dict[str, Any], dynamic: bool
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    given = {name: value for name, value in operands.items() if value is not None}
    constant = [name for name in ("w", "r", "b", "p") if name in given]
    open_dims = {
        "x": ["steps", "batch", None],
        "lengths": ["batch"],
        "h": [None, "batch", None],
        "c": [None, "batch", None],
    }
    infos = []
    for name, value in given.items():
        if name not in constant:
            dims = [dim or size for dim, size in zip(open_dims[name], value.shape, strict=True)]
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            infos.append(helper.make_tensor_value_info(name, kind, dims if dynamic else value.shape))
    outputs = ["y", "y_h", *(["y_c"] if op == "LSTM" else [])]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    node = helper.make_node(op, [n if n in given else "" for n in operands], outputs, **attributes)
    weights = [numpy_helper.from_array(given[name], name) for name in constant]
    graph = helper.make_graph([node], "graph", infos, results, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, {name: value for name, value in given.items() if name not in constant}


def check(model: onnx.ModelProto, given: dict[str, np.ndarray], **options: Any) -> Any:
    module = eyas.compile(model, **options)
    results = module(*given.values())
    for got, want in zip(
        results if isinstance(results, list | tuple) else [results], reference(model, given), strict=True
    ):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)
    return module


@pytest.mark.parametrize("seed", range(24))
def test_random_layers(seed: int):
    module = check(*random_layer(seed, dynamic=seed % 2 == 1))
    loops = [kernel for kernel in module.manifest["kernels"] if "_for_" in kernel["name"]]
    assert loops and all(kernel["strategy"] == "recurrence" for kernel in loops)


@pytest.mark.parametrize("seed", range(100, 106))
def test_random_layers_of_bytecode(seed: int):
    check(*random_layer(seed, dynamic=seed % 2 == 1), target="vmvx")


@pytest.mark.parametrize("seed", range(200, 203))
def test_random_layers_as_plain_loops(seed: int):
    check(*random_layer(seed, dynamic=seed % 2 == 1), disable=["recurrence", "rows"])


@pytest.mark.parametrize("op", GATES)
def test_lengths_of_calls_that_differ(op: str):
    """One module for any number of steps and rows, none among them."""
    rng = np.random.default_rng(7)
    hidden, inputs, gates = 24, 5, GATES[op]
    weights = {
        "w": rng.standard_normal((2, gates * hidden, inputs)).astype(np.float32) * 0.5,
        "r": rng.standard_normal((2, gates * hidden, hidden)).astype(np.float32) * 0.3,
    }
    x = rng.standard_normal((3, 2, inputs)).astype(np.float32)
    attributes = {"hidden_size": hidden, "direction": "bidirectional"}
    model, _ = make_model(op, {"x": x, **weights}, attributes, dynamic=True)
    module = eyas.compile(model)
    for steps, batch in ((3, 2), (1, 1), (17, 5), (40, 1), (2, 13)):
        x = rng.standard_normal((steps, batch, inputs)).astype(np.float32)
        for got, want in zip(module(x), reference(model, {"x": x}), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


def test_rows_by_batch_and_old_opsets():
    rng = np.random.default_rng(3)
    operands: dict[str, np.ndarray | None] = {
        "x": rng.standard_normal((4, 6, 3)).astype(np.float32),
        "w": rng.standard_normal((1, 30, 3)).astype(np.float32),
        "r": rng.standard_normal((1, 30, 10)).astype(np.float32) * 0.3,
    }
    first, given = make_model("GRU", operands, {"hidden_size": 10}, dynamic=False)
    second, turned = make_model("GRU", operands, {"hidden_size": 10, "layout": 1}, dynamic=False)
    turned["x"] = np.ascontiguousarray(given["x"].transpose(1, 0, 2))
    second.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, turned["x"].shape))
    rows, last = eyas.compile(first)(given["x"])
    turned_rows, turned_last = eyas.compile(second)(turned["x"])
    np.testing.assert_array_equal(rows.transpose(2, 0, 1, 3), turned_rows)
    np.testing.assert_array_equal(last.transpose(1, 0, 2), turned_last)
    old = onnx.ModelProto()
    old.CopyFrom(first)
    old.opset_import[0].version = 7
    check(old, given)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30])
def test_values_at_the_edge(value: float):
    """What overflows saturates, and NaN stays in its row."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((4, 3, 5)).astype(np.float32)
    x[1, 1, 2] = value
    weights = {"w": np.abs(rng.standard_normal((1, 64, 5))).astype(np.float32), "r": np.zeros((1, 64, 16), np.float32)}
    module = eyas.compile(make_model("LSTM", {"x": x, **weights}, {"hidden_size": 16}, dynamic=False)[0])
    with np.errstate(all="ignore"):
        h, c = np.zeros((3, 16)), np.zeros((3, 16))
        rows = []
        for row in x.astype(np.float64):
            i, o, f, g = np.split(row @ weights["w"][0].T.astype(np.float64), 4, axis=1)
            i, o, f = (1 / (1 + np.exp(-gate)) for gate in (i, o, f))
            c = f * c + i * np.tanh(g)
            h = o * np.tanh(c)
            rows.append(h)
    np.testing.assert_allclose(module(x)[0][:, 0], rows, rtol=1e-4, atol=1e-5)
