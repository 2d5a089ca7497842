"""Pools that round up and whose last window would begin behind the image, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text, text_model  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import UnsupportedOpError  # noqa: E402

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("opset", [11, 18, 22])
@pytest.mark.parametrize("pool", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    "sizes, options",
    [
        ((5,), "kernel_shape = [2], strides = [3], pads = [1, 1]"),
        ((4,), "kernel_shape = [2], strides = [5], pads = [1, 1]"),
        ((5, 6), "kernel_shape = [2, 3], strides = [3, 2], pads = [1, 0, 1, 0]"),
    ],
)
def test_last_windows_that_begin_in_the_padding(sizes, options, pool, opset):
    dims = ", ".join(map(str, sizes))
    text = f"""main (float[2, 3, {dims}] x) => (float[2, 3, {", ".join("ab"[: len(sizes)])}] z)
    {{ y = {pool} <{options}, ceil_mode = 1> (x) z = Exp (y) }}"""
    x = RNG.standard_normal((2, 3, *sizes)).astype(np.float32)
    check_text(text, (x,), opset=opset)
    if pool == "AveragePool" and len(sizes) == 1:
        check_text(text.replace("ceil_mode = 1", "ceil_mode = 1, count_include_pad = 1"), (x,), opset=opset)


def test_padding_that_counts_beside_such_a_window_is_refused():
    text = """main (float[2, 3, 5, 6] x) => (float[2, 3, a, b] y)
    {
      y = AveragePool <kernel_shape = [2, 3], strides = [3, 2], pads = [1, 0, 1, 0], ceil_mode = 1,
        count_include_pad = 1> (x)
    }"""
    with pytest.raises(UnsupportedOpError, match=r"\(AveragePool, .*behind the image.*; write the model with opset 22"):
        eyas.compile(text_model(text))
