"""`If`, `Loop` and `Scan` of ONNX against ONNX Runtime: counts and conditions from data, captured values, nests."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text, text_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, UnsupportedOpError  # noqa: E402

X, W = np.float32([1, 2, 3]), np.float32([1, 1, 5])


def compile_text(text: str):
    return eyas.compile(text_model(text, 17))


def check(text: str, *calls, opset: int = 17) -> None:
    check_text(text, *calls, opset=opset)


def test_loop_ends_by_count_or_by_condition():
    text = """main (int64 n, bool go, float[3] x, float[3] w) => (float[3] y, float[k, 3] rows)
    {
      y, rows = Loop (n, go, x) <body = step (int64 i, bool c, float[3] s) => (bool on, float[3] t, float[3] row) {
        t = Add (s, w)
        sum = ReduceSum <keepdims = 0> (t)
        most = Constant <value = float {100.0}> ()
        on = Less (sum, most)
        f = Cast <to = 1> (i)
        row = Mul (t, f)
      }>
    }"""
    check(text, (5, True, X, W), (100, True, X, W), (0, True, X, W), (4, False, X, W))


def test_loop_without_a_count():
    text = """main (float[3] x) => (float[3] y)
    {
      yes = Constant <value = bool {1}> ()
      y = Loop (, yes, x) <body = step (int64 i, bool c, float[3] s) => (bool on, float[3] t) {
        t = Add (s, s)
        top = ReduceMax <keepdims = 0> (t)
        most = Constant <value = float {1000.0}> ()
        on = Less (top, most)
      }>
    }"""
    check(text, (X,), (X * 100,))


def test_loop_of_known_count_has_static_rows():
    text = """main (float[3] x) => (float[3] y, float[k, 2, 3] rows)
    {
      n = Constant <value = int64 {4}> ()
      yes = Constant <value = bool {1}> ()
      y, rows = Loop (n, yes, x) <body = step (int64 i, bool c, float[3] s) => (bool on, float[3] t, float[2, 3] row) {
        on = Identity (c)
        t = Add (s, s)
        shape = Constant <value = int64[2] {2, 3}> ()
        row = Expand (s, shape)
      }>
    }"""
    check(text, (X,))
    module = compile_text(text)
    assert str(module.signature).endswith("rows: f32[4,2,3])")


def test_loop_carries_a_symbolic_batch():
    text = """main (int64 n, float[b, 3] x) => (float[b, 3] y)
    {
      y = Loop (n, , x) <body = step (int64 i, bool c, float[b, 3] s) => (bool c, float[b, 3] t) {
        one = Constant <value = float {1.0}> ()
        t = Add (s, one)
      }>
    }"""
    check(text, (3, np.ones((2, 3), np.float32)), (5, np.ones((4, 3), np.float32)))


def test_nested_loops_see_all_outer_values():
    text = """main (int64 n, int64 m, float[3] x, float[3] w) => (float[3] y)
    {
      y = Loop (n, , x) <body = outer (int64 i, bool c, float[3] s) => (bool c, float[3] t) {
        f = Cast <to = 1> (i)
        t = Loop (m, , s) <body = inner (int64 j, bool d, float[3] u) => (bool d, float[3] v) {
          g = Cast <to = 1> (j)
          a = Mul (w, f)
          b = Add (a, g)
          v = Add (u, b)
        }>
      }>
    }"""
    check(text, (3, 2, X, W), (0, 2, X, W), (2, 0, X, W))


def test_branches_inside_a_loop():
    text = """main (int64 n, float[3] x) => (float[3] y)
    {
      y = Loop (n, , x) <body = step (int64 i, bool c, float[3] s) => (bool c, float[3] t) {
        sum = ReduceSum <keepdims = 0> (s)
        most = Constant <value = float {20.0}> ()
        small = Less (sum, most)
        t = If (small) <
          then_branch = grow () => (float[3] p) { p = Add (s, s) },
          else_branch = shrink () => (float[3] q) { half = Constant <value = float {0.3}> () q = Mul (s, half) }
        >
      }>
    }"""
    check(text, (1, X), (7, X))


def test_if_on_data_with_equal_names_in_both_branches():
    text = """main (float[3] x, bool c) => (float[3] y, float z)
    {
      y, z = If (c) <
        then_branch = yes () => (float[3] a, float b) { a = Neg (x) b = ReduceSum <keepdims = 0> (a) },
        else_branch = no () => (float[3] a, float b) { a = Mul (x, x) b = ReduceMax <keepdims = 0> (a) }
      >
    }"""
    check(text, (X, True), (X, False))


def test_branches_of_different_sizes():
    text = """main (float[4] x, bool c) => (float[k] y)
    {
      y = If (c) <
        then_branch = yes () => (float[4] a) { a = Neg (x) },
        else_branch = no () => (float[8] b) { b = Concat <axis = 0> (x, x) }
      >
    }"""
    x = np.float32([1, 2, 3, 4])
    check(text, (x, True), (x, False))


def test_branches_of_different_ranks_are_refused():
    text = """main (float[4] x, bool c) => (float[k] y)
    {
      y = If (c) <
        then_branch = yes () => (float[4] a) { a = Neg (x) },
        else_branch = no () => (float[2, 2] b) { s = Constant <value = int64[2] {2, 2}> () b = Reshape (x, s) }
      >
    }"""
    with pytest.raises(UnsupportedOpError, match=r"\(If, .*ranks differ"):
        compile_text(text)


def test_known_condition_takes_one_branch_of_another_shape():
    text = """main (float[3] x) => (float[1, 3] y)
    {
      c = Constant <value = bool {1}> ()
      y = If (c) <
        then_branch = yes () => (float[1, 3] a) { s = Constant <value = int64[2] {1, 3}> () a = Reshape (x, s) },
        else_branch = no () => (float[3] a) { a = Neg (x) }
      >
    }"""
    check(text, (X,))


def test_long_scan_with_axes_and_directions():
    text = """main (float[2] h, float[2, 200] x, float[200] w) => (float[2] last, float[2, 200] rows, float[200] sums)
    {
      last, rows, sums = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
          scan_output_axes = [1, 0], scan_output_directions = [0, 1],
          body = step (float[2] s, float[2] v, float u) => (float[2] t, float[2] row, float sum) {
        half = Constant <value = float {0.5}> ()
        p = Mul (s, half)
        q = Mul (v, u)
        t = Add (p, q)
        row = Identity (t)
        sum = ReduceSum <keepdims = 0> (t)
      }> (h, x, w)
    }"""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 200)).astype(np.float32), rng.standard_normal(200).astype(np.float32)
    check(text, (np.float32([1, -1]), x, w))


def test_scan_over_a_symbolic_length():
    text = """main (float h, float[n] x) => (float last, float[n] rows)
    {
      last, rows = Scan <num_scan_inputs = 1,
          body = step (float s, float v) => (float t, float row) {
        t = Add (s, v)
        row = Identity (t)
      }> (h, x)
    }"""
    check(text, (np.float32(1), np.ones(5, np.float32)), (np.float32(2), np.ones(9, np.float32)))


@pytest.mark.parametrize("steps", [3, 90])
def test_scan_of_an_open_batch(steps):
    text = f"""main (float[b, 4] h, float[b, {steps}, 4] x) => (float[b, 4] last, float[{steps}, b, 4] rows)
    {{
      first = Transpose <perm = [1, 0, 2]> (x)
      last, rows = Scan <num_scan_inputs = 1,
          body = step (float[?, ?] s, float[?, ?] v) => (float[?, ?] t, float[?, ?] row) {{
        half = Constant <value = float {{0.5}}> ()
        p = Mul (s, half)
        t = Add (p, v)
        row = Mul (t, v)
      }}> (h, first)
    }}"""
    rng = np.random.default_rng(0)
    check(
        text,
        *(tuple(rng.standard_normal((n, *rest)).astype(np.float32) for rest in ((4,), (steps, 4))) for n in (3, 1)),
    )


def test_carried_values_of_sizes_that_nobody_named():
    text = """main (float[?, 3] x, float[90, 3] w) => (float[?, 3] same, float[90, ?] rows)
    {
      same, rows = Scan <num_scan_inputs = 1,
          body = step (float[?, 3] s, float[3] v) => (float[?, ?] t, float[?] row) {
        t = Identity (s)
        d = Sub (s, v)
        row = ReduceSum <keepdims = 0, axes = [1]> (d)
      }> (x, w)
    }"""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((90, 3)).astype(np.float32)
    check(text, *((rng.standard_normal((n, 3)).astype(np.float32), w) for n in (4, 1, 7)), opset=11)


def test_carried_values_that_change_their_shape_are_refused():
    text = """main (int64 n, float[1] x) => (float[k] y)
    {
      y = Loop (n, , x) <body = step (int64 i, bool c, float[k] s) => (bool c, float[m] t) {
        t = Concat <axis = 0> (s, s)
      }>
    }"""
    with pytest.raises(UnsupportedOpError, match=r"\(Loop, .*changes its shape from \[1\] to \[2\]"):
        compile_text(text)


def test_rows_without_a_bound_are_refused():
    text = """main (bool go, float[1] x) => (float[1] y, float[k, 1] rows)
    {
      y, rows = Loop (, go, x) <body = step (int64 i, bool c, float[1] s) => (bool on, float[1] t, float[1] row) {
        t = Add (s, s)
        row = Identity (t)
        on = Identity (c)
      }>
    }"""
    with pytest.raises(UnsupportedOpError, match=r"\(Loop, .*scan outputs but no trip count"):
        compile_text(text)


SQUEEZE = """main (float[b, s] x, float[4, 3] w) => (float[b, 3] y)
    {
      shape = Shape (x)
      one = Constant <value = int64[1] {1}> ()
      four = Constant <value = int64 {4}> ()
      frames = Div (shape, four)
      at = Constant <value = int64 {1}> ()
      count = Gather (frames, at)
      size = Unsqueeze (count, zero_axis)
      minus = Constant <value = int64[1] {-1}> ()
      sizes = Concat <axis = 0> (minus, size, width)
      parts = Reshape (x, sizes)
      single = Equal (size, one)
      z = If (single) <
        then_branch = yes () => (float[n, 4] a) { axes = Constant <value = int64[1] {1}> () a = Squeeze (parts, axes) },
        else_branch = no () => (float[n, k, 4] c) { c = Identity (parts) }
      >
      y = Gemm (z, w)
    }"""


def test_ranks_that_depend_on_sizes():
    """What exporters write for `squeeze`; only one branch suits the product that follows."""
    text = SQUEEZE.replace("zero_axis", "axis0").replace("width", "four_wide")
    constants = "axis0 = Constant <value = int64[1] {0}> () four_wide = Constant <value = int64[1] {4}> ()"
    text = text.replace("{\n      shape", "{\n      " + constants + "\n      shape", 1)
    model = text_model(text, 17)
    module = eyas.compile(model)
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    for rows in (1, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
        np.testing.assert_allclose(module(x, w), x @ w, rtol=1e-5, atol=1e-6)
    with pytest.raises(CallError, match=r"\(If, .*must go to its then_branch: the ranks of what it gives depend"):
        module(np.zeros((2, 8), np.float32), w)


def test_a_rank_that_nothing_decides_is_that_of_a_batch_of_one():
    text = """main (float[n, 3] x) => (float[k] y)
    {
      shape = Shape <start = 0, end = 1> (x)
      one = Constant <value = int64[1] {1}> ()
      single = Equal (shape, one)
      y = If (single) <
        then_branch = yes () => (float[a] a) { axes = Constant <value = int64[1] {0}> () a = Squeeze (x, axes) },
        else_branch = no () => (float[b, c] c) { c = Identity (x) }
      >
    }"""
    model = text_model(text, 17)
    del model.graph.output[0].type.tensor_type.shape.dim[:]
    model.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.float32([[1, 2, 3]])
    np.testing.assert_array_equal(eyas.compile(model)(x), x[0])
    several = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(eyas.compile(model, (several,))(several), several)


def test_squeeze_of_an_open_dimension():
    text = """main (float[n, m] x) => (float[n] y)
    { axes = Constant <value = int64[1] {1}> () z = Squeeze (x, axes) y = Neg (z) }"""
    check(text, (np.float32([[1], [2], [3]]),))
    module = compile_text(text)
    with pytest.raises(CallError, match="squeezes dimensions that are not 1"):
        module(np.ones((3, 2), np.float32))


def test_conditions_of_the_host():
    """Truths that follow from sizes, as data and as conditions."""
    text = """main (float[n, 2] x) => (float[n, 2] y, bool[1] b)
    {
      shape = Shape <start = 0, end = 1> (x)
      three = Constant <value = int64[1] {3}> ()
      b = Less (shape, three)
      y = If (b) <
        then_branch = yes () => (float[n, 2] a) { a = Neg (x) },
        else_branch = no () => (float[n, 2] c) { c = Add (x, x) }
      >
    }"""
    check(text, (np.ones((2, 2), np.float32),), (np.ones((3, 2), np.float32),))


TRANSPOSE_IN_A_BRANCH = """func.func @main(%c: tensor<i1>, %x: tensor<1x8xf32>, %w: tensor<1x8xf32>) -> tensor<1x1xf32> {
  %zero = arith.constant 0.0 : f32
  %chosen = tensor.extract %c[] : tensor<i1>
  %empty = tensor.empty() : tensor<1x1xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1xf32>) -> tensor<1x1xf32>
  %result = scf.if %chosen -> (tensor<1x1xf32>) {
    %into = tensor.empty() : tensor<8x1xf32>
    %turned = linalg.transpose ins(%w : tensor<1x8xf32>) outs(%into : tensor<8x1xf32>) permutation = [1, 0]
    %product = linalg.matmul ins(%x, %turned : tensor<1x8xf32>, tensor<8x1xf32>) outs(%start : tensor<1x1xf32>) -> tensor<1x1xf32>
    scf.yield %product : tensor<1x1xf32>
  } else {
    scf.yield %start : tensor<1x1xf32>
  }
  return %result : tensor<1x1xf32>
}"""  # noqa: E501


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_transpose_of_unit_dimensions_in_a_branch(target):
    """It becomes a view, which has no place between dispatches there."""
    module = eyas.compile(TRANSPOSE_IN_A_BRANCH, target=target)
    x, w = (np.random.default_rng(seed).normal(size=(1, 8)).astype(np.float32) for seed in (0, 1))
    np.testing.assert_allclose(module(np.array(True), x, w), x @ w.T, rtol=1e-5)
    np.testing.assert_array_equal(module(np.array(False), x, w), [[0]])


def test_loops_that_carry_everything():
    """Weights that never change, a variable that the first step defines, numbers that are [] and [1]."""
    text = """main (int64 n, float[b, 3] x, float[3] w) => (float[b, 3] y, float[b, 3] last, float[3] same)
    {
      yes = Constant <value = bool {1}> ()
      count = Constant <value = int64 {0}> ()
      undefined = Constant <value = float[1] {7.0}> ()
      unused = Constant <value = float[1] {8.0}> ()
      same, y, last, c, d = Loop (n, yes, w, x, undefined, count, unused) <body = step
        (int64 i, bool go, float[3] v, float[b, 3] s, float[b, 3] before, int64 k, float[b, 3] gone) =>
        (bool on, float[3] v, float[b, 3] t, float[b, 3] now, int64[1] after, float[b, 3] dropped)
      {
        t = Add (s, v)
        now = Mul (t, t)
        dropped = Neg (t)
        one = Constant <value = int64[1] {1}> ()
        after = Add (k, one)
        five = Constant <value = int64 {5}> ()
        on = Less (k, five)
      }>
    }"""
    x = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)
    check(text, (np.int64(3), x, W), (np.int64(1), x[:1], W), (np.int64(9), x, W))
    module = compile_text(text)
    with pytest.raises(CallError, match=r"\(Loop, .*must take a step"):
        module(np.int64(0), x, W)


def test_numbers_of_other_ranks_in_branches():
    text = """main (bool c, float x) => (float[1] y)
    {
      one = Constant <value = float[1] {1.0}> ()
      z = If (c) <
        then_branch = yes () => (float[1] a) { a = Add (x, one) },
        else_branch = no () => (float b) { b = Neg (x) }
      >
      y = Add (z, one)
    }"""
    check(text, (np.array(True), np.float32(3)), (np.array(False), np.float32(3)))


def test_branches_with_sizes_that_depend_on_data():
    """How many elements a branch keeps is computed for both branches, and the sizes of the one that is taken count."""
    text = """main (float[n] x, float limit, bool go) => (float[k] y)
    {
      y = If (go) <
        then_branch = above () => (float[a] u) { m = Greater (x, limit) u0 = Compress <axis = 0> (x, m) u = Neg (u0) },
        else_branch = below () => (float[b] v) { m2 = Less (x, limit) v = Compress <axis = 0> (x, m2) }
      >
    }"""
    x = np.float32([-3, -1, 0.5, 2, 4, 7])
    limits = (np.float32(0), np.float32(100), np.float32(-100), np.float32(3))
    check(text, *((x[:count], limit, go) for limit in limits for go in (True, False) for count in (6, 1, 0)))


def test_a_state_that_a_step_lengthens_and_cuts_has_one_open_size():
    """As overlapping frames are made: onnx loses the size between the two, and a file may declare its example's."""
    text = """main (float[n] x, int64 trips) => (float[n] y)
    {
      go = Constant <value = bool {1}> ()
      y = Loop <body = step (int64 i, bool c, float[5] prev) => (bool d, float[5] next) {
        d = Identity (c)
        more = Constant <value = float[2] {7, 8}> ()
        long = Concat <axis = 0> (prev, more)
        first = Constant <value = int64[1] {2}> ()
        last = Constant <value = int64[1] {9223372036854775807}> ()
        axis = Constant <value = int64[1] {0}> ()
        next = Slice (long, first, last, axis)
      }> (trips, go, x)
    }"""
    calls = [(np.arange(size, dtype=np.float32), np.int64(trips)) for size, trips in ((5, 2), (3, 1), (9, 0))]
    check_text(text, *calls)
