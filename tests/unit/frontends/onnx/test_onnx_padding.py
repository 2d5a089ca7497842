"""Windows over dynamic sizes: SAME padding, uneven padding, and sizes that exporters write oddly."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import eyas
from eyas.errors import UnsupportedOpError

FLOAT = TensorProto.FLOAT


def model_of(op, inputs=("x",), weights=None, shape=("n", 3, "h", "w"), opset=17, **attributes):
    node = helper.make_node(op, list(inputs), ["y"], name="node", **attributes)
    graph = helper.make_graph(
        [node],
        "main",
        [helper.make_tensor_value_info("x", FLOAT, list(shape))],
        [helper.make_tensor_value_info("y", FLOAT, ["a", "b", "c", "d"])],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def agree(model, *shapes):
    """One compiled module and onnxruntime agree on inputs of several shapes."""
    module = eyas.compile(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for shape in shapes:
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(module(x), session.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)


SHAPES = ((1, 3, 6, 9), (2, 3, 5, 4))


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("op", ["MaxPool", "Conv"])
def test_same_padding_of_dynamic_sizes(op, mode):
    weights = {"k": np.random.default_rng(1).standard_normal((4, 3, 2, 3)).astype(np.float32)} if op == "Conv" else {}
    agree(model_of(op, ("x", *weights), weights, kernel_shape=[2, 3], auto_pad=mode), *SHAPES)


def test_uneven_padding_of_dynamic_sizes():
    agree(model_of("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 1, 1, 1]), *SHAPES)
    agree(model_of("AveragePool", kernel_shape=[2, 2], pads=[0, 0, 1, 1], count_include_pad=1), *SHAPES)


def test_padding_that_depends_on_a_dynamic_size():
    agree(model_of("MaxPool", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"), *SHAPES)
    agree(model_of("AveragePool", kernel_shape=[2, 2], pads=[0, 0, 1, 1]), *SHAPES)


def test_padding_that_depends_on_a_dynamic_size_in_old_models():
    kernel = {"k": np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)}
    agree(model_of("Conv", ("x", "k"), kernel, strides=[2, 2], auto_pad="SAME_UPPER", opset=10), *SHAPES)


def test_places_of_padding_that_depends_on_a_dynamic_size_are_refused():
    model = model_of("MaxPool", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    model.graph.node[0].output.append("places")
    model.graph.output.append(helper.make_tensor_value_info("places", TensorProto.INT64, ["a", "b", "c", "d"]))
    with pytest.raises(UnsupportedOpError, match=r"\(MaxPool, .*size that is dynamic"):
        eyas.compile(model)


def test_means_over_dynamic_sizes():
    agree(model_of("GlobalAveragePool"), *SHAPES)


def test_resize_by_a_scale_of_dynamic_sizes():
    scales = {"s": np.array([1, 1, 2, 2.5], np.float32)}
    agree(model_of("Resize", ("x", "", "s"), scales, mode="nearest", nearest_mode="floor"), *SHAPES)


def test_minus_one_and_question_marks_are_dynamic():
    agree(model_of("Relu", shape=(-1, 3, "?", "?")), *SHAPES)
