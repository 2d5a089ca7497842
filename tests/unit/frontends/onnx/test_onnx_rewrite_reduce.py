"""Reductions along nothing, on which the importer aborts, and products of dynamic dimensions."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import eyas


def check(op, dtype, dims, axes, result, value, opset=18, want=None, **attributes):
    """Compares a model of one reduction with `want`, or else the standard's reference."""
    type_ = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node(op, ["x", "axes"], ["y"], **attributes)
    if opset < 18:
        node = helper.make_node(op, ["x"], ["y"], axes=axes, **attributes)
    inputs = [helper.make_tensor_value_info("x", type_, dims)]
    outputs = [helper.make_tensor_value_info("y", type_, result)]
    tables = [helper.make_tensor("axes", TensorProto.INT64, [len(axes)], axes)] if opset >= 18 else []
    graph = helper.make_graph([node], "g", inputs, outputs, tables)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    value = np.asarray(value, dtype)
    want = ReferenceEvaluator(model).run(None, {"x": value})[0] if want is None else want
    got = np.asarray(eyas.compile(model, device="local-sync")(value))
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("op", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
def test_norm_of_one(op, dtype):
    # The reference refuses logarithms of integers, which opsets before 28 have.
    function = {"ReduceL2": np.abs, "ReduceLogSum": np.log, "ReduceLogSumExp": np.positive}[op]
    value = np.array([7, 8, 1] if op == "ReduceLogSum" else [7, -8, 1], dtype)
    want = function(value).astype(dtype)
    check(op, dtype, [1, 1], [0, 1], [1, 1], value[:1, None], want=want[:1, None])
    check(op, dtype, [3], [], [3], value, want=want, noop_with_empty_axes=1)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_product_of_dynamic_dimensions(dtype):
    value = np.arange(1, 7).reshape(3, 2)
    check("ReduceProd", dtype, ["n", 2], [1], ["n", 1], value)
    check("ReduceProd", dtype, ["n", 2], [-2], [2], value, keepdims=0)
    check("ReduceProd", dtype, ["n", 2], [0, 1], [], value, keepdims=0)
    check("ReduceProd", dtype, ["n", 2], [0], [1, 2], value, opset=11)
    check("ReduceProd", dtype, ["n", 2], [0], [1, 2], np.zeros((0, 2)))


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_sum_exp_does_not_overflow(dtype, opset):
    value = np.array([[800, 799, -900], [-800, -801, -800], [np.inf, 1, 2], [-np.inf, -np.inf, -np.inf]], dtype)
    want = np.array([800 + np.log1p(np.exp(-1)), -800 + np.log(2 + np.exp(-1)), np.inf, -np.inf], dtype)
    check("ReduceLogSumExp", dtype, [4, 3], [1], [4], value, opset, want, keepdims=0)
    check("ReduceLogSumExp", dtype, ["n", 3], [1], ["n", 1], value, opset, want[:, None], keepdims=1)
