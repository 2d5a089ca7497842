"""What a dispatch has to move, and its ops in words."""

from __future__ import annotations

import pytest

from eyas.codegen.common.flops import count_flops, flop_terms
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.summary import describe_ops
from eyas.codegen.common.traffic import count_bytes
from eyas.ir import make_context, parse_module

MATMUL = """
func.func private @f(%x: tensor<4x8xf32>, %w: tensor<8x3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x3xf32>) -> tensor<4x3xf32>
  %r = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x3xf32>) outs(%init : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}
"""
# 1000 rows of a table, of which 5 are read.
GATHER = """
#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>
func.func private @f(%table: tensor<1000x16xf16>, %rows: tensor<5xindex>) -> tensor<5x16xf16> {
  %e = tensor.empty() : tensor<5x16xf16>
  %r = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%rows : tensor<5xindex>) outs(%e : tensor<5x16xf16>) {
  ^bb0(%row: index, %o: f16):
    %column = linalg.index 1 : index
    %v = tensor.extract %table[%row, %column] : tensor<1000x16xf16>
    linalg.yield %v : f16
  } -> tensor<5x16xf16>
  return %r : tensor<5x16xf16>
}
"""
SLICE = """
func.func private @f(%x: tensor<100x8xi8>) -> tensor<2x8xi8> {
  %r = tensor.extract_slice %x[3, 0] [2, 8] [1, 1] : tensor<100x8xi8> to tensor<2x8xi8>
  return %r : tensor<2x8xi8>
}
"""
IN_PLACE = """
func.func private @f(%cache: tensor<100x8xf32>, %row: tensor<1x8xf32>) -> tensor<100x8xf32>
    attributes {flow.in_place = array<i64: 0, 0>} {
  %r = tensor.insert_slice %row into %cache[7, 0] [1, 8] [1, 1] : tensor<1x8xf32> into tensor<100x8xf32>
  return %r : tensor<100x8xf32>
}
"""


@pytest.fixture(scope="module")
def context():
    return make_context()


def function_of(context, text):
    module = parse_module(text, context)
    return module, module.body.operations[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MATMUL, 4 * (32 + 24 + 12)),
        (MATMUL.replace("4x", "?x"), None),
        (GATHER, 2 * 80 + 8 * 5 + 2 * 80),
        (GATHER.replace("1000x16", "2x16"), 2 * 32 + 8 * 5 + 2 * 80),
        (SLICE, 16 + 16),
        (IN_PLACE, 4 * 8 + 4 * 8),
        (IN_PLACE.replace("attributes {flow.in_place = array<i64: 0, 0>}", ""), 4 * (800 + 8 + 800)),
    ],
    ids=["matmul", "dynamic", "gather", "small-table", "slice", "in-place", "insert"],
)
def test_bytes(context, text, expected):
    if "?" in text:
        text = text.replace("%e = tensor.empty()", "%c = arith.constant 4 : index\n  %e = tensor.empty(%c)")
    module, function = function_of(context, text)
    assert count_bytes(function) == expected
    del module


def test_ops_in_words(context):
    module, function = function_of(context, MATMUL)
    assert describe_ops(function) == ["matmul 4x3xf32"]
    module, function = function_of(context, GATHER)
    assert describe_ops(function) == ["(index, extract) 5x16xf16"]
    del module


DYNAMIC = """
func.func private @f(%x: tensor<?x?xf32>, %w: tensor<?x3xf32>, %n: index, %k: index) -> tensor<?x3xf32>
    attributes {dim_args = array<i64: 0, 1, 1, 0>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %r = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<?x3xf32>) outs(%init : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}
"""


def test_flops_that_depend_on_the_call_are_products_of_push_constants(context):
    module, function = function_of(context, DYNAMIC)
    assert count_flops(function) is None and flop_terms(function) == [Size(2 * 3, (0, 1))]
    del module
    # The product's rows are known only from where its result is made.
    made = DYNAMIC.replace("ins(%x, %w :", "ins(%y, %w :").replace(
        "  %r =",
        "  %ey = tensor.empty(%n, %k) : tensor<?x?xf32>\n  %y = linalg.exp ins(%x : tensor<?x?xf32>)"
        " outs(%ey : tensor<?x?xf32>) -> tensor<?x?xf32>\n  %r =",
    )
    module, function = function_of(context, made)
    assert flop_terms(function) == [Size(6, (0, 1))]
    module, function = function_of(context, DYNAMIC.replace("attributes {dim_args = array<i64: 0, 1, 1, 0>}", ""))
    assert flop_terms(function) is None, "nobody says how long the sums are"
    module, function = function_of(context, MATMUL)
    assert flop_terms(function) == [Size(2 * 4 * 3 * 8)]
    del module
