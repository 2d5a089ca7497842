"""Nodes of constants become constants, also where they are results of the model."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import eyas


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_softplus_of_constants(dtype):
    """The importer crashes on it: it folds a comparison of floats with an integer."""
    value = np.array([-0.75, 0.0, 0.5, 30.0], dtype)
    type_ = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [
        helper.make_node("Softplus", ["c"], ["y"]),
        helper.make_node("Softplus", ["c"], ["inside"]),
        helper.make_node("Mul", ["inside", "x"], ["z"]),
    ]
    inputs = [helper.make_tensor_value_info("x", type_, [4])]
    outputs = [helper.make_tensor_value_info(name, type_, [4]) for name in ("y", "z")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(value, "c")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    y, z = eyas.compile(model, device="local-sync")(np.full(4, 2, dtype))
    want = np.logaddexp(value.astype(np.float64), 0)
    tolerance = 2e-3 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(np.asarray(y, np.float64), want, rtol=tolerance)
    np.testing.assert_allclose(np.asarray(z, np.float64), 2 * want, rtol=tolerance)


def test_result_of_constants_keeps_its_name():
    """A model whose results are all known, and one of them under two names."""
    nodes = [helper.make_node("Add", ["a", "a"], ["y"]), helper.make_node("Identity", ["y"], ["z"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("y", "z")]
    constant = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "a")
    graph = helper.make_graph(nodes, "g", inputs, outputs, [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    for result in eyas.compile(model, device="local-sync")(np.zeros(1, np.float32)):
        np.testing.assert_array_equal(np.asarray(result), [2, 4, 6])
