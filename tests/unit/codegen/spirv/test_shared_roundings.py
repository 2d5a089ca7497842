"""Roundings of `codegen/spirv/shared_roundings.py`, computed by the CPU for numbers on every edge of f16."""

from __future__ import annotations

import numpy as np
from torch_mlir import ir as mlir

import eyas
from eyas.codegen.spirv.shared_roundings import round_what_is_stored
from eyas.ir import make_context
from eyas.ir.walk import find_ops

TEXT = """
#map = affine_map<(d0) -> (d0)>
func.func @main(%a: tensor<?xf32>, %n: tensor<?x{result}>) -> (tensor<?x{result}>, tensor<?xf32>) {{
  %r:2 = linalg.generic {{indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]}}
      ins(%a : tensor<?xf32>) outs(%n, %a : tensor<?x{result}>, tensor<?xf32>) {{
  ^bb0(%x: f32, %o: {result}, %p: f32):
    %h = arith.truncf %x : f32 to f16
    %w = arith.extf %h : f16 to f32
    linalg.yield %{stored}, %w : {result}, f32
  }} -> (tensor<?x{result}>, tensor<?xf32>)
  return %r#0, %r#1 : tensor<?x{result}>, tensor<?xf32>
}}
"""


def edges() -> np.ndarray:
    """Every f16, the ties between them, and their neighbours in f32."""
    halves = np.arange(1 << 16).astype(np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        ties = (halves[:-1] + halves[1:]) / 2
        middle = np.concatenate([halves, ties, np.float32([65519.996, 65520, 1e30, -1e30, 1e-30])])
        return np.concatenate([middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(0))])


def test_stored_numbers_are_the_rounded_ones(tmp_path) -> None:
    with make_context():
        module = mlir.Module.parse(TEXT.format(result="f16", stored="h"))
        round_what_is_stored(module)
        assert not find_ops(module, "arith.extf")
        (tmp_path / "model.mlir").write_text(str(module))
    x = edges()
    stored, used = eyas.compile(tmp_path / "model.mlir")(x, np.zeros(x.shape, np.float16))
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    np.testing.assert_array_equal(stored, want)
    np.testing.assert_array_equal(used, want.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(used), np.signbit(want))


def test_what_stays_in_registers_is_converted() -> None:
    with make_context():
        module = mlir.Module.parse(TEXT.format(result="f32", stored="w"))
        round_what_is_stored(module)
        assert len(find_ops(module, "arith.extf")) == 1
