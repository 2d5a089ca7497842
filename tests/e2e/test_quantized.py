"""Quantised ONNX graphs compute with integers: 8-bit operands, sums in i32, and the numbers of the standard."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.tools import vulkan

import eyas
from eyas.pipelines import driver
from eyas.pipelines.request import Phase, Request, Services

RNG = np.random.default_rng(3)
FLOAT, INT8, UINT8 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8
KINDS = {INT8: np.int8, UINT8: np.uint8}


def model_of(nodes, x, y, weights) -> ModelProto:
    graph = helper.make_graph(
        [helper.make_node(op, ins, [out], name=out, **attributes) for op, ins, out, attributes in nodes],
        "quantised",
        [helper.make_tensor_value_info("x", *x)],
        [helper.make_tensor_value_info("y", *y)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def integers(dtype, shape) -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def dispatches(model: ModelProto) -> str:
    return driver.run(Request(model, last=Phase.DISPATCH), Services(workers=1)).as_text()


def check(model: ModelProto, x: np.ndarray, off_by_one: float = 0.0) -> None:
    """Against the standard's reference in f32. `off_by_one` is a step of the result's scale that a few may be off by:
    sums of floats round, and a number near a tie then falls on the other side."""
    (want,) = ReferenceEvaluator(model).run(None, {"x": x})
    for target in ("llvm-cpu", *(["vulkan"] if vulkan.why_not() is None else [])):
        got = eyas.compile(model, target=target)(x)
        assert got.dtype == want.dtype
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
        close = error <= 1e-5 * np.abs(want).max() + 1e-6
        assert (close | (error <= off_by_one * 1.001)).all(), (target, error.max())
        assert close.mean() > 0.98, f"{target}: more than a few are on the other side of a tie"


FILTERS = {"per-channel": (INT8, 0, True), "unsigned": (UINT8, 128, False), "shifted": (INT8, 3, False)}


@pytest.mark.parametrize(
    ("kind", "zero", "filters"),
    [
        (UINT8, 0, "per-channel"),
        (UINT8, 128, "unsigned"),
        (UINT8, 37, "shifted"),
        (INT8, 0, "per-channel"),
        (INT8, -11, "per-channel"),
        (INT8, -11, "shifted"),
    ],
)
def test_dequantized_convolution(kind, zero, filters):
    filter_kind, filter_zero, per_channel = FILTERS[filters]
    dtype, filter_dtype = KINDS[kind], KINDS[filter_kind]
    channels = 5
    scales = RNG.uniform(0.01, 0.02, channels).astype(np.float32) if per_channel else np.float32(0.013)
    zeros = np.full(channels if per_channel else (), filter_zero, filter_dtype)
    model = model_of(
        [
            ("QuantizeLinear", ["x", "sx", "zx"], "q", {}),
            ("DequantizeLinear", ["q", "sx", "zx"], "d", {}),
            ("DequantizeLinear", ["w", "sw", "zw"], "dw", {"axis": 0}),
            ("DequantizeLinear", ["b", "sb"], "db", {}),
            ("Conv", ["d", "dw", "db"], "c", {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
            ("QuantizeLinear", ["c", "sy", "zy"], "qy", {}),
            ("DequantizeLinear", ["qy", "sy", "zy"], "y", {}),
        ],
        (FLOAT, [2, 6, 9, 8]),
        (FLOAT, None),
        {
            "sx": np.float32(0.05),
            "zx": dtype(zero),
            "w": integers(filter_dtype, (channels, 6, 3, 2)),
            "sw": scales,
            "zw": zeros,
            "b": integers(np.int16, channels).astype(np.int32),
            "sb": np.float32(0.001),
            "sy": np.float32(0.25),
            "zy": dtype(zero),
        },
    )
    check(model, RNG.standard_normal((2, 6, 9, 8)).astype(np.float32) * 3, off_by_one=0.25)


@pytest.mark.parametrize(
    ("kind", "zero", "shape"),
    [(UINT8, 0, (7, 24)), (UINT8, 37, (2, 3, 24)), (INT8, 0, (24,)), (INT8, -11, (7, 24)), (UINT8, 128, (24,))],
)
def test_dequantized_matmul(kind, zero, shape):
    model = model_of(
        [
            ("QuantizeLinear", ["x", "sx", "zx"], "q", {}),
            ("DequantizeLinear", ["q", "sx", "zx"], "d", {}),
            ("DequantizeLinear", ["w", "sw", "zw"], "dw", {"axis": 1}),
            ("MatMul", ["d", "dw"], "y", {}),
        ],
        (FLOAT, list(shape)),
        (FLOAT, None),
        {
            "sx": np.float32(0.05),
            "zx": KINDS[kind](zero),
            "w": integers(np.int8, (24, 10)),
            "sw": RNG.uniform(0.01, 0.02, 10).astype(np.float32),
            "zw": integers(np.int8, 10) // 16,
        },
    )
    check(model, RNG.standard_normal(shape).astype(np.float32) * 3)


@pytest.mark.parametrize("turned", [0, 1])
def test_dequantized_gemm(turned: int):
    model = model_of(
        [
            ("QuantizeLinear", ["x", "sx", "zx"], "q", {}),
            ("DequantizeLinear", ["q", "sx", "zx"], "d", {}),
            ("DequantizeLinear", ["w", "sw"], "dw", {"axis": 1 - turned}),
            ("Gemm", ["d", "dw", "b"], "y", {"transB": turned, "alpha": 0.5, "beta": 2.0}),
        ],
        (FLOAT, [4, 24]),
        (FLOAT, [4, 10]),
        {
            "sx": np.float32(0.05),
            "zx": np.uint8(99),
            "w": integers(np.int8, (10, 24) if turned else (24, 10)),
            "sw": RNG.uniform(0.01, 0.02, 10).astype(np.float32),
            "b": RNG.standard_normal(10).astype(np.float32),
        },
    )
    check(model, RNG.standard_normal((4, 24)).astype(np.float32) * 3)


def test_weight_transposed_after_it_was_dequantized():
    model = model_of(
        [
            ("DequantizeLinear", ["x", "sx", "zx"], "d", {}),
            ("DequantizeLinear", ["w", "sw"], "dw", {"axis": 0}),
            ("Transpose", ["dw"], "t", {"perm": [1, 0]}),
            ("MatMul", ["d", "t"], "y", {}),
        ],
        (UINT8, [4, 64]),
        (FLOAT, [4, 32]),
        {
            "sx": np.float32(0.05),
            "zx": np.uint8(99),
            "w": integers(np.int8, (32, 64)),
            "sw": RNG.uniform(0.01, 0.02, 32).astype(np.float32),
        },
    )
    assert "linalg.matmul ins(%arg0, %arg1 : tensor<4x64xi8>, tensor<64x32xi8>)" in dispatches(model)
    check(model, integers(np.uint8, (4, 64)))


def test_long_sums_are_of_floats():
    """So many products of bytes do not fit 32 bits."""
    size = 140_000
    model = model_of(
        [
            ("DequantizeLinear", ["x", "s"], "d", {}),
            ("DequantizeLinear", ["w", "s"], "dw", {}),
            ("MatMul", ["d", "dw"], "y", {}),
        ],
        (INT8, [1, size]),
        (FLOAT, [1, 2]),
        {"s": np.float32(1.0), "w": np.full((size, 2), -128, np.int8)},
    )
    x = np.full((1, size), -128, np.int8)
    np.testing.assert_allclose(eyas.compile(model, device="local-sync")(x), np.full((1, 2), size * 2.0**14), rtol=1e-5)


def test_groups_of_channels():
    model = model_of(
        [
            ("QuantizeLinear", ["x", "sx", "zx"], "q", {}),
            ("DequantizeLinear", ["q", "sx", "zx"], "d", {}),
            ("DequantizeLinear", ["w", "sw"], "dw", {"axis": 0}),
            ("Conv", ["d", "dw"], "y", {"pads": [1, 1, 1, 1], "group": 8}),
        ],
        (FLOAT, [1, 8, 7, 7]),
        (FLOAT, None),
        {
            "sx": np.float32(0.05),
            "zx": np.int8(5),
            "w": integers(np.int8, (8, 1, 3, 3)),
            "sw": RNG.uniform(0.01, 0.02, 8).astype(np.float32),
        },
    )
    check(model, RNG.standard_normal((1, 8, 7, 7)).astype(np.float32) * 3)


@pytest.mark.parametrize("op", ["Conv", "MatMul"])
def test_operands_are_bytes_and_sums_i32(op: str):
    """What the contraction reads is i8 and what it adds up in is i32, whatever the activations' zero point."""
    is_conv = op == "Conv"
    model = model_of(
        [
            ("DequantizeLinear", ["x", "sx", "zx"], "d", {}),
            ("DequantizeLinear", ["w", "sw"], "dw", {"axis": 0 if is_conv else 1}),
            (op, ["d", "dw"], "c", {"pads": [1, 1, 1, 1]} if is_conv else {}),
            ("QuantizeLinear", ["c", "sy", "zx"], "y", {}),
        ],
        (UINT8, [1, 16, 8, 8] if is_conv else [8, 64]),
        (UINT8, None),
        {
            "sx": np.float32(0.05),
            "zx": np.uint8(99),
            "w": integers(np.int8, (32, 16, 3, 3) if is_conv else (64, 32)),
            "sw": RNG.uniform(0.01, 0.02, 32).astype(np.float32),
            "sy": np.float32(1.5),
        },
    )
    text = dispatches(model)
    named = "linalg.conv_2d_nhwc_hwcf" if is_conv else "linalg.matmul"
    (line,) = [line for line in text.splitlines() if f"= {named} " in line]
    inputs, outputs = line.split(" outs(")
    assert inputs.count("xi8>") == 2 and "xi32>" in outputs, line
    assert "i64" not in "".join(line for line in text.splitlines() if "arith.ext" in line or "arith.mul" in line)
    x = integers(np.uint8, (1, 16, 8, 8) if is_conv else (8, 64))
    check(model, x, off_by_one=1)


