"""Resized images against ONNX Runtime and PyTorch: sums of a few pixels, and products where an image shrinks by much.

Tolerance: both sum at most 16 pixels in f32; a few roundings.
"""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import eyas  # noqa: E402


def model_of(shape, sizes, **attributes):
    node = helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
        [numpy_helper.from_array(np.int64(sizes), "sizes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def both(x, sizes, **attributes):
    model = model_of(x.shape, sizes, **attributes)
    module = eyas.compile(model)
    (expected,) = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    return np.asarray(module(x)), expected, module


@pytest.mark.parametrize("transformation", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ((1, 3, 7, 9), (1, 3, 20, 33)),
        ((2, 5, 16, 16), (2, 5, 64, 48)),
        ((1, 2, 1, 1), (1, 2, 16, 17)),
        ((1, 1, 9, 40), (1, 1, 4, 13)),
        ((1, 4, 6, 5), (1, 4, 6, 25)),
    ],
)
def test_linear(shape, sizes, transformation):
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    got, expected, _ = both(x, sizes, mode="linear", coordinate_transformation_mode=transformation)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("exclude", [0, 1])
def test_cubic(exclude):
    x = np.random.default_rng(2).standard_normal((1, 3, 9, 11)).astype(np.float32)
    got, expected, _ = both(x, (1, 3, 31, 24), mode="cubic", exclude_outside=exclude)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_shrinking_with_a_wide_filter():
    x = np.random.default_rng(3).standard_normal((1, 2, 40, 60)).astype(np.float32)
    got, expected, _ = both(x, (1, 2, 7, 9), mode="linear", antialias=1)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_an_infinite_pixel_reaches_only_what_is_made_of_it():
    """A pixel is never multiplied by zero: corners of an aligned image are single pixels."""
    x = np.random.default_rng(4).standard_normal((1, 1, 5, 5)).astype(np.float32)
    x[0, 0, 2, 2] = np.inf
    got, _, _ = both(x, (1, 1, 9, 9), mode="linear", coordinate_transformation_mode="align_corners")
    rows, columns = np.nonzero(~np.isfinite(got[0, 0]))
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == {(r, c) for r in (3, 4, 5) for c in (3, 4, 5)}
    assert np.all(got[0, 0, 3:6, 3:6] == np.inf)


def test_the_sum_of_pixels_is_one_kernel_for_each_axis():
    x = np.zeros((1, 3, 8, 16), np.float32)
    _, _, module = both(x, (1, 3, 32, 64), mode="linear")
    assert sum(kernel["dispatches"] for kernel in module.manifest["kernels"]) == 2


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 3, 7, 9), {"size": (20, 33)}),
        ((2, 5, 16, 16), {"scale_factor": 2.5}),
        ((1, 2, 4, 10), {"scale_factor": 1.2}),
        ((1, 2, 1, 1), {"size": (16, 17)}),
        ((1, 1, 9, 40), {"size": (4, 13)}),
        ((1, 3, 6, 5), {"size": (6, 25)}),
        ((1, 3, 12), {"size": 31}),
        ((1, 2, 3, 5, 4), {"scale_factor": 2}),
    ],
)
def test_torch_linear(shape, options, align):
    torch = pytest.importorskip("torch")
    mode = {3: "linear", 4: "bilinear", 5: "trilinear"}[len(shape)]

    class Resize(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.interpolate(x, **options, mode=mode, align_corners=align)

    torch.manual_seed(3)
    x = torch.randn(shape)
    got = np.asarray(eyas.compile(Resize(), (x,))(x))
    np.testing.assert_allclose(got, Resize()(x).numpy(), rtol=1e-5, atol=1e-5)
