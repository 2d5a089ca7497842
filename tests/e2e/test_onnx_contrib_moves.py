"""Weights of few bits and small operators of `com.microsoft` in ONNX files, against ONNX Runtime or NumPy."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto  # noqa: E402
from tests.tools.onnx_nodes import check_node, node_model, run_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import UnsupportedOpError  # noqa: E402

RNG = np.random.default_rng(11)
MS, FLOAT, INT64 = "com.microsoft", TensorProto.FLOAT, TensorProto.INT64


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def bytes_(*shape):
    return RNG.integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize(
    "bits, block, rows, zeros, bias",
    [
        (4, 32, 64, None, False),
        (4, 16, 72, "packed", True),
        (4, 32, 96, "floats", False),
        (8, 32, 64, "packed", False),
        (8, 16, 40, None, True),
        (2, 32, 64, "packed", False),
    ],
)
def test_mat_mul_n_bits(bits, block, rows, zeros, bias):
    columns, blocks = 24, -(-rows // block)
    inputs = {"a": normal(2, 5, rows), "b": bytes_(columns, blocks, block * bits // 8)}
    inputs["scales"] = (0.01 + RNG.random((columns, blocks))).astype(np.float32)
    packed = bytes_(columns, -(-blocks * bits // 8))
    inputs["zeros"] = {None: None, "packed": packed, "floats": normal(columns, blocks)}[zeros]
    if bias:
        inputs |= {"groups": None, "bias": normal(columns)}
    options = {"N": columns, "K": rows, "bits": bits, "block_size": block}
    constants = [name for name in inputs if name != "a"]
    check_node(
        "MatMulNBits", inputs, {"y": FLOAT}, MS, rtol=1e-3, atol=2e-3, constants=constants, dynamic=["a"], **options
    )


@pytest.mark.parametrize("kind", [0, 1])
def test_mat_mul_of_bitsandbytes(kind):
    inputs = {"a": normal(3, 64), "b": bytes_(20 * 64 // 2), "largest": normal(20 * 64 // 32)}
    options = {"N": 20, "K": 64, "block_size": 32, "quant_type": kind, "constants": ["b", "largest"]}
    check_node("MatMulBnb4", inputs, {"y": FLOAT}, MS, rtol=1e-3, atol=1e-3, **options)


@pytest.mark.parametrize("bits, zeros", [(4, True), (4, False), (8, True)])
def test_gather_block_quantized(bits, zeros):
    inputs = {"table": bytes_(10, 48 * bits // 8), "ids": RNG.integers(0, 10, (2, 3))}
    inputs |= {"scales": normal(10, 3), "zeros": bytes_(10, -(-3 * bits // 8)) if zeros else None}
    options = {"bits": bits, "block_size": 16, "quantize_axis": 1, "gather_axis": 0}
    constants = ["table", "scales", "zeros"]
    check_node("GatherBlockQuantized", inputs, {"y": FLOAT}, MS, constants=constants, **options)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (2, 2, 7, 7), (12, 12)])
def test_inverse(shape):
    x = normal(*shape)
    x[..., 0, 0] = 0
    check_node("Inverse", {"x": x}, {"y": FLOAT}, MS, rtol=1e-3, atol=1e-3)


def test_inverse_of_large_matrices_is_refused():
    model, _ = node_model("Inverse", {"x": normal(40, 40)}, {"y": FLOAT}, MS)
    with pytest.raises(UnsupportedOpError, match=r"Inverse, com.microsoft.*its matrices have 40 rows"):
        eyas.compile(model)


@pytest.mark.parametrize("upper, k", [(1, None), (0, 1)])
def test_trilu(upper, k):
    inputs = {"x": normal(2, 5, 4)} | ({} if k is None else {"k": np.int64(k)})
    check_node("Trilu", inputs, {"y": FLOAT}, MS, upper=upper, constants=["k"])


def test_operators_that_the_standard_has():
    x = normal(2, 3, 4)
    check_node(
        "Pad",
        {"x": x, "p": np.int64([0, 1, 0, 0, 2, -1]), "v": np.float32([2.5])},
        {"y": FLOAT},
        MS,
        constants=["p", "v"],
    )
    check_node("GatherND", {"x": x, "i": np.int32([[0, 1], [1, 2]])}, {"y": FLOAT}, MS)
    check_node("ExpandDims", {"x": x, "a": np.int32([-1])[0].reshape(())}, {"y": FLOAT}, MS, constants=["a"])
    check_node("Range", {"a": np.float32([1]), "b": np.float32([7])}, {"y": FLOAT}, MS, constants=["a", "b"])
    grid = RNG.uniform(-1.2, 1.2, (2, 4, 5, 2)).astype(np.float32)
    check_node("GridSample", {"x": normal(2, 3, 6, 7), "g": grid}, {"y": FLOAT}, MS, align_corners=1)


def test_unique():
    inputs = {"x": np.float32([2, 1, 1, 3, 4, 3])}
    check_node("Unique", inputs, {"y": FLOAT, "places": INT64, "counts": INT64}, MS)


@pytest.mark.parametrize("mode, outside", [("bilinear", 0.0), ("bilinear", 5.0), ("nearest", 0.0)])
def test_crop_and_resize(mode, outside):
    boxes = np.float32([[0, 0, 1, 1], [0.2, 0.13, 0.7, 0.91], [-0.3, 0.5, 1.3, 0.1]])
    inputs = {"x": normal(2, 3, 7, 6), "boxes": boxes, "ids": np.int32([0, 1, 1]), "size": np.int32([4, 5])}
    options = {"mode": mode, "extrapolation_value": outside, "constants": ["size"]}
    check_node("CropAndResize", inputs, {"y": FLOAT}, MS, **options)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric):
    check_node(
        "CDist", {"a": normal(7, 5), "b": normal(4, 5)}, {"y": FLOAT}, MS, metric=metric, dynamic=["a"], atol=1e-4
    )


def test_fourier_transforms():
    """ONNX Runtime has no kernels for CPUs: compared with NumPy."""
    x = normal(3, 16)
    want = np.fft.rfft(x)
    pairs = np.stack([want.real, want.imag], -1).astype(np.float32)
    options = {"signal_ndim": 1, "normalized": 0, "onesided": 1}
    got = run_model(*node_model("Rfft", {"x": x}, {"y": FLOAT}, MS, **options))[0]
    np.testing.assert_allclose(got, pairs, rtol=1e-4, atol=1e-4)
    got = run_model(*node_model("Irfft", {"x": pairs}, {"y": FLOAT}, MS, **options))[0]
    np.testing.assert_allclose(got, x, rtol=1e-4, atol=1e-5)


def test_complex_products_and_windows():
    """ONNX Runtime has no kernels for CPUs: compared with NumPy."""
    a, b = normal(3, 4, 2), normal(3, 4, 2)
    for op, other in (("ComplexMul", b), ("ComplexMulConj", b * np.float32([1, -1]))):
        product = (a[..., 0] + 1j * a[..., 1]) * (other[..., 0] + 1j * other[..., 1])
        got = run_model(*node_model(op, {"a": a, "b": b}, {"y": FLOAT}, MS))[0]
        np.testing.assert_allclose(got, np.stack([product.real, product.imag], -1), rtol=1e-5, atol=1e-6)
    got = run_model(*node_model("UnfoldTensor", {"x": a}, {"y": FLOAT}, MS, dim=1, size=3, step=1))[0]
    want = np.stack([a[:, start : start + 3] for start in range(2)], 1).transpose(0, 1, 3, 2)
    np.testing.assert_array_equal(got, want)