def test_dynamic_quantization():
    """The zero point is known at run time only."""
    graph = helper.make_graph(
        [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="quantize"),
            helper.make_node("MatMulInteger", ["q", "w", "z", "zw"], ["i"], name="product"),
            helper.make_node("Cast", ["i"], ["f"], to=FLOAT, name="cast"),
            helper.make_node("Mul", ["f", "s"], ["y"], name="scale"),
        ],
        "dynamic",
        [helper.make_tensor_value_info("x", FLOAT, [2, 5, 16])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(integers(np.int8, (16, 12)), "w"), numpy_helper.from_array(np.int8([3] * 12), "zw")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    check(model, RNG.standard_normal((2, 5, 16)).astype(np.float32))


def test_nan_and_infinities_quantize_to_the_ends():
    model = model_of(
        [("QuantizeLinear", ["x", "s", "z"], "y", {})],
        (FLOAT, [5]),
        (INT8, [5]),
        {"s": np.float32(0.5), "z": np.int8(3)},
    )
    got = eyas.compile(model, device="local-sync")(np.float32([np.nan, np.inf, -np.inf, 1e30, 2.25]))
    assert got.tolist() == [-128, 127, -128, 127, 7]


def test_sizes_known_at_run_time():
    """A batch and an image whose sizes vary."""
    model = model_of(
        [
            ("QuantizeLinear", ["x", "sx", "zx"], "q", {}),
            ("DequantizeLinear", ["q", "sx", "zx"], "d", {}),
            ("DequantizeLinear", ["w", "sw"], "dw", {"axis": 0}),
            ("Conv", ["d", "dw"], "c", {"pads": [1, 1, 1, 1]}),
            ("GlobalAveragePool", ["c"], "p", {}),
            ("Flatten", ["p"], "f", {}),
            ("QuantizeLinear", ["f", "sx", "zx"], "qf", {}),
            ("DequantizeLinear", ["qf", "sx", "zx"], "df", {}),
            ("DequantizeLinear", ["v", "sv"], "dv", {"axis": 1}),
            ("MatMul", ["df", "dv"], "y", {}),
        ],
        (FLOAT, ["batch", 4, "height", "width"]),
        (FLOAT, ["batch", 3]),
        {
            "sx": np.float32(0.05),
            "zx": np.uint8(120),
            "w": integers(np.int8, (8, 4, 3, 3)),
            "sw": RNG.uniform(0.01, 0.02, 8).astype(np.float32),
            "v": integers(np.int8, (8, 3)),
            "sv": RNG.uniform(0.01, 0.02, 3).astype(np.float32),
        },
    )
    module = eyas.compile(model, device="local-sync")
    for shape in ((1, 4, 9, 7), (3, 4, 5, 12)):
        x = RNG.standard_normal(shape).astype(np.float32) * 3
        (want,) = ReferenceEvaluator(model).run(None, {"x": x})
        # A mean near a tie moves the product by one step of the pooled number.
        np.testing.assert_allclose(module(x), want, atol=0.05 * 0.02 * 128)
