"""Reads at computed positions: lanes that are neighbours are one load."""

from __future__ import annotations

import pytest
from torch_mlir import ir as mlir

from eyas.codegen.llvm_cpu.compile import select_strategy
from eyas.ir import make_context, parse_module
from eyas.targets import Target

TEXT = """
func.func @gather(%table: tensor<50x40xf32>, %which: tensor<{count}xi64>) -> tensor<{rows}x{columns}xf32> {{
  %e = tensor.empty() : tensor<{rows}x{columns}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(r, c) -> ({by})>, affine_map<(r, c) -> (r, c)>],
      iterator_types = ["parallel", "parallel"]}} ins(%which : tensor<{count}xi64>)
      outs(%e : tensor<{rows}x{columns}xf32>) {{
  ^bb0(%in: i64, %out: f32):
    %i = arith.index_cast %in : i64 to index
    %o = linalg.index {other} : index
    %x = tensor.extract %table[{place}] : tensor<50x40xf32>
    linalg.yield %x : f32
  }} -> tensor<{rows}x{columns}xf32>
  return %r : tensor<{rows}x{columns}xf32>
}}
"""


def lowered(**parts) -> str:
    module = parse_module(TEXT.format(**parts), make_context())
    with module.context, mlir.Location.unknown():
        strategy, _ = select_strategy(module.body.operations[0], Target.parse("llvm-cpu:x86_64:znver4"))
        result = mlir.Module.create()
        strategy.lower(module.body.operations[0], result)
        assert strategy.name == "rows"
        return str(result)


def test_rows_of_a_table_are_loaded():
    text = lowered(rows=7, columns=40, count=7, by="r", other=1, place="%i, %o")
    assert "vector.gather" not in text and "vector.load" in text
    clamps = [line for line in text.splitlines() if "arith.minsi" in line]
    assert clamps and not any("vector" in line for line in clamps)  # the row alone is clamped


def test_columns_of_a_table_are_gathered():
    text = lowered(rows=50, columns=30, count=30, by="c", other=0, place="%o, %i")
    assert "vector.gather" in text


@pytest.mark.parametrize("columns", [41, 64])
def test_a_loop_beyond_the_table_is_clamped(columns):
    text = lowered(rows=7, columns=columns, count=7, by="r", other=1, place="%i, %o")
    assert "vector.gather" in text
    assert any("arith.minsi" in line and "vector" in line for line in text.splitlines())
