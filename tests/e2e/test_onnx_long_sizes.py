"""Sizes that are made of sizes, many times over: each way between two of them doubles the ways through all of them, and
nothing in the compiler may walk them all."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from tests.tools.onnx_texts import check_text  # noqa: E402

RNG = np.random.default_rng(6)

_STEP = """
      half{i} = Div (size{i}, two)
      rest{i} = Sub (size{i}, half{i})
      least{i} = Max (half{i}, one)
      sum{i} = Add (least{i}, rest{i})
      size{n} = Min (sum{i}, most)"""
_PICTURE = """
      shape{n} = Concat <axis = 0> (one, size{n})
      first{n} = Slice (x{i}, zero, one, one)
      wide{n} = Expand (first{n}, shape{n})
      calm{n} = Relu (wide{n})
      both{n} = Concat <axis = 1> (calm{n}, x{i})
      x{n} = Slice (both{n}, zero, size{n}, one)"""


def _steps(count: int, *texts: str) -> str:
    return "".join(text.format(i=i, n=i + 1) for i in range(count) for text in texts)


def _model(read: str, inputs: str, steps: str, last: str) -> str:
    constants = "".join(
        f"\n      {name} = Constant <value = int64[1] {{{value}}}> ()"
        for name, value in (("zero", 0), ("one", 1), ("two", 2), ("most", 40))
    )
    return f"main ({inputs}) => (float[1, m] y)\n    {{{constants}\n      {read}{steps}\n      {last}\n    }}"


@pytest.mark.parametrize("of_data", [False, True])
def test_sizes_made_of_sizes(of_data):
    read = "size0 = Cast <to = 7> (r)" if of_data else "size0 = Shape <start = 1, end = 2> (x)"
    inputs = "float[1, n] x, float[1] r" if of_data else "float[1, n] x"
    last = "shape = Concat <axis = 0> (one, size60) first = Slice (x, zero, one, one) y = Expand (first, shape)"
    numbers = [(np.array([size], np.float32),) if of_data else () for size in (7.3, 1, 52)]
    calls = [(RNG.standard_normal((1, 9)).astype(np.float32), *number) for number in numbers]
    check_text(_model(read, inputs, _steps(60, _STEP), last), *calls)


def test_pictures_of_sizes_made_of_sizes():
    steps = _steps(8, _STEP, _PICTURE)
    text = _model("size0 = Shape <start = 1, end = 2> (x) x0 = Identity (x)", "float[1, n] x", steps, "y = Relu (x8)")
    check_text(text, *((RNG.standard_normal((1, size)).astype(np.float32),) for size in (9, 3, 41)))
