"""A call from Python that adds two arrays of four elements: under 10 us."""

from __future__ import annotations

import timeit
from collections.abc import Iterator

import numpy as np
import torch

import eyas
from benchmarks.report import Row

BAR_US = 10.0
ADD = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def rows() -> Iterator[Row]:
    module = eyas.compile(ADD)
    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    tx, ty = torch.ones(4), torch.ones(4)
    numpy_us = _microseconds(lambda: x + y)
    torch_us = _microseconds(lambda: tx + ty)
    ours, ours_torch = _microseconds(lambda: module(x, y)), _microseconds(lambda: module(tx, ty))
    yield Row("4 + 4 elements, NumPy", ours, "us", BAR_US, f"NumPy's own add, {numpy_us:.2f} us", ours / numpy_us)
    yield Row(
        "4 + 4 elements, torch", ours_torch, "us", BAR_US, f"torch's own add, {torch_us:.2f} us", ours_torch / torch_us
    )


def _microseconds(call) -> float:
    call()
    return min(timeit.repeat(call, number=5000, repeat=7)) / 5000 * 1e6
