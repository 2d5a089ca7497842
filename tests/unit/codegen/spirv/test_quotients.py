"""Quotients of `codegen/spirv/quotients.py`, computed by the CPU with inverses as inexact as a GPU may have them."""

from __future__ import annotations

import numpy as np
import pytest
from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

import eyas
from eyas.codegen.common.passes.lanes import splat
from eyas.codegen.spirv import quotients
from eyas.ir import make_context
from eyas.ir.walk import find_ops

COUNT = 1 << 14
TEXT = """
#map = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<{0}xf32>, %b: tensor<{0}xf32>) -> (tensor<{0}xf32>, tensor<{0}xf32>) {{
  %e = tensor.empty() : tensor<{0}xf32>
  %r:2 = linalg.generic {{indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel"]}}
      ins(%a, %b : tensor<{0}xf32>, tensor<{0}xf32>) outs(%e, %e : tensor<{0}xf32>, tensor<{0}xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32, %p: f32):
    %q = arith.divf %x, %y : f32
    %w = math.{1} %q : f32
    linalg.yield %q, %w : f32, f32
  }} -> (tensor<{0}xf32>, tensor<{0}xf32>)
  return %r#0, %r#1 : tensor<{0}xf32>, tensor<{0}xf32>
}}
"""


def draw(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Any bits, whole numbers, subnormal numbers and zeros, or the largest with infinities and NaN."""
    if kind == "whole":
        return rng.integers(-200, 200, COUNT).astype(np.float32)
    low, high = {"any": (0, 1 << 32), "tiny": (0, 1 << 24), "large": (0x7E000000, 0x7F800003)}[kind]
    bits = rng.integers(low, high, COUNT).astype(np.uint32)
    bits[:2] = 0, 0x7F800000
    return (bits | (rng.integers(0, 2, COUNT) << 31).astype(np.uint32)).view(np.float32)


@pytest.mark.parametrize("error", [-4e-7, -1e-7, 0.0, 3e-7, 4e-7])
def test_quotients_are_exact(error: float, monkeypatch, tmp_path) -> None:
    exact = quotients._inverse

    def inexact(x: mlir.Value) -> mlir.Value:
        return arith.mulf(exact(x), splat(x.type, mlir.FloatAttr.get(mlir.F32Type.get(), 1 + error)))

    monkeypatch.setattr(quotients, "_inverse", inexact)
    with make_context():
        module = mlir.Module.parse(TEXT.format(COUNT, "floor"))
        quotients.round_quotients(module)
        assert len(find_ops(module, "arith.divf")) == 1, "the estimate's"
        (tmp_path / "model.mlir").write_text(str(module))
    divide = eyas.compile(tmp_path / "model.mlir")
    rng = np.random.default_rng(0)
    kinds = ("any", "whole", "tiny", "large")
    for a, b in [(draw(first, rng), draw(second, rng)) for first in kinds for second in kinds]:
        found, whole = divide(a, b)
        with np.errstate(all="ignore"):
            want = a / b
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(np.signbit(found)[want == 0], np.signbit(want)[want == 0])
        np.testing.assert_array_equal(whole, np.floor(want))


def test_other_quotients_stay() -> None:
    with make_context():
        module = mlir.Module.parse(TEXT.format(COUNT, "exp"))
        before = str(module)
        quotients.round_quotients(module)
        assert str(module) == before
