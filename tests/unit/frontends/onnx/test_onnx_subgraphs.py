"""Branches of `If`: taken when the condition is known, prepared like models otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import eyas
from eyas.errors import CallError

FLOAT, BOOL = TensorProto.FLOAT, TensorProto.BOOL


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def constant(name, values):
    return node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(values), f"{name}_values"))


def branch(nodes, result, shape=None):
    return helper.make_graph(nodes, "branch", [], [helper.make_tensor_value_info(result, FLOAT, shape)])


def model_with(nodes, inputs, result_shape=None) -> ModelProto:
    given = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    graph = helper.make_graph(nodes, "main", given, [helper.make_tensor_value_info("y", FLOAT, result_shape)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def squeeze_if_one(condition_nodes) -> ModelProto:
    """What PyTorch's exporter writes for `squeeze(-1)` of a tensor whose last size it does not know."""
    then = branch([constant("axes", [-1]), node("Squeeze", ["x", "axes"], ["out"])], "out")
    other = branch([node("Identity", ["x"], ["out"])], "out")
    nodes = [*condition_nodes, node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
    return model_with(nodes, {"x": (FLOAT, ["n", "m"])})


LAST_SIZE_IS_ONE = [
    node("Shape", ["x"], ["shape"]),
    constant("last", [-1]),
    node("Gather", ["shape", "last"], ["size"], axis=0),
    constant("one", [1]),
    node("Equal", ["size", "one"], ["c"]),
]


@pytest.mark.parametrize("shape, expected", [((3, 1), (3,)), ((3, 2), (3, 2))])
def test_the_branch_is_chosen_when_shapes_decide(shape, expected):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    module = eyas.compile(squeeze_if_one(LAST_SIZE_IS_ONE), (x,))
    np.testing.assert_array_equal(module(x), x.reshape(expected))


def test_branches_may_share_names_and_hold_weights():
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2)]
    branches = [branch([constant("w", w), node("MatMul", ["x", "w"], ["out"])], "out", [2, 64]) for w in weights]
    choice = node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    model = model_with([choice], {"c": (BOOL, []), "x": (FLOAT, [2, 64])})
    x = rng.standard_normal((2, 64)).astype(np.float32)
    module = eyas.compile(model)
    for condition, w in zip((True, False), weights, strict=True):
        np.testing.assert_allclose(module(np.array(condition), x), x @ w, rtol=1e-4, atol=1e-4)


def test_sizes_are_known_inside_branches():
    """The shape that the Reshape asks for is computed from the branch's own values."""
    flatten = [
        node("Transpose", ["x"], ["t"], perm=[1, 0]),
        node("Shape", ["t"], ["s"]),
        node("ReduceProd", ["s"], ["total"], keepdims=1),
        node("Reshape", ["t", "total"], ["out"]),
    ]
    zeros = [constant("out", np.zeros(6, np.float32))]
    choice = node("If", ["c"], ["y"], then_branch=branch(flatten, "out", [6]), else_branch=branch(zeros, "out", [6]))
    module = eyas.compile(model_with([choice], {"c": (BOOL, []), "x": (FLOAT, [2, 3])}))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(module(np.array(True), x), x.T.reshape(6))
    np.testing.assert_array_equal(module(np.array(False), x), np.zeros(6))


def test_a_branch_that_cannot_run_is_left_out_and_checked():
    rng = np.random.default_rng(0)
    short, long = (rng.standard_normal((size, 2)).astype(np.float32) for size in (4, 8))
    branches = [branch([constant("w", w), node("MatMul", ["x", "w"], ["out"])], "out", [1, 2]) for w in (short, long)]
    choice = node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    model = model_with([choice], {"c": (BOOL, []), "x": (FLOAT, [1, "n"])})
    for condition, w in ((True, short), (False, long)):
        x = rng.standard_normal((1, len(w))).astype(np.float32)
        module = eyas.compile(model, (np.array(condition), x))
        np.testing.assert_allclose(module(np.array(condition), x), x @ w, rtol=1e-5, atol=1e-5)
        with pytest.raises(CallError, match=r"\(If, .*must go to its"):
            module(np.array(not condition), x)


def test_what_is_not_supported_does_not_matter_in_a_branch_that_cannot_run():
    """Results of two ranks are refused elsewhere."""
    ranks = [
        branch([constant("axes", [0]), node("Unsqueeze", ["x", "axes"], ["out"])], "out"),
        branch([node("Identity", ["x"], ["out"])], "out"),
    ]
    either = node("If", ["c"], ["r"], then_branch=ranks[0], else_branch=ranks[1])
    short, long = (np.ones((size, 2), np.float32) for size in (4, 8))
    fits = branch([constant("w", short), node("MatMul", ["x", "w"], ["out"])], "out", [1, 2])
    does_not = branch([either, constant("w", long), node("MatMul", ["x", "w"], ["out"])], "out", [1, 2])
    choice = node("If", ["c"], ["y"], then_branch=fits, else_branch=does_not)
    x = np.arange(4, dtype=np.float32)[None]
    module = eyas.compile(model_with([choice], {"c": (BOOL, []), "x": (FLOAT, [1, "n"])}), (np.array(True), x))
    np.testing.assert_allclose(module(np.array(True), x), x @ short)


@pytest.mark.parametrize("grows", [False, True])
def test_results_of_branches_may_have_dynamic_sizes(grows):
    """Sizes that the condition decides are known before the branch runs."""
    then = branch(
        [node("Concat", ["x", "x"], ["out"], axis=0) if grows else node("Neg", ["x"], ["out"])], "out", ["k", 4]
    )
    other = branch([constant("h", np.float32(0.5)), node("Mul", ["x", "h"], ["out"])], "out", ["n", 4])
    choice = node("If", ["c"], ["z"], then_branch=then, else_branch=other)
    model = model_with([choice, node("Abs", ["z"], ["y"])], {"c": (BOOL, []), "x": (FLOAT, ["n", 4])}, ["k", 4])
    module = eyas.compile(model)
    for size in (1, 3):
        x = np.random.default_rng(size).standard_normal((size, 4)).astype(np.float32)
        np.testing.assert_array_equal(module(np.array(True), x), np.abs(np.concatenate([x, x]) if grows else x))
        np.testing.assert_array_equal(module(np.array(False), x), np.abs(x / 2))
