"""Programs made from programs: more results, and pieces."""

from __future__ import annotations

import numpy as np
import pytest

from eyas.frontends import import_model
from eyas.frontends.mlir.importer import import_text
from eyas.verification.build import Build
from eyas.verification.cut import add_results, cut, main_block
from eyas.verification.mlir_source import MlirSource

BUILD = Build(workers=1, threads=1)
WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
# Larger than what stays a value in the IR, so that it is a weight.
TABLE = np.arange(600, dtype=np.float32).reshape(2, 300)
TEXT = f"""
func.func @main(%x: tensor<?x2xf32>) -> tensor<?x300xf32> {{
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %w = arith.constant dense<{TABLE.tolist()}> : tensor<2x300xf32>
  %y = arith.addf %x, %x : tensor<?x2xf32>
  %n = tensor.dim %x, %c0 : tensor<?x2xf32>
  %e = tensor.empty(%n) : tensor<?x300xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x300xf32>) -> tensor<?x300xf32>
  %m = linalg.matmul ins(%y, %w : tensor<?x2xf32>, tensor<2x300xf32>) outs(%f : tensor<?x300xf32>) -> tensor<?x300xf32>
  %r = arith.negf %m : tensor<?x300xf32>
  return %r : tensor<?x300xf32>
}}
"""
X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


@pytest.fixture(scope="module")
def program():
    return import_model(TEXT)


def test_values_become_results(program):
    def choose(module):
        return [op.results[0] for op in main_block(module).operations if op.operation.name == "linalg.matmul"]

    more = add_results(program, choose)
    negated, product = BUILD.call(more, [X])
    np.testing.assert_allclose(product, 2 * X @ TABLE, rtol=1e-6)
    np.testing.assert_allclose(negated, -product)
    assert len(program.signature.results) == 1, "the program itself is not changed"


@pytest.mark.parametrize("inline", [False, True])
def test_a_piece_runs_by_itself(program, inline):
    tapped = MlirSource(program, BUILD).program(["arith.addf_0", "linalg.matmul_1"])
    where = tapped.positions
    half = np.full((4, 2), 0.5, np.float32)
    piece = cut(
        tapped.program, [where["linalg.matmul_1"]], {where["arith.addf_0"]: half}, [np.ones((4, 2), "f")], inline
    )
    assert piece is not None
    # The size of the product comes from the argument, which is therefore an input as well.
    assert len(piece.inputs) == (2 if inline else 3)
    assert "arith.addf" not in piece.text and "arith.negf" not in piece.text
    (value,) = BUILD.call(import_text(piece.text, "piece"), piece.inputs)
    np.testing.assert_allclose(value, half @ TABLE, rtol=1e-6)


def test_nothing_is_left_to_cut(program):
    tapped = MlirSource(program, BUILD).program(["arith.addf_0"])
    where = tapped.positions["arith.addf_0"]
    assert cut(tapped.program, [where], {where: X}, [X], False) is None


def test_layers_know_what_they_read(program):
    source = MlirSource(program, BUILD)
    assert [layer.name for layer in source.layers] == ["arith.addf_0", "linalg.matmul_1", "arith.negf_2"]
    assert [layer.reads for layer in source.layers] == [(), ("arith.addf_0",), ("linalg.matmul_1",)]
    assert source.results == ("arith.negf_2",) and source.layers[0].place == "line 6"
