"""Padding that depends on sizes which are known only when the model runs, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text  # noqa: E402

RANDOM = np.random.default_rng(3)
SIZES = [(height, width) for height in (3, 4, 7) for width in (5, 6, 8)]


def check(text: str, *calls) -> None:
    check_text(text, *calls, opset=17, atol=1e-5)


def images() -> list[np.ndarray]:
    return [RANDOM.normal(size=(2, 3, *size)).astype(np.float32) for size in SIZES]


@pytest.mark.parametrize("side", ["SAME_UPPER", "SAME_LOWER"])
def test_convolutions_with_strides(side):
    text = f"""main (float[n, 3, h, w] x, float[4, 3, 3, 5] k) => (float[n, 4, a, b] y)
    {{ y = Conv <auto_pad = "{side}", strides = [2, 3], kernel_shape = [3, 5]> (x, k) }}"""
    kernel = RANDOM.normal(size=(4, 3, 3, 5)).astype(np.float32)
    check(text, *((image, kernel) for image in images()))


@pytest.mark.parametrize("side", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool", "AveragePool, count_include_pad = 1", "LpPool"])
def test_pools_with_strides(pool, side):
    name, _, more = pool.partition(",")
    text = f"""main (float[n, 3, h, w] x) => (float[n, 3, a, b] y)
    {{ y = {name} <auto_pad = "{side}", strides = [2, 3], kernel_shape = [3, 4]{"," + more if more else ""}> (x) }}"""
    check(text, *((image,) for image in images()))


def test_means_that_are_padded_on_one_side_more():
    text = """main (float[n, 3, h, w] x) => (float[n, 3, a, b] y)
    { y = AveragePool <pads = [0, 1, 1, 0], strides = [2, 2], kernel_shape = [3, 3]> (x) }"""
    check(text, *((image,) for image in images()))


def test_bytes_are_padded_with_their_zero_point():
    text = """main (uint8[n, 3, h, w] x, uint8[2, 3, 3, 3] k, uint8 zero) => (int32[n, 2, a, b] y)
    { y = ConvInteger <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, k, zero) }"""
    draw = lambda *shape: RANDOM.integers(0, 256, shape).astype(np.uint8)  # noqa: E731
    kernel = draw(2, 3, 3, 3)
    check(text, *((draw(1, 3, *size), kernel, np.array(7, np.uint8)) for size in SIZES))


def test_inside_of_a_branch():
    text = """main (float[n, 3, h, w] x, float[4, 3, 3, 3] k, bool go) => (float[n, 4, a, b] y)
    {
      y = If (go) <
        then_branch = one () => (float[n, 4, a, b] p) { p = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, k) },
        else_branch = other () => (float[n, 4, a, b] q) {
          m = Neg (x) q = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (m, k)
        }
      >
    }"""
    kernel = RANDOM.normal(size=(4, 3, 3, 3)).astype(np.float32)
    check(text, *((image, kernel, np.array(go)) for image in images()[:4] for go in (True, False)))
