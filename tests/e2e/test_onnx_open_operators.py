"""ONNX operators whose rules compute with open sizes, against ONNX Runtime: one module for calls of several sizes."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text  # noqa: E402

import eyas  # noqa: E402

RNG = np.random.default_rng(13)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_resize():
    """Forms that the importer refuses where sizes are open, or rounds otherwise."""
    text = """main (float[n, 3, h, w] x, float[n, c, t] z) =>
      (float a, float b, float c, float d, float e, float f)
    {
      sizes = Constant <value = int64[4] {1, 3, 9, 4}> ()
      scales = Constant <value = float[4] {1.0, 1.0, 2.0, 3.0}> ()
      part = Constant <value = float[8] {0.0, 0.0, 0.2, 0.1, 1.0, 1.0, 1.1, 0.8}> ()
      longer = Constant <value = float[3] {1.0, 1.0, 1.5}> ()
      a = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "round_prefer_ceil"> (x, , , sizes)
      b = Resize <coordinate_transformation_mode = "align_corners"> (x, , , sizes)
      c = Resize <coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "floor"> (x, , scales)
      d = Resize <coordinate_transformation_mode = "align_corners", mode = "cubic"> (x, , scales)
      e = Resize <coordinate_transformation_mode = "tf_crop_and_resize", mode = "linear", extrapolation_value = 2.0>
        (x, part, , sizes)
      f = Resize <mode = "linear"> (z, , longer)
    }"""
    check_text(text, (floats(1, 3, 5, 7), floats(1, 2, 6)), (floats(1, 3, 8, 2), floats(1, 4, 9)), atol=1e-5)


def test_moves_and_normalisations():
    text = """main (float[n, c, h] x, float[p, q, r] like) => (float a, float b, float d, float e, float f, float g)
    {
      start = Constant <value = int64[2] {100, -1}> ()
      end = Constant <value = int64[2] {0, -9223372036854775807}> ()
      axes = Constant <value = int64[2] {2, -2}> ()
      steps = Constant <value = int64[2] {-2, -1}> ()
      a = Slice (x, start, end, axes, steps)
      around = Constant <value = int64[6] {0, 1, 3, 0, 0, 2}> ()
      b = Pad <mode = "wrap"> (x, around)
      by_one = Constant <value = int64[6] {0, 0, 1, 0, 0, -1}> ()
      g = Pad <mode = "edge"> (x, by_one)
      over = Constant <value = int64[2] {0, 2}> ()
      mean = ReduceMean (x, over)
      shape = Shape (like)
      d = Expand (mean, shape)
      scale = Constant <value = float[3] {1.0, 2.0, -3.0}> ()
      e = InstanceNormalization (x, scale, scale)
      first = Constant <value = int64[1] {0}> ()
      image = Unsqueeze (x, first)
      f = LRN <size = 3, alpha = 0.1, bias = 2.0> (image)
    }"""
    calls = [(floats(2, 3, 5), floats(4, 3, 6)), (floats(1, 3, 8), floats(1, 3, 1))]
    check_text(text, *calls, opset=19, atol=1e-5)


@pytest.mark.parametrize("dims", ["n, c, h, w", "n, 3, h, w"])
def test_expand_of_open_ones(dims):
    """Which sizes are 1 is known only when the model is called."""
    text = f"main (float[{dims}] x, int64[4] s) => (float y) {{ y = Expand (x, s) }}"
    check_text(text, (floats(1, 3, 1, 2), [4, 3, 5, 2]), (floats(2, 3, 3, 1), [1, 1, 3, 1]))


def test_a_state_is_expanded_to_an_image():
    """Of which some sizes are known: the first state of a recurrent network is one number."""
    text = """main (float[n, 3, h, w] x, float[k, c, p, q] state, float[k, 1, p, q] part) => (float a, float b)
    {
      shape = Shape (x)
      full = Expand (state, shape)
      a = Concat <axis = 1> (x, full)
      also = Expand (part, shape)
      b = Concat <axis = -3> (also, x)
    }"""
    x = floats(2, 3, 5, 6)
    check_text(text, (x, floats(1, 1, 1, 1), floats(2, 1, 1, 6)), (x, floats(2, 3, 5, 6), floats(1, 1, 5, 1)))


def test_sampling():
    grid = """main (float[n, c, h, w] x, float[n, p, q, 2] g, float[r, 4] b, int64[r] i) => (float a, float d, float e)
    {
      a = GridSample <mode = "linear", padding_mode = "reflection"> (x, g)
      d = GridSample <mode = "cubic", align_corners = 1> (x, g)
      e = RoiAlign <output_height = 3, output_width = 2, sampling_ratio = 2, spatial_scale = 0.5> (x, b, i)
    }"""
    calls = []
    for n, h, w, p, r in ((1, 8, 9, 4, 2), (2, 6, 10, 7, 3)):
        places = RNG.uniform(-1.3, 1.3, (n, p, 5, 2)).astype(np.float32)
        corners = RNG.uniform(0, 6, (r, 2))
        boxes = np.concatenate([corners, corners + RNG.uniform(1, 9, (r, 2))], 1).astype(np.float32)
        calls.append((floats(n, 3, h, w), places, boxes, RNG.integers(0, n, r)))
    check_text(grid, *calls, opset=20, atol=1e-4)


def test_choosing():
    text = """main (float[n, k, 4] boxes, float[n, c, k] scores, float[m] x) =>
      (int64 chosen, float y, int64 first, int64 which, int64 count)
    {
      most = Constant <value = int64[1] {5}> ()
      overlap = Constant <value = float[1] {0.4}> ()
      least = Constant <value = float[1] {0.2}> ()
      chosen = NonMaxSuppression (boxes, scores, most, overlap, least)
      y, first, which, count = Unique <sorted = 0> (x)
    }"""
    calls = []
    for n, c, k, m in ((1, 2, 20, 9), (2, 3, 31, 1), (1, 1, 1, 30)):
        corners = RNG.uniform(0, 30, (n, k, 2))
        boxes = np.concatenate([corners, corners + RNG.uniform(5, 20, (n, k, 2))], 2).astype(np.float32)
        calls.append((boxes, RNG.uniform(0, 1, (n, c, k)).astype(np.float32), np.round(floats(m))))
    check_text(text, *calls)


def test_spectra():
    text = """main (float[n, samples] x, float[n, m, 16, 1] rows) => (float a, float b)
    {
      step = Constant <value = int64 {8}> ()
      size = Constant <value = int64 {16}> ()
      last = Constant <value = int64[1] {2}> ()
      window = HannWindow (size)
      signal = Unsqueeze (x, last)
      a = STFT <onesided = 1> (signal, step, window)
      b = DFT <axis = 2, onesided = 1> (rows)
    }"""
    check_text(text, (floats(1, 64), floats(1, 3, 16, 1)), (floats(2, 100), floats(2, 1, 16, 1)), opset=17, atol=1e-4)


def test_pools():
    """Padding that counts, but not beyond it; places of maxima in the whole tensor; means of integers."""
    text = """main (float[n, 2, h, w] x, int32[k, m] i) => (float a, float b, int64 c, int32 d, float e)
    {
      e = AveragePool <kernel_shape = [3, 2], strides = [3, 3], pads = [1, 0, 1, 1], ceil_mode = 1,
        count_include_pad = 1> (x)
      a = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1,
        count_include_pad = 1> (x)
      b, c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
      d = ReduceMean <axes = [1], keepdims = 0> (i)
    }"""
    calls = [
        (floats(n, 2, h, w), RNG.integers(-99, 99, (n, h), np.int32))
        for n, h, w in ((1, 8, 9), (2, 7, 10), (1, 5, 3), (1, 2, 2))
    ]
    check_text(text, *calls, opset=13)


@pytest.mark.parametrize("size", [4, 7, 9])
@pytest.mark.parametrize("counted", [0, 1])
def test_averages_of_windows_that_end_outside(size, counted):
    """By as much as two elements: upstream puts one of them before the image."""
    text = f"""main (float[2, 3, {size}, {size + 1}] x) => (float[2, 3, p, q] a, float[2, 3, r, s] b)
    {{
      a = AveragePool <kernel_shape = [3, 3], strides = [3, 3], ceil_mode = 1, count_include_pad = {counted}> (x)
      b = AveragePool <kernel_shape = [4, 3], strides = [3, 2], pads = [0, 0, 0, 1], ceil_mode = 1,
        count_include_pad = {counted}> (x)
    }}"""
    check_text(text, (floats(2, 3, size, size + 1),), opset=13)


def test_so_many_as_data_says():
    text = """main (float[n, m] x, int64[1] k) => (float v, int64 i)
    {
      most = Constant <value = int64[1] {4}> ()
      some = Min (k, most)
      v, i = TopK <axis = 0> (x, some)
    }"""
    check_text(text, (floats(6, 3), [2]), (floats(5, 2), [9]))


def test_what_ranks_and_letters_say():
    """How long the positions of a scatter are, and the result of an equation, where neither is written."""
    text = """main (float[n, m] x, int64[r, k] i, float[r] u, float[n, a, b] y, float[n, b, c] z) => (float p, float q)
    {
      p = ScatterND <reduction = "add"> (x, i, u)
      q = Einsum <equation = "nab, nbc"> (y, z)
    }"""
    calls = []
    for n, m, r in ((3, 5, 4), (2, 2, 9)):
        places = np.stack([RNG.integers(-n, n, r), RNG.integers(-m, m, r)], 1)
        calls.append((floats(n, m), places, floats(r), floats(n, 2, m), floats(n, m, 3)))
    check_text(text, *calls)


def test_results_that_nobody_reads():
    """An optimiser names the mean and the deviation of a normalisation, which only training needs."""
    text = """main (float[n, 8] x, float[8] g) => (float y, float sum)
    { y, mean, deviation, sum = com.microsoft.SkipLayerNormalization (x, x, g) }"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> {text}')
    x, g = floats(3, 8), floats(8)
    expected = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x, "g": g})
    for got, want in zip(eyas.compile(model)(x, g), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_last_indices_and_crops():
    text = """main (float[n, m] x) => (int64 a, float b, float c)
    {
      a = ArgMax <axis = 1, select_last_index = 1> (x)
      size = Constant <value = int64[2] {5, 6}> ()
      b = CenterCropPad (x, size)
      c = Softsign (x)
    }"""
    check_text(text, (np.round(floats(3, 8)),), (np.round(floats(8, 3)),))


def test_pads_that_the_call_brings_may_not_cut() -> None:
    text = '<ir_version: 9, opset_import: ["": 18]> g (float[N, 8] x, int64[4] p) => (float[A, B] y) { y = Pad(x, p) }'
    module = eyas.compile(onnx.parser.parse_model(text))
    x = np.random.default_rng(0).standard_normal((5, 8), np.float32)
    np.testing.assert_array_equal(module(x, np.array([0, 1, 2, 0])), np.pad(x, ((0, 2), (1, 0))))
    with pytest.raises(eyas.EyasError, match="a padding at node 'Pad_0' is below 0"):
        module(x, np.array([1, -2, 0, 3]))


def test_powers_of_integers_are_exact_and_may_end_a_range():
    """As doubles they would lose bits, and a size that is one would have no lowering."""
    text = """main (int64[n] x, float[h, w] y, int32 d) => (int64[n] a, int32 b, int64[k] c)
    {
      two = Constant <value = int64 {2}> ()
      three = Constant <value = int64 {3}> ()
      a = Pow (x, two)
      b = Pow (d, three)
      size = Shape <start = 0, end = 1> (y)
      square = Pow (size, two)
      long = Cast <to = 7> (d)
      many = Mul (square, long)
      zero = Constant <value = int64 {0}> ()
      scalar = Squeeze (many)
      one = Constant <value = int64 {1}> ()
      c = Range (zero, scalar, one)
    }"""
    large = np.array([3037000493, -3037000493, 94906267], np.int64)
    check_text(
        text, (large, np.zeros((3, 2), np.float32), np.int32(4)), (large[:1], np.zeros((1, 2), np.float32), np.int32(7))
    )


def test_joining_nothing():
    """Operands that are empty along the axis, of which the other sizes are open."""
    text = """main (float[n, 4, m] x, float[n, 0, m] none) => (float[n, 4, m] a, float[n, 0, m] b, float[n, m, 0] c)
    {
      a = Concat <axis = 1> (none, x, none)
      b = Concat <axis = -2> (none, none)
      turned = Transpose <perm = [0, 2, 1]> (none)
      c = Concat <axis = 2> (turned, turned, turned)
    }"""
    check_text(text, *((floats(n, 4, m), floats(n, 0, m)) for n, m in ((2, 3), (1, 1), (5, 7))))
