"""`Loop`s of ONNX whose number of steps only a condition says, and rows of open sizes, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text, text_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import UnsupportedOpError  # noqa: E402

RNG = np.random.default_rng(4)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


COUNTED = """main (int32 n, int32 start, float[3] x) => (int32 last, float[k, 3] rows)
    {
      go = Less (start, n)
      last, rows = Loop (, go, start) <body = step (int64 i, bool c, int32 at) => (bool on, int32 next, float[3] row) {
        two = Constant <value = int32 {2}> ()
        next = Add (at, two)
        CONDITION
        scale = Cast <to = 1> (at)
        row = Mul (x, scale)
      }>
    }"""


@pytest.mark.parametrize(
    "condition",
    [
        "on = Less (next, n)",
        "on = Greater (n, next)",
        "a = Cast <to = 1> (next) b = Cast <to = 1> (n) on = Less (a, b)",
        "more = GreaterOrEqual (next, n) on = Not (more)",
        "on = LessOrEqual (next, n)",
        "five = Constant <value = int64 {5}> () a = Less (i, five) b = Less (at, n) on = And (a, b)",
        # A value that only the call knows: the loop is run once to count.
        "a = Mod (next, n) zero = Constant <value = int32 {0}> () b = Equal (a, zero) on = Not (b)",
    ],
)
def test_rows_of_a_loop_without_a_count(condition):
    calls = [(np.int32(n), np.int32(start), floats(3)) for n, start in ((7, 1), (6, 2), (4, 9), (2, 0))]
    check_text(COUNTED.replace("CONDITION", condition), *calls)


def test_a_condition_of_the_data_of_steps():
    """Newton's method until nothing moves, with a row for each step; the count depends on what it computes."""
    text = """main (float[m] x) => (float[m] y, float[k, m] rows, float[k] errors)
    {
      yes = Constant <value = bool {1}> ()
      unused = Constant <value = float[1] {0}> ()
      big = Constant <value = int64 {9223372036854775807}> ()
      y, u, rows, errors = Loop (big, yes, x, unused) <
        body = step (int64 i, bool c, float[m] s, float[1] w) =>
          (bool on, float[m] t, float[1] v, float[m] row, float e)
      {
        half = Constant <value = float {0.5}> ()
        small = Constant <value = float {0.001}> ()
        other = Div (x, s)
        sum = Add (s, other)
        t = Mul (sum, half)
        row = Mul (t, t)
        change = Sub (t, s)
        size = Abs (change)
        e = ReduceMax <keepdims = 0> (size)
        on = Greater (e, small)
        one = Constant <value = float[1] {1}> ()
        v = Add (w, one)
      }>
    }"""
    check_text(text, *((np.abs(floats(m)) * 9 + 1,) for m in (4, 1, 7)))


def test_a_loop_that_counts_inside_of_one_and_branches():
    text = """main (int64 n, float[m] x) => (float[m] y, float[k] sums)
    {
      y, sums = Loop (n, , x) <body = outer (int64 i, bool c, float[m] s) => (bool c, float[m] t, float sum) {
        yes = Constant <value = bool {1}> ()
        limit = Constant <value = float {3}> ()
        zero = Constant <value = float {0}> ()
        u, rows = Loop (, yes, s) <body = inner (int64 j, bool d, float[m] v) => (bool on, float[m] w, float[m] row) {
          size = ReduceSum <keepdims = 0> (v)
          up = Greater (size, zero)
          w = If (up) <
            then_branch = a () => (float[m] p) { six = Constant <value = float {0.6}> () p = Mul (v, six) },
            else_branch = b () => (float[m] q) { five = Constant <value = float {0.5}> () q = Mul (v, five) }
          >
          row = Sub (v, w)
          left = Abs (size)
          on = Greater (left, limit)
        }>
        sum = ReduceSum <keepdims = 0> (rows)
        t = Add (u, s)
      }>
    }"""
    check_text(text, *((np.int64(n), floats(m) * 20) for n, m in ((3, 4), (1, 2), (2, 5))), rtol=1e-4)


