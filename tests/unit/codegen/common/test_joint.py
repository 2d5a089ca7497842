"""Which reductions join their own shares: those whose results do not depend on where a sequence was cut."""

from __future__ import annotations

import pytest
from torch_mlir import ir as mlir

from eyas.codegen.common.analyze import analyze
from eyas.codegen.common.joint import Joint, joint_of
from eyas.ir import make_context, run_upstream

MAXIMUM = "%v = arith.maximumf %in, %old : f32"
LARGER = "%take = arith.cmpf ogt, %in, %old : f32"
FIRST_NAN = """
    %larger = arith.cmpf ogt, %in, %old : f32
    %known = arith.cmpf ord, %old, %old : f32
    %nan = arith.cmpf uno, %in, %in : f32
    %worse = arith.andi %nan, %known : i1
    %take = arith.ori %larger, %worse : i1"""
CHOSEN = "%v = arith.select %take, %in, %old : f32"
INDEX = "%i = arith.select %take, %n, %old_index : i64"


def joint(*lines: str) -> Joint | None:
    text = """
    func.func @f(%x: tensor<4x9xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
      %low = arith.constant 0xFF800000 : f32
      %zero = arith.constant 0 : i64
      %a = tensor.empty() : tensor<4xf32>
      %b = tensor.empty() : tensor<4xi64>
      %0 = linalg.fill ins(%low : f32) outs(%a : tensor<4xf32>) -> tensor<4xf32>
      %1 = linalg.fill ins(%zero : i64) outs(%b : tensor<4xi64>) -> tensor<4xi64>
      %2:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>,
          affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<4x9xf32>) outs(%0, %1 : tensor<4xf32>, tensor<4xi64>) {
      ^bb0(%in: f32, %old: f32, %old_index: i64):
        %d = linalg.index 1 : index
        %n = arith.index_cast %d : index to i64
        BODY
        linalg.yield %v, %i : f32, i64
      } -> (tensor<4xf32>, tensor<4xi64>)
      return %2#0, %2#1 : tensor<4xf32>, tensor<4xi64>
    }"""
    with make_context(), mlir.Location.unknown():
        module = mlir.Module.parse(text.replace("BODY", "\n".join(lines)))
        run_upstream(module, "linalg-generalize-named-ops")
        kernel = analyze(module.body.operations[0])
        return joint_of(kernel.nests[-1].statements[0])


@pytest.mark.parametrize(
    "body",
    [(MAXIMUM, FIRST_NAN, INDEX), (FIRST_NAN, CHOSEN, INDEX)],
    ids=["maximum", "chosen"],
)
def test_choices_join_their_shares_in_order(body):
    found = joint(*body)
    assert found is not None and found.in_order


def test_sums_are_joined_in_any_order():
    found = joint("%v = arith.addf %in, %old : f32", "%i = arith.maxsi %n, %old_index : i64")
    assert found is not None and not found.in_order


@pytest.mark.parametrize(
    "body",
    [
        # The maximum is NaN from then on, and the index that of the largest before: a later share knows nothing of it.
        (MAXIMUM, LARGER, INDEX),
        # Nothing is larger than NaN, if one comes first, and later ones do not count.
        (LARGER, CHOSEN, INDEX),
        # A share that sees nothing larger would bring back the initial index.
        ("%take = arith.cmpf oge, %in, %old : f32", CHOSEN, INDEX),
        # The last number that is not NaN.
        ("%take = arith.cmpf ord, %in, %in : f32", CHOSEN, INDEX),
        # The sum so far decides.
        (LARGER, "%v = arith.addf %in, %old : f32", INDEX),
    ],
    ids=["nan", "first nan", "last", "known", "sum"],
)
def test_others_do_not(body):
    assert joint(*body) is None
