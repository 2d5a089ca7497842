"""Graph models of TensorFlow.js that branch and loop, against NumPy: nodes of TensorFlow 1, functions, lists."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest

pytest.importorskip("onnx")

import eyas  # noqa: E402

FLOAT, INT = {"type": "DT_FLOAT"}, {"type": "DT_INT32"}
X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
NUMBERS = {
    "zero": np.array(0, np.int32),
    "one": np.array(1, np.int32),
    "two": np.array(2, np.float32),
    "first": np.array([0], np.int32),
    "second": np.array([1], np.int32),
    "row": np.array([4], np.int32),
}


def text(content):
    return {"s": base64.b64encode(content.encode()).decode()}


def node(op, name, *inputs, **attributes):
    return {"name": name, "op": op, "input": list(inputs), "attr": attributes}


def constants(weights):
    return [node("Const", name, dtype=INT if array.dtype == np.int32 else FLOAT) for name, array in weights.items()]


def place(name, dims, kind=FLOAT):
    return node("Placeholder", name, dtype=kind, shape={"shape": {"dim": [{"size": str(dim)} for dim in dims]}})


def compiled(folder, nodes, outputs, functions=(), weights=NUMBERS):
    specs = [{"name": name, "shape": list(one.shape), "dtype": str(one.dtype)} for name, one in weights.items()]
    (folder / "weights.bin").write_bytes(b"".join(one.tobytes() for one in weights.values()))
    topology = {"node": [*constants(weights), *nodes], "library": {"function": list(functions)}}
    manifest = [{"paths": ["weights.bin"], "weights": specs}]
    signature = {"outputs": {name: {"name": name} for name in outputs}}
    content = {"format": "graph-model", "modelTopology": topology, "weightsManifest": manifest, "signature": signature}
    (folder / "model.json").write_text(json.dumps(content))
    return eyas.compile(folder)


def frame(*variables, limit):
    """The nodes of a TensorFlow 1 loop that counts to `limit`. Of each further variable: name, first value, the node
    that makes the next one from `name_s:1`."""
    inside = {"frame_name": text("loop")}
    nodes = [
        node("Enter", "limit_e", limit, **inside, is_constant={"b": True}),
        node("Less", "less", "i_m", "limit_e"),
        node("LoopCond", "condition", "less"),
        node("AddV2", "next_i", "i_s:1", "one"),
    ]
    for name, first, following in (("i", "zero", "next_i"), *variables):
        nodes += [
            node("Enter", f"{name}_e", first, **inside),
            node("Merge", f"{name}_m", f"{name}_e", f"{name}_n"),
            node("Switch", f"{name}_s", f"{name}_m", "condition"),
            node("NextIteration", f"{name}_n", following),
            node("Exit", name, f"{name}_s"),
        ]
    return nodes


def after(steps):
    y = X
    for _ in range(steps):
        y = 2 * y + X
    return y


@pytest.mark.parametrize("steps", [3, 20])
def test_a_loop_of_known_steps(tmp_path, steps):
    body = [node("Mul", "twice", "y_s:1", "two"), node("AddV2", "next_y", "twice", "x")]
    loop = frame(("y", "x", "next_y"), limit="limit")
    weights = {**NUMBERS, "limit": np.array(steps, np.int32)}
    module = compiled(tmp_path, [place("x", [3, 4]), *body, *loop], ["y", "i"], weights=weights)
    y, count = module(X)
    np.testing.assert_allclose(y, after(steps), rtol=1e-5)
    assert count == steps


def test_a_loop_of_steps_that_are_given(tmp_path):
    body = [node("Mul", "twice", "y_s:1", "two"), node("AddV2", "next_y", "twice", "x")]
    loop = frame(("y", "x", "next_y"), limit="limit")
    module = compiled(tmp_path, [place("x", [3, 4]), place("limit", [], INT), *body, *loop], ["y"])
    for steps in (5, 0):
        np.testing.assert_allclose(module(X, np.array(steps, np.int32)), after(steps), rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 3, 12, -1])
def test_a_map_over_rows(tmp_path, rows):
    """The rows are a list, and so are the results."""
    nodes = [
        place("x", [rows, 4]),
        node("Shape", "shape", "x", out_type=INT),
        node("StridedSlice", "count", "shape", "first", "second", "second", shrink_axis_mask={"i": "1"}),
        node("TensorListFromTensor", "xs", "x", "row", element_dtype=FLOAT),
        node("TensorListReserve", "empty", "row", "count", element_dtype=FLOAT),
        node("TensorListGetItem", "item", "xs", "i_s:1", "row", element_dtype=FLOAT),
        node("Mul", "twice", "item", "two"),
        node("TensorListSetItem", "next_ys", "ys_s:1", "i_s:1", "twice", element_dtype=FLOAT),
        node("TensorListStack", "y", "ys", "row", element_dtype=FLOAT, num_elements={"i": "-1"}),
    ]
    module = compiled(tmp_path, [*nodes, *frame(("ys", "empty", "next_ys"), limit="count")], ["y"])
    for count in (rows,) if rows > 0 else (2, 5):
        x = np.random.default_rng(1).normal(size=(count, 4)).astype(np.float32)
        np.testing.assert_allclose(module(x), 2 * x)


def test_branches_that_meet(tmp_path):
    nodes = [
        place("x", [3, 4]),
        place("k", [], INT),
        node("Greater", "positive", "k", "zero"),
        node("Switch", "switch", "x", "positive"),
        node("Mul", "yes", "switch:1", "two"),
        node("Neg", "no", "switch"),
        node("Merge", "y", "no", "yes"),
    ]
    module = compiled(tmp_path, nodes, ["y"])
    np.testing.assert_allclose(module(X, np.array(1, np.int32)), 2 * X)
    np.testing.assert_allclose(module(X, np.array(0, np.int32)), -X)


def function(name, inputs, results, nodes):
    signature = {
        "name": name,
        "inputArg": [{"name": one} for one in inputs],
        "outputArg": [{"name": one} for one in results],
    }
    return {"signature": signature, "nodeDef": [*constants(NUMBERS), *nodes], "ret": results}


def test_functions_of_the_library(tmp_path):
    functions = [
        function("check", ["i", "y", "limit"], {"result": "less:z:0"}, [node("Less", "less", "i", "limit")]),
        function(
            "body",
            ["i", "y", "limit"],
            {"next_i": "sum:z:0", "next_y": "twice:z:0", "same": "limit"},
            [node("AddV2", "sum", "i", "one"), node("Mul", "twice", "y", "two")],
        ),
        function("yes", ["x"], {"result": "twice:z:0"}, [node("Mul", "twice", "x", "two")]),
        function("no", ["x"], {"result": "negative:y:0"}, [node("Neg", "negative", "x")]),
    ]
    named = {name: {"func": {"name": name}} for name in ("check", "body", "yes", "no")}
    nodes = [
        place("x", [3, 4]),
        place("k", [], INT),
        node("StatelessWhile", "while", "zero", "x", "k", cond=named["check"], body=named["body"]),
        node("Greater", "positive", "k", "zero"),
        node("If", "if", "positive", "while:1", then_branch=named["yes"], else_branch=named["no"]),
    ]
    module = compiled(tmp_path, nodes, ["while", "if"], functions)
    for k in (3, 0):
        count, y = module(X, np.array(k, np.int32))
        assert count == k
        np.testing.assert_allclose(y, 16 * X if k else -X)
