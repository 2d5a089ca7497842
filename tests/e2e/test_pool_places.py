"""Where the largest elements of windows are: windows of -inf and NaN, sizes that vary, from PyTorch and ONNX."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from tests.e2e.test_torch_findings import Function, same  # noqa: E402

import eyas  # noqa: E402

SHAPES = {1: (2, 3, 11), 2: (2, 3, 7, 9), 3: (2, 2, 5, 6, 7)}
POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
PARTS = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
MEANS = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
WINDOWS = (
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "stride": 1, "padding": 1, "dilation": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
)


def extremes(axes: int, dtype: torch.dtype) -> torch.Tensor:
    """Half of the elements are the least there is, and one image has nothing else; some are NaN."""
    made = torch.Generator().manual_seed(axes)
    kind = torch.randint(0, 6, SHAPES[axes], generator=made)
    if not dtype.is_floating_point:
        x = torch.randint(0, 100, SHAPES[axes], dtype=dtype, generator=made)
        x[kind < 3] = torch.iinfo(dtype).min
        return x
    x = torch.randn(SHAPES[axes], generator=made).to(dtype)
    x[kind < 3], x[kind == 3], x[0] = -torch.inf, torch.nan, -torch.inf
    return x


ALL = (torch.float32, torch.float16, torch.int64, torch.uint8)


@pytest.mark.parametrize(
    "axes, target, dtypes",
    [(1, "llvm-cpu", ALL[:1]), (2, "llvm-cpu", ALL), (2, "vmvx", ALL[:1]), (3, "llvm-cpu", ALL[:1])],
)
def test_windows_of_the_least(axes, target, dtypes):
    functions = [lambda *x, k=k: [POOLS[axes](one, return_indices=True, **k) for one in x] for k in WINDOWS[1:]]
    functions.append(lambda *x: [PARTS[axes](one, 3, return_indices=True) for one in x[:2]])
    functions.append(lambda *x: [POOLS[axes](one[0], 2, return_indices=True) for one in x[:2]])
    model = Function(functions)
    given = [extremes(axes, dtype) for dtype in dtypes]
    same(eyas.compile(model, tuple(given), target=target)(*given), model(*given))


@pytest.mark.parametrize("axes", [1, 2])
def test_sizes_that_vary(axes):
    """The importer's parts were those of the example's size."""
    model = Function(
        [
            lambda x: POOLS[axes](x, return_indices=True, **WINDOWS[1]),
            lambda x: PARTS[axes](x, 3, return_indices=True),
            lambda x: PARTS[axes](x, 1),
            lambda x: [MEANS[axes](x.nan_to_num(0, 0, 0), size) for size in (1, 3)],
        ]
    )
    x = extremes(axes, torch.float32)
    dims = {axis + 2: torch.export.Dim(f"size{axis}", min=4, max=32) for axis in range(axes)}
    module = eyas.compile(model, (x,), dynamic_shapes={"args": (dims,)})
    larger = torch.randn(*x.shape[:2], *(size + 2 + axis for axis, size in enumerate(x.shape[2:])))
    for given in (x, larger):
        same(module(given), model(given))


def test_window_of_nothing():
    """Taps may be so far apart that none is inside; there is no place then."""
    model = Function([lambda x: F.max_pool2d(x, 2, padding=1, dilation=(1, 5), return_indices=True)[0]])
    for dtype in (torch.float32, torch.int64):
        x = torch.arange(32).reshape(1, 2, 4, 4).to(dtype)
        same(eyas.compile(model, (x,))(x), model(x))


@pytest.mark.parametrize("order", [0, 1])
def test_places_in_a_batch_of_any_size_from_onnx(order):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    options = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 1, 1, 1], "storage_order": order}
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("MaxPool", ["x"], ["y", "places"], **options)],
            "pool",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", 6])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
            + [helper.make_tensor_value_info("places", TensorProto.INT64, None)],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )
    module, session = eyas.compile(model), onnxruntime.InferenceSession(model.SerializeToString())
    for shape in ((2, 3, 5, 6), (3, 3, 8, 6)):
        x = np.random.default_rng(order).normal(size=shape).astype(np.float32)
        for got, want in zip(module(x), session.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(got, want)
