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


@pytest.mark.parametrize("shape", [("n", 8, "h", "w"), (1, 8, "h", "w"), ("n", 8, 4, 6), (2, 8, 4, 6)])
@pytest.mark.parametrize("op, mode", [("DepthToSpace", "CRD"), ("DepthToSpace", "DCR"), ("SpaceToDepth", None)])
def test_channels_become_blocks_of_pixels_and_back(op, mode, shape):
    given = [dim if isinstance(dim, int) else size for dim, size in zip(shape, (1, 8, 4, 6), strict=True)]
    agree(model_of(op, shape=shape, opset=13, blocksize=2, **({"mode": mode} if mode else {})), given)


@pytest.mark.parametrize("word", ["?", "None", "unknown"])
def test_sizes_of_one_name_that_says_that_they_are_unknown_differ(word):
    agree(model_of("Relu", shape=(word, 3, word, word)), *SHAPES)


def test_minus_one_in_the_body_of_a_loop_is_no_size():
    """A file of Paddle: only the first of a batch was written."""
    info = helper.make_tensor_value_info
    rows = [
        helper.make_node("Shape", ["d"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "one", "zero"], ["count"]),
        helper.make_node("Tile", ["row", "times"], ["again"]),
        helper.make_node("Concat", ["count", "one"], ["times"], axis=0),
        helper.make_node("Add", ["d", "again"], ["next"]),
        helper.make_node("Identity", ["go"], ["on"]),
    ]
    rows[2], rows[3] = rows[3], rows[2]
    states = [info("step", TensorProto.INT64, []), info("go", TensorProto.BOOL, [])]
    body = helper.make_graph(
        rows,
        "body",
        [*states, info("d", FLOAT, [-1, 3])],
        [info("on", TensorProto.BOOL, []), info("next", FLOAT, [-1, 3])],
    )
    constants = {"zero": [0], "one": [1], "three": 3, "row": np.ones((1, 3), np.float32)}
    graph = helper.make_graph(
        [helper.make_node("Loop", ["three", "", "x"], ["y"], body=body)],
        "main",
        [info("x", FLOAT, [-1, 3])],
        [info("y", FLOAT, [-1, 3])],
        [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()],
    )
    agree(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9), (1, 3), (4, 3))
