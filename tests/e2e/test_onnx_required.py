"""Calls that ONNX Runtime refuses, because sizes that a file leaves open do not fit an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text, text_model  # noqa: E402

from eyas.errors import CallError  # noqa: E402


def floats(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def places(*values: int) -> np.ndarray:
    return ints(*values).reshape(-1, 1)


SCATTER = "main (float[n, m] x, int64[k, 1] at, float[u, w] v) => (float[n, m] y) { y = ScatterND (x, at, v) }"
SCATTER_ELEMENTS = "main (float[n] x, int64[k] at, float[u] v) => (float[n] y) { y = ScatterElements (x, at, v) }"
ROWS = "main (float[n, m] x, int64[k, l] at) => (float[k, l] y) { y = GatherElements <axis = 1> (x, at) }"
LARGEST = "main (float[n] x, int64[1] k) => (float[m] v, int64[m] at) { v, at = TopK (x, k) }"
EXPAND = "main (float[n] x, int64[2] s) => (float[a, b] y) { y = Expand (x, s) }"
EXPAND_LIKE = "main (float[n] x, float[a, b] s) => (float[a, b] y) { shape = Shape (s) y = Expand (x, shape) }"
SPLIT = "main (float[n] x, int64[2] s) => (float[a] y, float[b] z) { y, z = Split (x, s) }"
REVERSE = """main (float[a, b] x, int64[k] n) => (float[a, b] y)
    { y = ReverseSequence <time_axis = 1, batch_axis = 0> (x, n) }"""


@pytest.mark.parametrize("target", ["llvm-cpu", "vmvx"])
@pytest.mark.parametrize(
    "text, right, wrong, message",
    [
        (
            SCATTER,
            [(floats(5, 3), places(0, 3), floats(2, 3)), (floats(2, 4), places(1), floats(1, 4))],
            [(floats(5, 3), places(0, 3, 1), floats(2, 3)), (floats(5, 3), places(0, 3), floats(3, 3))],
            "size 0 of 'v' must be equal to size 0 of 'at'",
        ),
        (
            SCATTER,
            [(floats(3, 3), places(2), floats(1, 3))],
            [(floats(5, 4), places(0, 3), floats(2, 3))],
            "size 1 of 'v' must be equal to size 1 of 'x'",
        ),
        (
            SCATTER_ELEMENTS,
            [(floats(5), ints(0, 4), floats(2)), (floats(2), ints(1), floats(1))],
            [(floats(5), ints(0, 4, 1), floats(2))],
            "size 0 of 'v' must be equal to size 0 of 'at'",
        ),
        (
            ROWS,
            [(floats(3, 4), ints(1, 3, 2, 0, 0, 1).reshape(3, 2)), (floats(3, 2), ints(1, 0, 1).reshape(1, 3))],
            [(floats(2, 4), ints(1, 0, 1).reshape(3, 1))],
            "size 0 of 'at' must be no more than size 0 of 'x'",
        ),
        (
            LARGEST,
            [(floats(5), ints(2)), (floats(3), ints(3))],
            [(floats(5), ints(6))],
            "element 0 of 'k' must be no more than size 0 of 'x'",
        ),
        (
            EXPAND,
            [(floats(3), ints(2, 3)), (floats(1), ints(2, 5)), (floats(4), ints(3, 1))],
            [(floats(5), ints(2, 3))],
            "size 0 of 'x' must be 1 or equal to element 1 of 's'",
        ),
        (
            EXPAND_LIKE,
            [(floats(3), floats(2, 3)), (floats(1), floats(2, 5)), (floats(4), floats(3, 1))],
            [(floats(5), floats(2, 3))],
            "size 0 of 'x' must be 1 or equal to element 1 of 'shape'",
        ),
        (
            SPLIT,
            [(floats(5), ints(2, 3)), (floats(4), ints(0, 4))],
            [(floats(6), ints(2, 3)), (floats(4), ints(2, 3))],
            "element 0 of 's' and element 1 of 's' must be in sum size 0 of 'x'",
        ),
        (
            REVERSE,
            [(floats(3, 4), ints(1, 4, 2)), (floats(1, 5), ints(3))],
            [(floats(3, 4), ints(1, 4))],
            "size 0 of 'n' must be equal to size 0 of 'x'",
        ),
    ],
)
def test_what_operators_need(text: str, right: list[Any], wrong: list[Any], message: str, target: str):
    module = check_text(text, *right, target=target)
    session = runtime.InferenceSession(text_model(text).SerializeToString())
    for call in wrong:
        with pytest.raises(Exception, match="Non-zero status"):
            session.run(None, {value.name: one for value, one in zip(session.get_inputs(), call, strict=True)})
        with pytest.raises(CallError, match=message):
            module(*call)
