"""Bodies of statements as tile instructions."""

from __future__ import annotations

import pytest

from eyas.codegen.vmvx.compile import BACKEND
from eyas.ir import make_context, parse_module
from eyas.module.vmvx_executable import disassemble, read_function
from eyas.targets import Target

CLAMP = """
#id = affine_map<(a) -> (a)>
func.func @f(%x: tensor<300xf32>) -> tensor<300xf32> {
  %c = arith.constant 6.0 : f32
  %e = tensor.empty() : tensor<300xf32>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%x : tensor<300xf32>) outs(%e : tensor<300xf32>) {
  ^bb0(%i: f32, %o: f32):
    %t = arith.cmpf COMPARE : f32
    %s = arith.select %t, CHOICE : f32
    linalg.yield %s : f32
  } -> tensor<300xf32>
  return %r : tensor<300xf32>
}
"""


@pytest.mark.parametrize(
    ("compare", "choice", "instruction"),
    [
        ("ogt, %i, %c", "%c, %i", "tfminimum_f32"),
        ("olt, %c, %i", "%c, %i", "tfminimum_f32"),
        ("ult, %c, %i", "%c, %i", "tfminnum_f32"),
        ("oge, %c, %i", "%c, %i", "tfmaximum_f32"),
        ("olt, %c, %i", "%i, %c", "tfmaxnum_f32"),
    ],
)
def test_a_comparison_and_a_choice_that_bound_a_number_are_one_instruction(compare, choice, instruction):
    """Whichever side of the comparison the bound is on; where the number is NaN, the same one is chosen."""
    module = parse_module(CLAMP.replace("COMPARE", compare).replace("CHOICE", choice), make_context())
    text = disassemble([read_function(BACKEND.compile(module, Target.parse("vmvx"), frozenset()).object)])
    assert instruction in text and "tpick" not in text and "tfcmp" not in text, text
