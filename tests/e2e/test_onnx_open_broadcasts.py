"""Open sizes that meet in broadcasting operators, and may be 1 in a call, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text, text_model  # noqa: E402

from eyas.errors import CallError  # noqa: E402
from eyas.frontends.onnx.broadcasts import align_broadcasts  # noqa: E402
from eyas.frontends.onnx.file import open_model  # noqa: E402
from eyas.frontends.onnx.symbolic.interpret import interpret  # noqa: E402

RNG = np.random.default_rng(7)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_two_axes_of_different_ranks(target):
    text = """main (float[n, 3, k] a, float[m, 1] b, float[5, 1, 1] c) => (float[p, q, r] y, float[s, t, u] z)
    {
      w = Tanh (a)
      y = Add (w, b)
      z = Mul (a, c)
    }"""
    shapes = ((5, 2, 3), (5, 2, 1), (1, 4, 3), (1, 1, 1))
    check_text(text, *((floats(n, 3, k), floats(m, 1), floats(5, 1, 1)) for n, k, m in shapes), target=target)


def test_conditions_and_integers_with_three_sizes():
    text = """main (bool[p] c, int64[n] a, int64[m] b) => (int64[q] y, int64[r] z)
    {
      y = Where (c, a, b)
      z = Mod (a, b)
    }"""
    sizes = ((4, 4, 4), (1, 4, 4), (4, 1, 1), (1, 1, 5), (5, 1, 5), (0, 1, 1))
    calls = [(np.arange(p) % 2 == 0, RNG.integers(0, 9, n), RNG.integers(1, 9, m)) for p, n, m in sizes]
    check_text(text, *calls)


def test_batches_of_products():
    text = "main (float[n, 3, k] a, float[m, k, 5] b) => (float[p, 3, 5] y) { y = MatMul (a, b) }"
    check_text(text, *((floats(n, 3, 4), floats(m, 4, 5)) for n, m in ((2, 2), (2, 1), (1, 6))))


def test_a_mask_is_repeated_for_scores_and_scores_are_not_for_a_mask():
    """A branch before the sum would end the fusion with the product."""
    text = """main (float[n, 4] x, float[m, 4] mask, float[4, 4] w) => (float[p, 4] y)
    {
      scores = MatMul (x, w)
      y = Add (scores, mask)
    }"""
    calls = [(floats(n, 4), floats(m, 4), floats(4, 4)) for n, m in ((3, 3), (3, 1))]
    module = check_text(text, *calls)
    with pytest.raises(CallError, match="must be equal"):
        module(floats(1, 4), floats(3, 4), floats(4, 4))


def test_sizes_that_are_the_same_or_computed_have_no_branch():
    text = """main (float[n, k] a, float[n, k] b, float[1, k] c) => (float[p, q] y)
    {
      s = Add (a, b)
      t = Mul (s, c)
      u = Concat <axis = 0> (t, a)
      y = Add (u, u)
    }"""
    model = open_model(text_model(text))
    align_broadcasts(model)
    assert all(node.op_type != "If" for node in model.proto.graph.node)


def test_a_declared_number_yields_to_the_size_that_follows_from_the_inputs():
    """Exporters declare results as their example had them."""
    text = """main (float[1, 1, w] x, float[1, 1, 3] k) => (float[1, 1, 25] y)
    {
      c = Conv (x, k)
      y = Softmax <axis = -1> (c)
    }"""
    check_text(text, (floats(1, 1, 27), floats(1, 1, 3)), (floats(1, 1, 12), floats(1, 1, 3)))


def test_an_input_that_is_only_expanded_has_sizes_of_its_own():
    """Recurrent states have the names of the picture's sizes in some files, and are 1 in the first call."""
    text = """main (float[b, h, w] x, float[b, h, w] state) => (float[b, h, w] y)
    {
      half = Relu (x)
      shape = Shape (half)
      all = Expand (state, shape)
      y = Add (half, all)
    }"""
    calls = [(floats(2, 4, 6), floats(*shape)) for shape in ((1, 1, 1), (2, 4, 6), (2, 1, 6))]
    check_text(text, *calls)


@pytest.mark.parametrize("operator", ["Add", "Max", "Sub"])
def test_numbers_of_an_example_where_open_sizes_meet(operator):
    """A pyramid adds what it enlarged to what it had; the file says of the result how large it was at its export."""
    text = f"""main (float[1, 2, h, w] x) => (float[1, 2, 8, 8] y)
    {{
      scales = Constant <value = float[4] {{1.0, 1.0, 2.0, 2.0}}> ()
      small = MaxPool <kernel_shape = [1, 1], strides = [2, 2]> (x)
      large = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric"> (small, , scales)
      y = {operator} (large, x)
    }}"""
    check_text(text, *((floats(1, 2, *size),) for size in ((8, 8), (4, 10), (12, 6))))


def test_sizes_that_met_meet_again_in_a_loop():
    """What a loop carries begins as large as two open batches make each other, and meets one of them in each step."""
    text = """main (float[b, s, 4] x, float[c, 1, 4] first, float[b, 1, 4] second, float[4, 4] w) =>
      (float[p, k, 4] cache, float[q, 1, 4] y)
    {
      zero = Constant <value = int64[1] {0}> ()
      four = Constant <value = int64[1] {4}> ()
      n = Constant <value = int64 {5}> ()
      batch = Shape <start = 0, end = 1> (x)
      none = Concat <axis = 0> (batch, zero, four)
      empty = ConstantOfShape (none)
      begin = Add (first, second)
      cache, y = Loop (n, , empty, begin) <
        body = step (int64 i, bool c, float[b, k, 4] before, float[q, 1, 4] at)
          => (bool c, float[b, k2, 4] longer, float[q2, 1, 4] next) {
        query = MatMul (at, w)
        longer = Concat <axis = 1> (before, query)
        turned = Transpose <perm = [0, 2, 1]> (longer)
        scores = MatMul (query, turned)
        shares = Softmax <axis = -1> (scores)
        mixed = MatMul (shares, longer)
        keys = Transpose <perm = [0, 2, 1]> (x)
        others = MatMul (mixed, keys)
        weights = Softmax <axis = -1> (others)
        next = MatMul (weights, x)
      }>
    }"""
    sizes = ((2, 2, 3), (2, 1, 4), (1, 1, 2))
    check_text(
        text, *((floats(b, s, 4), floats(c, 1, 4), floats(b, 1, 4), floats(4, 4)) for b, c, s in sizes), opset=17
    )


def test_what_is_repeated_has_the_size_of_the_result():
    text = """main (float[n, k] a, float[m, k] b, float[l] c) => (float[p, q] y, float[r, s] z, float[t, u] w)
    {
      y = Add (a, b)
      z = Mul (b, a)
      w = Sub (y, c)
    }"""
    model = open_model(text_model(text))
    align_broadcasts(model)
    facts = interpret(model)
    shapes = {node.op_type: facts.values[node.output[0]].shape for node in model.proto.graph.node}
    assert shapes["Add"] == shapes["Mul"] and shapes["Add"][0] == shapes["Sub"][0]
    sizes = ((2, 2, 3, 1), (1, 3, 2, 2), (4, 1, 1, 5))
    check_text(text, *((floats(n, k), floats(m, k), floats(c)) for n, m, k, c in sizes))
