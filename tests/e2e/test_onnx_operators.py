"""ONNX operators that are written as others, against ONNX Runtime or NumPy, on forms that the node tests lack."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper  # noqa: E402
from tests.tools.onnx_nodes import check_node  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import FrontendError  # noqa: E402

RNG = np.random.default_rng(5)


def model_of(op, inputs, outputs, opset=18, **attributes):
    """One node; `inputs` maps names to arrays (or None for one left out), `outputs` names to types and ranks."""
    given = {name: value for name, value in inputs.items() if value is not None}
    names = [name if value is not None else "" for name, value in inputs.items()]
    node = helper.make_node(op, names, list(outputs), **attributes)
    kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in given.items()}
    infos = [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in given.items()]
    results = [helper.make_tensor_value_info(name, kind, [None] * rank) for name, (kind, rank) in outputs.items()]
    graph = helper.make_graph([node], "graph", infos, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9), given


def run(model, given):
    results = eyas.compile(model)(*given.values())
    return [np.asarray(result) for result in (results if isinstance(results, (tuple, list)) else [results])]


def check(op, inputs, outputs, opset=18, rtol=1e-5, **attributes):
    model, given = model_of(op, inputs, outputs, opset, **attributes)
    expected = runtime.InferenceSession(model.SerializeToString()).run(None, given)
    for got, want in zip(run(model, given), expected, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-5)


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def test_an_optional_that_is_left_out():
    model, given = model_of("OptionalHasElement", {}, {"here": (TensorProto.BOOL, 0)})
    assert run(model, given) == [np.False_]


def test_bidirectional_lstm_with_lengths_and_peepholes():
    inputs = {
        "x": normal(6, 3, 4), "w": normal(2, 20, 4), "r": normal(2, 20, 5), "b": normal(2, 40),
        "lengths": np.int32([6, 2, 4]), "h": normal(2, 3, 5), "c": normal(2, 3, 5), "p": normal(2, 15),
    }  # fmt: skip
    outputs = {"y": (FLOAT, 4), "y_h": (FLOAT, 3), "y_c": (FLOAT, 3)}
    check("LSTM", inputs, outputs, hidden_size=5, direction="bidirectional", clip=0.8)


@pytest.mark.parametrize("linear", [0, 1])
def test_backward_gru_with_lengths(linear):
    inputs = {
        "x": normal(5, 2, 4),
        "w": normal(1, 9, 4),
        "r": normal(1, 9, 3),
        "b": normal(1, 18),
        "n": np.int32([3, 5]),
    }
    outputs = {"y": (FLOAT, 4), "y_h": (FLOAT, 3)}
    options = {"hidden_size": 3, "direction": "reverse", "linear_before_reset": linear}
    check("GRU", inputs, outputs, activations=["HardSigmoid", "Softsign"], **options)


def test_many_boxes_of_several_classes():
    corners = RNG.random((2, 40, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + RNG.random((2, 40, 2)).astype(np.float32)], axis=2)
    scores = RNG.random((2, 3, 40)).astype(np.float32)
    limits = {"most": np.array([7]), "overlap": np.float32([0.3]), "score": np.float32([0.2])}
    check("NonMaxSuppression", {"boxes": boxes, "scores": scores, **limits}, {"picks": (INT64, 2)})


def test_nothing_passes_the_score():
    boxes, scores = np.float32([[[0, 0, 1, 1]]]), np.float32([[[0.1]]])
    limits = {"most": np.array([7]), "overlap": np.float32([0.3]), "score": np.float32([0.2])}
    check("NonMaxSuppression", {"boxes": boxes, "scores": scores, **limits}, {"picks": (INT64, 2)})


def test_regions_of_a_batch():
    rois = np.float32([[0, 0, 7, 5], [2, 1, 30, 30], [-3, -2, 4, 4]])
    inputs = {"x": normal(2, 3, 8, 9), "rois": rois, "batch": np.array([0, 1, 1])}
    check("RoiAlign", inputs, {"y": (FLOAT, 4)}, output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.5)


def test_regions_with_samples_from_data_are_refused():
    inputs = {"x": normal(1, 1, 8, 9), "rois": np.float32([[0, 0, 7, 5]]), "batch": np.array([0])}
    model, _ = model_of("RoiAlign", inputs, {"y": (FLOAT, 4)}, output_height=2, output_width=3)
    with pytest.raises(FrontendError, match=r"\(RoiAlign, .*sampling_ratio"):
        eyas.compile(model)


@pytest.mark.parametrize("in_order", [0, 1])
def test_unique_elements(in_order):
    x = RNG.integers(0, 9, (4, 8))
    outputs = {"y": (INT64, 1), "first": (INT64, 1), "inverse": (INT64, 1), "counts": (INT64, 1)}
    check("Unique", {"x": x}, outputs, sorted=in_order)


def test_grouped_transposed_convolution():
    inputs = {"x": normal(2, 6, 5, 4), "w": normal(6, 2, 3, 2), "b": normal(6)}
    options = {"strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 0], "dilations": [1, 2]}
    check("ConvTranspose", inputs, {"y": (FLOAT, 4)}, group=3, **options)


def test_transposed_convolution_of_a_wanted_size():
    inputs = {"x": normal(1, 2, 4, 5), "w": normal(2, 3, 3, 3)}
    check("ConvTranspose", inputs, {"y": (FLOAT, 4)}, strides=[2, 2], output_shape=[8, 9])


def test_places_of_maxima_count_along_columns():
    outputs = {"y": (FLOAT, 4), "places": (INT64, 4)}
    options = {"kernel_shape": [2, 2], "strides": [1, 2], "storage_order": 1}
    check("MaxPool", {"x": normal(2, 3, 5, 6)}, outputs, opset=12, **options)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 1, 0, 0]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ],
)
def test_max_pool_of_bytes(dtype, options):
    limits = np.iinfo(dtype)
    x = RNG.integers(limits.min, limits.max, (2, 3, 7, 6), endpoint=True).astype(dtype)
    check("MaxPool", {"x": x}, {"y": (helper.np_dtype_to_tensor_dtype(x.dtype), 4)}, **options)


def test_scatter_keeps_the_largest():
    inputs = {"x": normal(3, 4), "i": np.array([[0, -1, 2], [1, 1, 1]]), "u": normal(2, 3)}
    check("ScatterElements", inputs, {"y": (FLOAT, 2)}, axis=1, reduction="max")


@pytest.mark.parametrize("length", [2, 3, 8, 30, 17])
@pytest.mark.parametrize("inverse", [0, 1])
def test_fourier_transform(length, inverse):
    x = normal(2, length, 2)
    model, given = model_of("DFT", {"x": x}, {"y": (FLOAT, 3)}, axis=1, inverse=inverse)
    (got,) = run(model, given)
    want = (np.fft.ifft if inverse else np.fft.fft)(x[..., 0] + 1j * x[..., 1], axis=1)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("length", [127, 128, 130, 131, 135, 400, 441, 1024])
def test_half_a_spectrum_of_real_numbers(length, target):
    """Lengths that are one product, and lengths that are two; odd ones and those of uneven factors among them."""
    x = normal(3, length, 1)
    x[1], x[2, 1:] = 0, 0
    model, given = model_of("DFT", {"x": x}, {"y": (FLOAT, 3)}, axis=1, onesided=1)
    got = np.asarray(eyas.compile(model, target=target)(*given.values()))
    want = np.fft.rfft(x[..., 0].astype(np.float64), axis=1)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], want, rtol=1e-4, atol=1e-6 * np.abs(want).max())


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_beyond_the_width_give_zero(direction):
    x, by = np.full(9, 200, np.uint8), np.arange(0, 18, 2, dtype=np.uint8)
    model, given = model_of("BitShift", {"x": x, "by": by}, {"y": (TensorProto.UINT8, 1)}, direction=direction)
    wide = x.astype(np.uint64) << by if direction == "LEFT" else x.astype(np.uint64) >> by
    np.testing.assert_array_equal(run(model, given)[0], (wide & 255).astype(np.uint8))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_norm_of_zeros_is_zero(dtype):
    x = np.array([[0, 0], [3, 4]], dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model, given = model_of("LpNormalization", {"x": x}, {"y": (kind, 2)})
    np.testing.assert_allclose(run(model, given)[0], np.array([[0, 0], [0.6, 0.8]], dtype), rtol=1e-3)


def test_dropout_outside_training_keeps_everything():
    x = normal(2, 3)
    model, _ = model_of("Dropout", {"x": x}, {"y": (FLOAT, 2), "mask": (TensorProto.BOOL, 2)})
    model.graph.node[0].input.extend(["", "training"])
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(False), "training"))
    y, mask = run(model, {"x": x})
    np.testing.assert_array_equal(y, x)
    assert mask.shape == x.shape and mask.all()


@pytest.mark.parametrize("mode", ["constant", "edge"])
@pytest.mark.parametrize("pads, axes", [([-1, 2, -2, 0, 1, -1], None), ([-2, -1], [2])])
def test_negative_pads_cut(pads, axes, mode):
    if mode == "edge":
        pads = [-abs(pad) for pad in pads]
    inputs = {"x": RNG.standard_normal((3, 4, 5)).astype(np.float32), "pads": np.int64(pads), "value": np.float32(2)}
    inputs |= {"axes": np.int64(axes)} if axes else {}
    constants = ["pads", "value", "axes"]
    check_node("Pad", inputs, {"y": TensorProto.FLOAT}, constants=constants, dynamic=["x"], mode=mode)