def test_rows_of_sizes_that_follow_from_open_ones():
    """The first 5 of N, if there are so many, and twice as many and one more: known before the loop."""
    text = """main (int64 n, float[m, 3] x) => (float[k, r, 3] first, float[k, q] doubled)
    {
      yes = Constant <value = bool {1}> ()
      first, doubled = Loop (n, yes) <body = step (int64 i, bool c) => (bool c, float[r, 3] row, float[q] twice) {
        begin = Constant <value = int64[1] {0}> ()
        end = Constant <value = int64[1] {5}> ()
        cut = Slice (x, begin, end, begin)
        number = Cast <to = 1> (i)
        row = Add (cut, number)
        flat = ReduceSum <keepdims = 0> (x, one_axis)
        plain = Constant <value = float[1] {2}> ()
        twice = Concat <axis = 0> (flat, plain, flat)
      }>
    }""".replace("(x, one_axis)", "(x, axis)").replace("flat = ", "axis = Constant <value = int64[1] {1}> () flat = ")
    check_text(text, *((np.int64(n), floats(m, 3)) for n, m in ((3, 9), (1, 2), (4, 5), (2, 7))))


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_rows_of_sizes_that_follow_from_numbers(target):
    """A loop inside takes so many steps as a number outside says, and its rows are reduced to a row of that size."""
    text = """main (int64 n, int64 k, float[m, 3] x) => (float[n, w] y)
    {
      yes = Constant <value = bool {1}> ()
      first = Constant <value = float[3] {0.5, -1.0, 2.0}> ()
      axis = Constant <value = int64[1] {1}> ()
      y = Loop (n, yes) <body = outer (int64 i, bool c) => (bool c, float[w] row) {
        last, rows = Loop (k, , first) <
          body = inner (int64 j, bool d, float[3] s) => (bool d, float[3] t, float[3] made)
        {
          picked = Gather (x, j)
          t = Add (s, picked)
          made = Tanh (t)
        }>
        sum = ReduceSum <keepdims = 0> (rows, axis)
        number = Cast <to = 1> (i)
        row = Add (sum, number)
      }>
    }"""
    calls = [(np.int64(n), np.int64(k), floats(m, 3)) for n, k, m in ((2, 3, 4), (3, 1, 4), (1, 5, 7))]
    check_text(text, *calls, target=target)
    with pytest.raises(UnsupportedOpError, match="their sizes must be known before the loop"):
        eyas.compile(text_model(text.replace("last, rows = Loop (k,", "more = Add (i, k) last, rows = Loop (more,")))


def test_a_scan_of_such_rows():
    text = """main (float[n, m] x, float[240, 3] w) => (float[m, r] ys)
    {
      ys = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = step (float[n] v) => (float[r] y) {
        begin = Constant <value = int64[1] {0}> ()
        end = Constant <value = int64[1] {4}> ()
        cut = Slice (v, begin, end, begin)
        y = Exp (cut)
      }> (x)
    }"""
    check_text(text.replace(", float[240, 3] w", ""), (floats(6, 90),), (floats(3, 70),))


def test_loops_that_cannot_be_counted_are_refused():
    text = """main (bool go, float[1] x) => (float[1] y, float[k, 1] rows)
    {
      y, rows = Loop (, go, x) <body = step (int64 i, bool c, float[1] s) => (bool on, float[1] t, float[1] row) {
        t = Add (s, s)
        row = RandomNormalLike (s)
        sum = ReduceSum <keepdims = 0> (s)
        zero = Constant <value = float {0}> ()
        on = Greater (sum, zero)
      }>
    }"""
    with pytest.raises(UnsupportedOpError, match=r"\(Loop, .*cannot be run once to count: its steps draw random"):
        eyas.compile(text_model(text))
