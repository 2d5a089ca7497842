"""ONNX operators on shapes that are open, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text  # noqa: E402

RNG = np.random.default_rng(5)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_scatters_with_reductions(reduction, target):
    text = f"""main (float[n, m] x, int64[r, m] i, float[r, m] u, int64[r, 1] j) => (float[n, m] a, float[n, m] b)
    {{
      a = ScatterElements <axis = 0, reduction = "{reduction}"> (x, i, u)
      b = ScatterND <reduction = "{reduction}"> (x, j, u)
    }}"""
    calls = []
    for n, m, r in ((5, 4, 7), (1, 1, 3), (6, 33, 2), (3, 2, 0)):
        rows = RNG.integers(-n, n, (r, 1))
        calls.append((floats(n, m), RNG.integers(-n, n, (r, m)), floats(r, m), rows))
    check_text(text, *calls, target=target)


def test_scatter_of_integers_along_the_last_axis():
    text = """main (int64[n, 4] x, int64[n, r] i, int64[n, r] u) => (int64[n, 4] y)
    { y = ScatterElements <axis = -1, reduction = "max"> (x, i, u) }"""
    shapes = ((2, 9), (5, 1))
    check_text(
        text,
        *((RNG.integers(-9, 9, (n, 4)), RNG.integers(-4, 4, s), RNG.integers(-9, 9, s)) for s in shapes for n in s[:1]),
    )


def test_reshape_whose_zeros_are_sizes():
    """Exporters write allowzero where no size is zero; the sizes are those of the operand all the same."""
    text = """main (float[n, m, 6] x) => (float[n, 3, k] y)
    {
      size = Shape <start = 0, end = 1> (x)
      three = Constant <value = int64[1] {3}> ()
      rest = Constant <value = int64[1] {-1}> ()
      sizes = Concat <axis = 0> (size, three, rest)
      y = Reshape <allowzero = 1> (x, sizes)
    }"""
    check_text(text, (floats(2, 5, 6),), (floats(4, 1, 6),))


def test_sequences_of_known_length():
    text = """main (float[n, 6] x, float[n, 6] z) =>
      (float[m, 6] a, float[2, n, 6] b, float[n, 2] c, int64 k, float[n, 6] e)
    {
      s = SequenceConstruct (x, z)
      one = Constant <value = int64 {1}> ()
      zero = Constant <value = int64 {0}> ()
      t = SequenceInsert (s, x, one)
      a = ConcatFromSequence <axis = 0> (t)
      b = ConcatFromSequence <axis = 0, new_axis = 1> (s)
      k = SequenceLength (t)
      two = Constant <value = int64 {2}> ()
      parts = SplitToSequence <axis = 1> (x, two)
      c = SequenceAt (parts, one)
      u = SequenceErase (t, zero)
      nothing = SequenceEmpty ()
      v = SequenceInsert (nothing, z)
      w = Identity (v)
      e = SequenceAt (w, zero)
    }"""
    check_text(text, (floats(2, 6), floats(2, 6)), (floats(5, 6), floats(5, 6)))


def test_pieces_without_their_dimension():
    text = """main (float[3, n] x) => (float[n] y)
    {
      parts = SplitToSequence <axis = 0, keepdims = 0> (x)
      last = Constant <value = int64 {-1}> ()
      y = SequenceAt (parts, last)
    }"""
    check_text(text, (floats(3, 4),))


def test_optionals():
    text = """main (float[n] x) => (float[n] y, bool here)
    { o = Optional (x) y = OptionalGetElement (o) here = OptionalHasElement (o) }"""
    check_text(text, (floats(4),))


def test_a_square_of_patches_is_found_by_its_root():
    """Exporters write the side as `patches ** 0.5`; what is repeated over the square again must have its size."""
    text = """main (float[b, 16, 4] x, float[1, 8] w) => (float[b, 16, 2] y)
    {
      at = Constant <value = int64 {1}> ()
      shape = Shape (x)
      patches = Gather (shape, at)
      number = Cast <to = 1> (patches)
      half = Constant <value = float {0.5}> ()
      root = Pow (number, half)
      side = Cast <to = 7> (root)
      zero = Constant <value = int64[1] {0}> ()
      four = Constant <value = int64[1] {4}> ()
      sides = Unsqueeze (side, zero)
      square = Concat <axis = 0> (zero, sides, sides, four)
      image = Reshape (x, square)
      rest = Constant <value = int64[3] {0, -1, 4}> ()
      rows = Reshape (image, rest)
      size = Shape (rows)
      one = Constant <value = int64[1] {1}> ()
      first = Slice (x, zero, one, one)
      same = Expand (first, size)
      both = Concat <axis = 2> (rows, same)
      eight = Constant <value = int64[2] {8, 1}> ()
      column = Reshape (w, eight)
      two = Concat <axis = 1> (column, column)
      y = MatMul (both, two)
    }"""
    check_text(text, *((floats(b, 16, 4), floats(1, 8)) for b in (1, 3)), opset=17)
