"""`Loop`s of ONNX that carry what is longer after each step, against ONNX Runtime: caches, and tokens of decoders."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text, text_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError, UnsupportedOpError  # noqa: E402

RNG = np.random.default_rng(4)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def attention(width: int) -> str:
    """A cache and the mask for it grow together: the mask is added to the scores of the cache."""
    return f"""main (
        int64 n, float[2, {width}] x, float[{width}, {width}] w, float[2, m, {width}] before, float[2, 1, m] seen
      ) => (float[2, {width}] y, float[2, k, {width}] keys, float[2, 1, k] bias, float[q, 2, {width}] rows)
    {{
      y, keys, bias, rows = Loop (n, , x, before, seen) <
        body = step (int64 i, bool c, float[2, {width}] s, float[2, p, {width}] cache, float[2, 1, p] mask) =>
          (bool c, float[2, {width}] t, float[2, r, {width}] longer, float[2, 1, r] wider, float[2, {width}] row)
      {{
        one = Constant <value = int64[1] {{1}}> ()
        number = Cast <to = 1> (i)
        slope = Constant <value = float[2, 1, 1] {{-0.1, 0.2}}> ()
        column = Mul (number, slope)
        wider = Concat <axis = -1> (mask, column)
        product = MatMul (s, w)
        query = Unsqueeze (product, one)
        longer = Concat <axis = 1> (cache, query)
        turned = Transpose <perm = [0, 2, 1]> (longer)
        scores = MatMul (query, turned)
        masked = Add (scores, wider)
        weights = Softmax <axis = -1> (masked)
        mixed = MatMul (weights, longer)
        flat = Squeeze (mixed, one)
        t = Tanh (flat)
        row = Exp (t)
      }}>
    }}"""


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("width", [4, 130])
def test_caches(width, target):
    """As one dispatch, and step by step in the host program."""
    calls = [
        (np.int64(n), floats(2, width), floats(width, width) * 0.1, floats(2, m, width), floats(2, 1, m))
        for n, m in ((3, 2), (1, 0), (0, 3), (6, 5), (4, 0))
    ]
    check_text(attention(width), *calls, rtol=1e-4, target=target)


TOKENS = """main (int64 n, int64[1, m] x) => (int64[1, k] y)
    {
      yes = Constant <value = bool {1}> ()
      one = Constant <value = int64 {1}> ()
      seven = Constant <value = int64 {7}> ()
      zero = Constant <value = int64[1, 1] {0}> ()
      y = Loop (COUNT, yes, x) <body = step (int64 i, bool c, int64[1, s] t) => (bool on, int64[1, r] longer) {
        sum = ReduceSum <keepdims = 1> (t)
        next = Mod (sum, seven)
        longer = Concat <axis = 1> (t, next)
        shape = Shape (longer)
        length = Gather (shape, one)
        CONDITION
      }>
    }"""
END = "end = Equal (next, zero) go = Not (end) flat = Squeeze (go)"


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize(
    "count, condition",
    [
        ("n", "on = Identity (c)"),
        ("", "on = Less (length, n)"),
        ("", f"{END} less = Greater (n, length) on = And (flat, less)"),
        (
            "",
            "twice = Add (length, length) more = Greater (twice, n) on = Not (more)",
        ),
        ("", "following = Add (i, one) on = Less (following, n)"),
        ("n", f"{END} on = Identity (flat)"),
        (
            "",
            "end = Equal (next, zero) flat = Squeeze (end) full = GreaterOrEqual (length, n) ends = Or (flat, full)"
            " on = Not (ends)",
        ),
        (
            "",
            """full = GreaterOrEqual (length, n)
        ends = If (full) <
          then_branch = left () => (bool a) { a = Identity (yes) },
          else_branch = right () => (bool b) { end = Equal (next, zero) b = Squeeze (end) }>
        on = Not (ends)""",
        ),
    ],
)
def test_tokens(count, condition, target):
    """A trip count, a number of tokens, or one that ends them: there may be fewer than there is room for."""
    calls = [(np.int64(n), RNG.integers(1, 9, (1, m))) for n, m in ((3, 2), (9, 1), (2, 4), (11, 3), (20, 5))]
    check_text(TOKENS.replace("COUNT", count).replace("CONDITION", condition), *calls, target=target)


DECODER = """main (int64 n, int64[b, m] x, float[7, 4] table) => (int64[b, k] y, float[b, q, 4] keys)
    {
      no = Constant <value = bool {0}> ()
      yes = Constant <value = bool {1}> ()
      one = Constant <value = int64[1] {1}> ()
      last = Constant <value = int64[1] {-1}> ()
      end = Constant <value = int64[1] {9223372036854775807}> ()
      nothing = Constant <value = int64[2] {0, 4}> ()
      five = Constant <value = int64 {5}> ()
      shape = Shape (x)
      batch = Shape <end = 1> (x)
      sizes = Concat <axis = 0> (batch, nothing)
      empty = ConstantOfShape (sizes)
      undone = ConstantOfShape <value = bool[1] {0}> (batch)
      y, keys, all = Loop (, yes, x, empty, undone) <
        body = step (int64 i, bool c, int64[b, s] t, float[b, p, 4] cache, bool[b] done) =>
          (bool on, int64[b, r] longer, float[b, v, 4] more, bool[b] ended)
      {
        newest = Slice (t, last, end, one)
        row = Gather (table, newest)
        more = Concat <axis = 1> (cache, row)
        sum = ReduceSum <keepdims = 1> (more, one)
        flat = Squeeze (sum, one)
        best = ArgMax <axis = 1, keepdims = 0> (flat)
        is_end = Equal (best, five)
        ended = Or (done, is_end)
        next = Unsqueeze (best, one)
        longer = Concat <axis = 1> (t, next)
        length = Shape <start = 1> (longer)
        less = Less (length, n)
        room = Squeeze (less)
        on = If (room) <
          then_branch = right () => (bool a) {
            ends = Cast <to = 6> (ended)
            all_ends = ReduceMin <keepdims = 0> (ends)
            stop = Cast <to = 9> (all_ends)
            a = Not (stop)
          },
          else_branch = left () => (bool e) { e = Identity (no) }>
      }>
    }"""


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
def test_a_decoder(target):
    """As exporters write a `while` with an `and`; a step reads the last token, so that there must be one."""
    sizes = [(12, 2, 3), (9, 1, 1), (2, 3, 4), (20, 1, 2)]
    calls = [(np.int64(n), RNG.integers(0, 7, (b, m)), floats(7, 4)) for n, b, m in sizes]
    module = check_text(DECODER, *calls, target=target)
    with pytest.raises(CallError, match=r"\(Loop, .*takes the last of what it carries .* must not be empty"):
        module(np.int64(4), np.zeros((2, 0), np.int64), floats(7, 4))


def test_several_axes_types_and_open_sizes():
    text = """main (int64 n, float[m, m] x, float[q] z, bool[1, 3] given) =>
      (float[k, k] y, float[r] line, bool[1, w] all)
    {
      y, line, all = Loop (n, , x, z, given) <
        body = step (int64 i, bool c, float[s, s] square, float[e] v, bool[1, g] b) =>
          (bool c, float[t, t] larger, float[f] longer, bool[1, h] wider)
      {
        number = Cast <to = 1> (i)
        pads = Constant <value = int64[4] {0, 0, 1, 1}> ()
        larger = Pad (square, pads, number)
        two = Constant <value = float[2] {1.5, 2.5}> ()
        row = Mul (two, number)
        longer = Concat <axis = 0> (v, row, z)
        yes = Constant <value = bool[1, 1] {1}> ()
        wider = Concat <axis = 1> (yes, b)
      }>
    }"""
    calls = [(3, 2, 1), (0, 1, 4), (5, 3, 2), (1, 1, 1)]
    given = RNG.integers(0, 2, (1, 3)).astype(bool)
    check_text(text, *((np.int64(n), floats(m, m), floats(q), given) for n, m, q in calls))


@pytest.mark.parametrize("opset", [9, 17])
def test_branches_and_loops_inside(opset):
    text = """main (int64 n, bool up, float[1, m] x) => (float[1, k] y)
    {
      three = Constant <value = int64 {3}> ()
      y = Loop (n, , x) <body = step (int64 i, bool c, float[1, s] t) => (bool c, float[1, r] longer) {
        first = If (up) <
          then_branch = most () => (float[1, 1] a) { a = ReduceMax <axes = [1], keepdims = 1> (t) },
          else_branch = least () => (float[1, 1] b) { b = ReduceMin <axes = [1], keepdims = 1> (t) }>
        inner = Loop (three, , first) <body = more (int64 j, bool d, float[1, e] v) => (bool d, float[1, f] w) {
          last = ReduceMean <axes = [1], keepdims = 1> (v)
          new = Tanh (last)
          w = Concat <axis = 1> (v, new)
        }>
        next = ReduceMin <axes = [1], keepdims = 1> (inner)
        longer = Concat <axis = 1> (t, next)
      }>
    }"""
    calls = [(np.int64(n), up, floats(1, m)) for n, m, up in ((3, 2, True), (0, 4, False), (5, 1, False))]
    check_text(text, *calls, opset=opset)


def test_tokens_of_a_greedy_decoder():
    text = """main (int64[b, l] x, float[10, 6] table, float[6, 10] w) => (int64[b, m] y)
    {
      one = Constant <value = int64[1] {1}> ()
      n = Constant <value = int64 {5}> ()
      yes = Constant <value = bool {1}> ()
      y = Loop (n, yes, x) <body = step (int64 i, bool c, int64[b, k] ids) => (bool on, int64[b, k2] longer) {
        on = Identity (c)
        rows = Gather (table, ids)
        mean = ReduceSum <keepdims = 0> (rows, one)
        scores = MatMul (mean, w)
        next = ArgMax <axis = -1, keepdims = 1> (scores)
        longer = Concat <axis = 1> (ids, next)
      }>
    }"""
    check_text(text, *((RNG.integers(0, 10, shape), floats(10, 6), floats(6, 10)) for shape in ((1, 1), (3, 4))))


def test_a_counter_that_is_carried():
    text = """main (float[2, l] x, int64 n) => (float[2, k] y, int64 last)
    {
      yes = Constant <value = bool {1}> ()
      zero = Constant <value = int64 {0}> ()
      y, last = Loop (, yes, x, zero) <
        body = step (int64 i, bool c, float[2, k] before, int64 at) => (bool on, float[2, k2] longer, int64 next) {
        one = Constant <value = int64 {1}> ()
        next = Add (at, one)
        on = Less (next, n)
        mean = ReduceMean <axes = [1], keepdims = 1> (before)
        longer = Concat <axis = 1> (before, mean)
      }>
    }"""
    check_text(text, *((floats(2, length), np.array(n)) for length, n in ((1, 3), (4, 0), (3, 7))), opset=17)


@pytest.mark.parametrize(
    "condition", ["square = Mul (length, length) on = Less (square, n)", f"{END} on = Identity (flat)"]
)
def test_tokens_without_a_bound_are_refused(condition):
    with pytest.raises(
        UnsupportedOpError, match=r"\(Loop, .*changes its shape .* may grow by the same size in each step"
    ):
        eyas.compile(text_model(TOKENS.replace("COUNT", "").replace("CONDITION", condition)))
