"""Quantised operators of `com.microsoft` in ONNX files, against ONNX Runtime: integers within one step."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from tests.tools.onnx_nodes import check_model, check_node, node_model, reference, run_model  # noqa: E402

RNG = np.random.default_rng(7)
MS, FLOAT = "com.microsoft", TensorProto.FLOAT
BYTES = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}


def integers(dtype, *shape):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def small(dtype, *shape):
    """Numbers whose products with bytes do not saturate in 16 bits, which ONNX Runtime adds up in on some CPUs."""
    return RNG.integers(-63, 64, shape).astype(dtype) if dtype == np.int8 else RNG.integers(0, 127, shape).astype(dtype)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def scale(value):
    return np.float32(value)


def check(op, inputs, kind, **options):
    check_node(op, inputs, {"y": kind}, MS, **options)


def parameters(names):
    return [name for name in names if "scale" in name or "zero" in name]


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype, right", [(np.uint8, (5, 7)), (np.int8, (3, 1, 7))])
def test_binary(op, dtype, right):
    inputs = {"a": integers(dtype, 3, 5, 7), "a_scale": scale(0.03), "a_zero": dtype(11)}
    inputs |= {"b": integers(dtype, *right), "b_scale": scale(0.02), "b_zero": dtype(5)}
    inputs |= {"y_scale": scale(0.07), "y_zero": dtype(90)}
    check(op, inputs, BYTES[dtype], steps=1, constants=parameters(inputs))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize(
    "op, shape, options",
    [
        ("Sigmoid", (3, 9), {}),
        ("LeakyRelu", (3, 9), {"alpha": 0.2}),
        ("Softmax", (2, 3, 9), {"axis": -1, "of_opset": 13}),
        ("Softmax", (2, 3, 4), {"axis": 1, "of_opset": 11}),
        ("AveragePool", (1, 3, 8, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("AveragePool", (1, 8, 8, 3), {"kernel_shape": [2, 2], "channels_last": 1, "count_include_pad": 1}),
        ("GlobalAveragePool", (2, 3, 5, 7), {"channels_last": 0}),
        ("GlobalAveragePool", (2, 5, 7, 3), {"channels_last": 1}),
    ],
)
def test_unary(op, shape, options, dtype):
    low = np.iinfo(dtype).min
    unit = op in ("Sigmoid", "Softmax")
    inputs = {"x": integers(dtype, *shape), "x_scale": scale(0.05), "x_zero": dtype(7)}
    inputs |= {"y_scale": scale(1 / 256 if unit else 0.06), "y_zero": dtype(low if unit else 3)}
    if op == "LeakyRelu":
        inputs["x_zero"] = None
    options = dict(options)
    opset = options.pop("of_opset", None)
    model, given = node_model(f"QLinear{op}", inputs, {"y": BYTES[dtype]}, MS, constants=parameters(inputs), **options)
    if opset:
        model.graph.node[0].attribute.append(helper.make_attribute("opset", opset))
    check_model(model, given, steps=1)


def test_mean():
    """ONNX Runtime has no kernel for CPUs: compared with NumPy."""
    x = integers(np.uint8, 2, 3, 9)
    inputs = {"x": x, "x_scale": scale(0.05), "x_zero": np.uint8(7), "y_scale": scale(0.04), "y_zero": np.uint8(3)}
    model, given = node_model("QLinearReduceMean", inputs, {"y": TensorProto.UINT8}, MS, axes=[-1], keepdims=0)
    want = np.clip(np.round((x.astype(float) - 7).mean(-1) * 0.05 / 0.04) + 3, 0, 255)
    assert np.abs(run_model(model, given)[0].astype(int) - want).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_concat_and_where(dtype):
    inputs = {"y_scale": scale(0.05), "y_zero": dtype(9)}
    for name, columns, step in (("a", 4, 0.03), ("b", 2, 0.05), ("c", 3, 0.08)):
        inputs |= {name: integers(dtype, 2, columns), f"{name}_scale": scale(step), f"{name}_zero": dtype(columns)}
    check("QLinearConcat", inputs, BYTES[dtype], steps=1, axis=1, constants=parameters(inputs))
    inputs = {"condition": RNG.random((3, 5)) < 0.5, "a": integers(dtype, 3, 5)}
    inputs |= {"a_scale": scale(0.05), "a_zero": dtype(3), "b": integers(dtype, 3, 5), "b_scale": scale(0.03)}
    inputs |= {"b_zero": dtype(8), "z_scale": scale(0.06), "z_zero": dtype(1)}
    check("QLinearWhere", inputs, BYTES[dtype], steps=1, constants=parameters(inputs))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_max_pool_with_channels_last(dtype):
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    check("NhwcMaxPool", {"x": integers(dtype, 1, 9, 8, 5)}, BYTES[dtype], **options)


@pytest.mark.parametrize("dtype, axis", [(np.uint16, None), (np.int16, None), (np.int16, 1), (np.uint8, 0)])
def test_linear(dtype, axis):
    """16 bits, which the standard took later."""
    count = {} if axis is None else {"axis": axis}
    step = scale(0.01) if axis is None else (0.01 + RNG.random([3, 5][axis])).astype(np.float32)
    zero = dtype(100) if axis is None else RNG.integers(0, 99, [3, 5][axis]).astype(dtype)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    constants = ["scale", "zero"]
    check("QuantizeLinear", {"x": normal(3, 5) * 9, "scale": step, "zero": zero}, kind, constants=constants, **count)
    given = {"x": integers(dtype, 3, 5), "scale": step, "zero": zero}
    check("DequantizeLinear", given, FLOAT, constants=constants, **count)


@pytest.mark.parametrize("channels_last", [0, 1])
def test_convolution(channels_last):
    x = integers(np.uint8, 1, 4, 6, 7)
    inputs = {
        "x": np.moveaxis(x, 1, -1).copy() if channels_last else x,
        "x_scale": scale(0.02),
        "x_zero": np.uint8(120),
    }
    inputs |= {"w": small(np.int8, 5, 4, 3, 3), "w_scale": (0.01 + RNG.random(5)).astype(np.float32) * 0.01}
    inputs |= {"w_zero": np.zeros(5, np.int8), "y_scale": scale(0.05), "y_zero": np.uint8(128)}
    inputs |= {"b": RNG.integers(-999, 999, 5).astype(np.int32)}
    constants = [name for name in inputs if name != "x"]
    check("QLinearConv", inputs, TensorProto.UINT8, steps=1, constants=constants, channels_last=channels_last)


@pytest.mark.parametrize("per_column, zero, bias", [(True, True, True), (False, False, False), (True, False, True)])
def test_dynamic_quantize_mat_mul(per_column, zero, bias):
    weights = small(np.int8, 16, 10)
    inputs = {"a": normal(2, 5, 16), "b": weights}
    inputs["scale"] = (0.01 + RNG.random(10)).astype(np.float32) if per_column else np.float32([0.02])
    inputs["zero"] = (small(np.int8, 10) if per_column else np.int8([3])) if zero else None
    inputs |= {"bias": normal(10)} if bias else {}
    constants = ["b", "scale", "zero"]
    check("DynamicQuantizeMatMul", inputs, FLOAT, constants=constants, rtol=1e-3, atol=1e-3, dynamic=["a"])


@pytest.mark.parametrize("kind, zeros", [(np.uint8, True), (np.int8, False)])
def test_mat_mul_integer_to_float(kind, zeros):
    inputs = {"a": integers(kind, 3, 16), "b": small(np.int8, 16, 10), "a_scale": np.float32([0.02])}
    inputs |= {"b_scale": (0.01 + RNG.random(10)).astype(np.float32), "a_zero": kind(9) if zeros else None}
    inputs |= {"b_zero": small(np.int8, 10) if zeros else None, "bias": normal(10)}
    constants = [name for name in inputs if name != "a"]
    check("MatMulIntegerToFloat", inputs, FLOAT, constants=constants)


@pytest.mark.parametrize("quantized, options", [(False, {"transB": 1}), (True, {"transA": 1, "alpha": 0.5})])
def test_gemm(quantized, options):
    a, weights = integers(np.uint8, 6, 16), small(np.int8, 16, 10)
    inputs = {"a": a.T.copy() if "transA" in options else a, "a_scale": scale(0.02), "a_zero": np.uint8(120)}
    inputs |= {"b": weights.T.copy() if "transB" in options else weights}
    inputs |= {"b_scale": (0.01 + RNG.random(10)).astype(np.float32), "b_zero": np.zeros(10, np.int8)}
    inputs["c"] = RNG.integers(-500, 500, 10).astype(np.int32)
    if quantized:
        inputs |= {"y_scale": scale(0.5), "y_zero": np.uint8(128)}
    constants = [name for name in inputs if name != "a"]
    check("QGemm", inputs, TensorProto.UINT8 if quantized else FLOAT, steps=1, constants=constants, **options)


@pytest.mark.parametrize("direction, per_channel", [("forward", False), ("bidirectional", True)])
def test_lstm(direction, per_channel):
    """ONNX Runtime quantises inputs and states in each step; here only weights are."""
    count, steps, batch, width, hidden = 2 if direction == "bidirectional" else 1, 5, 2, 8, 6
    shape = (count, 4 * hidden) if per_channel else (count,)
    inputs = {"x": normal(steps, batch, width), "w": small(np.int8, count, width, 4 * hidden)}
    inputs |= {"r": small(np.int8, count, hidden, 4 * hidden), "bias": normal(count, 8 * hidden) * 0.1}
    inputs |= {"lengths": None, "h": None, "c": None, "p": None}
    for name in "wr":
        inputs |= {f"{name}_scale": np.full(shape, 0.005, np.float32), f"{name}_zero": np.zeros(shape, np.int8)}
    constants = [name for name in inputs if name != "x"]
    outputs = {"y": FLOAT, "last": FLOAT, "cell": FLOAT}
    options = {"hidden_size": hidden, "direction": direction, "constants": constants}
    model, given = node_model("DynamicQuantizeLSTM", inputs, outputs, MS, **options)
    for got, want in zip(run_model(model, given), reference(model, given), strict=True):
        np.testing.assert_allclose(got, want, atol=0.03)


def test_integers():
    inputs = {"a": integers(np.uint8, 3, 5), "a_zero": np.uint8(9), "b": integers(np.uint8, 5), "b_zero": None}
    model, given = node_model("MulInteger", inputs, {"y": TensorProto.INT32}, MS, constants=["a_zero"])
    want = (inputs["a"].astype(np.int32) - 9) * inputs["b"].astype(np.int32)
    np.testing.assert_array_equal(run_model(model, given)[0], want)
    a, b = integers(np.int16, 3, 5) // 64, integers(np.int16, 5, 4) // 64
    check("MatMulInteger16", {"a": a, "b": b}, TensorProto.INT32)
