# ruff: noqa: E501 - lines of IR are as long as they are
"""One module of bytecode, whatever number of unit tiles the machine issues at a time, also with sizes known at run time."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest

import eyas

TEXT = """
#id = affine_map<(a, b) -> (a, b)>
#rows = affine_map<(a, b) -> (a)>
func.func @main(%x: tensor<?x?xf32>, %w: tensor<?x40xf32>) -> (tensor<?x40xf32>, tensor<?xf32>, tensor<?x?xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %x, %c0 : tensor<?x?xf32>
  %k = tensor.dim %x, %c1 : tensor<?x?xf32>
  %e = tensor.empty(%m) : tensor<?x40xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x40xf32>) -> tensor<?x40xf32>
  %r = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<?x40xf32>) outs(%init : tensor<?x40xf32>) -> tensor<?x40xf32>
  %e1 = tensor.empty(%m) : tensor<?xf32>
  %init1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [#id, #rows], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<?x?xf32>) outs(%init1 : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %q = arith.addf %a, %o : f32
    linalg.yield %q : f32
  } -> tensor<?xf32>
  %e2 = tensor.empty(%k, %m) : tensor<?x?xf32>
  %t = linalg.transpose ins(%x : tensor<?x?xf32>) outs(%e2 : tensor<?x?xf32>) permutation = [1, 0]
  return %r, %s, %t : tensor<?x40xf32>, tensor<?xf32>, tensor<?x?xf32>
}
"""
SIZES = [(1, 1), (3, 5), (17, 33), (9, 1030), (300, 7), (0, 4), (4, 0)]


@pytest.mark.parametrize("kernels", ["portable", ""])
@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_products_sums_and_transposes(rng, monkeypatch, width, kernels):
    monkeypatch.setenv("EYAS_VMVX_WIDTH", str(width))
    if kernels:
        monkeypatch.setenv("EYAS_VMVX_KERNELS", kernels)
    module = eyas.compile(TEXT, target="vmvx")
    assert {kernel["strategy"] for kernel in module.manifest["kernels"]} == {"contraction", "rows"}
    for rows, depth in SIZES:
        x, w = p.random_array(rng, (rows, depth), "f32"), p.random_array(rng, (depth, 40), "f32")
        product, total, turned = module(x, w)
        np.testing.assert_allclose(product, x @ w, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(total, x.sum(axis=1), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(turned, x.T)
