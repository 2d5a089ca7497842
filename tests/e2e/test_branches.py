"""Branches on data, both of which are computed: values of the one that is not taken leave no trace."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import parser  # noqa: E402

import eyas  # noqa: E402

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
main (float[{m}, {k}] x, float[{k}, {n}] w, float limit) => (float[{m}, {n}] y, int64[{m}] best, bool[{m}, {n}] is_big)
{{
  sum = ReduceSum <keepdims = 0> (x)
  go = Greater (sum, limit)
  y, best, is_big = If (go) <
    then_branch = one () => (float[{m}, {n}] y1, int64[{m}] b1, bool[{m}, {n}] c1) {{
      p = MatMul (x, w)
      y1 = Log (p)
      b1 = ArgMax <axis = 1, keepdims = 0> (p)
      zero = Constant <value = float {{0.0}}> ()
      c1 = Greater (p, zero)
    }},
    else_branch = other () => (float[{m}, {n}] y2, int64[{m}] b2, bool[{m}, {n}] c2) {{
      q = MatMul (x, w)
      y2 = Neg (q)
      b2 = ArgMin <axis = 1, keepdims = 0> (q)
      one = Constant <value = float {{1.0}}> ()
      c2 = Less (q, one)
    }}>
}}"""


def expected(x: np.ndarray, w: np.ndarray, limit: np.ndarray):
    product = x @ w
    if x.sum() > limit:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(product), product.argmax(1), product > 0
    return -product, product.argmin(1), product < 1


@pytest.mark.parametrize("target", ["llvm-cpu", "llvm-cpu:x86_64:x86-64-v3", "vmvx"])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 7, 5), (3, 33, 19)])
def test_only_the_branch_that_is_taken_counts(target, m, k, n):
    module = eyas.compile(parser.parse_model(MODEL.format(m=m, k=k, n=n)), target=target)
    assert not any("if" in kernel["name"].split("_") for kernel in module.manifest["kernels"])
    random = np.random.default_rng(k)
    x, w = random.normal(size=(m, k)).astype(np.float32), random.normal(size=(k, n)).astype(np.float32)
    for limit in (-1e9, 1e9, np.nan):
        limit = np.float32(limit)
        for got, want in zip(module(x, w, limit), expected(x, w, limit), strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)
