"""Everything optional can be left out, one by one and all together, and the numbers stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import eyas
from eyas.pipelines.phases import pipeline, switches
from eyas.pipelines.request import Options, Phase
from eyas.targets import Target

OPTIONAL = switches(Target.host())

# A product, a rectifier, a softmax over rows: a program in which every strategy, fusion and exp have a part.
TEXT = """
!t = tensor<19x21xf32>
#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>
func.func @main(%x: tensor<19x33xf32>, %w: tensor<33x21xf32>) -> !t {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !t
  %r = tensor.empty() : tensor<19xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : !t) -> !t
  %rows = linalg.fill ins(%zero : f32) outs(%r : tensor<19xf32>) -> tensor<19xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<19x33xf32>, tensor<33x21xf32>) outs(%init : !t) -> !t
  %1 = math.exp %0 : !t
  %2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%1 : !t) outs(%rows : tensor<19xf32>) {
  ^bb0(%i: f32, %o: f32):
    %s = arith.addf %i, %o : f32
    linalg.yield %s : f32
  } -> tensor<19xf32>
  %3 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%1, %2 : !t, tensor<19xf32>) outs(%e : !t) {
  ^bb0(%i: f32, %s: f32, %o: f32):
    %d = arith.divf %i, %s : f32
    linalg.yield %d : f32
  } -> !t
  return %3 : !t
}
"""


@pytest.mark.parametrize(
    "off", [*((name,) for name in OPTIONAL), OPTIONAL], ids=lambda off: off[0] if len(off) == 1 else "all"
)
def test_the_result_does_not_depend_on_a_switch(off):
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((19, 33), (33, 21)))
    exponential = np.exp((x @ w).astype(np.float64))
    expected = exponential / exponential.sum(1, keepdims=True)
    module = eyas.compile(TEXT, disable=off)
    np.testing.assert_allclose(module(x, w), expected, rtol=2e-5, atol=1e-7)
    assert tuple(module.manifest["provenance"]["disabled"]) == off


def test_each_op_alone_and_no_code_of_ours():
    kernels = eyas.compile(TEXT, disable=OPTIONAL).manifest["kernels"]
    assert len(kernels) == 4 and {kernel["strategy"] for kernel in kernels} == {"loops"}
    assert len(eyas.compile(TEXT).manifest["kernels"]) < 4


LOWERING = {
    "verify-input-contract",
    "convert-float-sizes",
    "tie-shapes",
    "check-shapes",
    "convert-reshapes-to-flow",
    "outline-dispatches",
    "convert-flow-to-stream",
    "convert-stream-to-hal",
    "select-strategies",
    "note-work",
    "verify-schedules",
    "compile-executables",
    "convert-hal-to-vm",
}
"""Steps without which there is no program. Whatever else a phase has must have a switch, so that it can be blamed."""


def test_every_pass_is_a_step_of_the_lowering_or_has_a_switch():
    names = [step.name for phase in Phase for step in pipeline(phase, Options()).steps if hasattr(step, "name")]
    assert not set(names) - LOWERING - set(OPTIONAL)
    # Blame goes to the last of several cures, so the order of the switches must be that of the pipeline.
    ordered = [name for name in dict.fromkeys(names) if name in OPTIONAL]
    assert ordered == [name for name in OPTIONAL if name in names]
