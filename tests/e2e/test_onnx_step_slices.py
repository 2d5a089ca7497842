"""`Loop`s of ONNX that read a part of a tensor at a place that moves with the steps, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text  # noqa: E402

RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


CACHED = """main (float[b, 1, 4] x, float[4, 4] w, float[12, 1, 4] places, int64 last) =>
      (float[b, k, 4] cache, float[b, 1, 4] y, float[s, b, 4] rows)
    {
      zero = Constant <value = int64[1] {0}> ()
      four = Constant <value = int64[1] {4}> ()
      n = Constant <value = int64 {COUNT}> ()
      yes = Constant <value = bool {1}> ()
      sizes = Shape (x)
      batch = Gather <axis = 0> (sizes, zero)
      none = Concat <axis = 0> (batch, zero, four)
      empty = ConstantOfShape (none)
      cache, y, rows = Loop (n, yes, empty, x) <
        body = step (int64 i, bool c, float[b, k, 4] before, float[p, q, 4] at)
          => (bool on, float[b, k2, 4] longer, float[p2, q2, 4] next, float[b, 4] row) {
        one = Constant <value = int64[1] {1}> ()
        start = Reshape (i, one)
        end = Add (start, one)
        place = Slice (places, start, end, zero, one)
        query = Add (at, place)
        key = MatMul (query, w)
        longer = Concat <axis = -2> (before, key, query)
        turned = Transpose <perm = [0, 2, 1]> (longer)
        scores = MatMul (query, turned)
        shares = Softmax <axis = -1> (scores)
        next = MatMul (shares, longer)
        row = Squeeze (next, one)
        CONDITION
      }>
    }"""


@pytest.mark.parametrize(
    ("count", "condition"),
    [
        ("9", "on = Less (i, last)"),
        # Exporters write `a or b` as an `If`; the count says "for ever".
        (
            "9223372036854775807",
            """eight = Constant <value = int64 {8}> ()
        full = GreaterOrEqual (i, eight)
        ends = If (full) <
          then_branch = then_graph () => (bool t) { t = Constant <value = bool {1}> () },
          else_branch = else_graph () => (bool e) { e = GreaterOrEqual (i, last) }>
        on = Not (ends)""",
        ),
    ],
)
def test_a_cache_that_begins_empty(count, condition):
    calls = ((floats(b, 1, 4), floats(4, 4) / 3, floats(12, 1, 4), np.array(n)) for b, n in ((1, 3), (2, 20), (2, 0)))
    check_text(CACHED.replace("COUNT", count).replace("CONDITION", condition), *calls)


STEPS = """main (float[n, 4] x, int64 count) => (float[4] y, float[r, s, 4] rows)
    {
      zero = Constant <value = int64[1] {0}> ()
      three = Constant <value = int64[1] {3}> ()
      one = Constant <value = int64[1] {1}> ()
      two = Constant <value = int64[1] {2}> ()
      none = Constant <value = int64 {0}> ()
      start = Constant <value = float[4] {0, 0, 0, 0}> ()
      sizes = Shape (x)
      length = Gather (sizes, none)
      half = Gather (sizes, zero)
      pairs = Div (half, two)
      twice = Concat <axis = 0> (x, x)
      less = Sub (half, three)
      y, at, rows = Loop (COUNT, , start, three) <
        body = step (int64 i, bool c, float[4] sum, int64[1] from) => (bool on, float[4] more, int64[1] next, ROW) {
        on = Identity (c)
        next = Add (from, one)
        place = Reshape (i, one)
        BEGIN
        part = Slice (DATA, begin, end, zero)
        of_part = ReduceSum <keepdims = 0> (part, zero)
        double = Add (sum, sum)
        more = Add (double, of_part)
        row = Abs (part)
      }>
    }"""


@pytest.mark.parametrize(
    "count, data, begin, row",
    [
        ("length", "x", "begin = Identity (place) end = Add (begin, one)", "float[1, 4] row"),
        ("pairs", "x", "begin = Mul (place, two) end = Add (begin, two)", "float[2, 4] row"),
        ("length", "twice", "begin = Mul (place, two) end = Add (begin, two)", "float[2, 4] row"),
        ("less", "x", "begin = Identity (from) end = Add (begin, one)", "float[1, 4] row"),
        # A slice that reaches over the end is shorter, and one before the beginning counts from the end.
        ("length", "x", "begin = Identity (place) end = Add (begin, two)", "float[4] of_part"),
        ("count", "x", "begin = Identity (place) end = Add (begin, one)", "float[4] of_part"),
        ("three", "x", "begin = Sub (place, two) end = Add (begin, one)", "float[4] of_part"),
    ],
)
def test_slices_at_the_number_of_the_step(count, data, begin, row):
    text = STEPS.replace("COUNT", count).replace("DATA", data).replace("BEGIN", begin).replace("ROW", row)
    if row.endswith("of_part"):
        text = text.replace("float[r, s, 4] rows", "float[r, 4] rows")
    check_text(text, *((floats(n, 4), np.int64(c)) for n, c in ((6, 4), (4, 6), (8, 2))))
