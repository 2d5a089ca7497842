# ruff: noqa: E501 - lines of IR are as long as they are
"""Loops over steps as kernels: which nests a step has, which rows it reads and writes, and what is refused."""

from __future__ import annotations

import pytest

from eyas.codegen.common.analysis import Analysis, generalize
from eyas.codegen.common.analyze import analyze
from eyas.codegen.common.flops import count_flops
from eyas.codegen.common.kernel import Kernel, Unsupported
from eyas.codegen.common.schedule import Block
from eyas.codegen.common.sizes import Size
from eyas.ir import make_context, mlir, parse_module

# A layer without an activation, from the last step to the first; {next} is what the state becomes.
LAYER = """
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func private @f(%xs: tensor<5x3x8xf32>, %w: tensor<8x8xf32>, %h0: tensor<3x8xf32>, %n: index) -> (tensor<5x3x8xf32>, tensor<3x8xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x8xf32>
  %ys = tensor.empty() : tensor<5x3x8xf32>
  %r:2 = scf.for %t = {lower} to {upper} step %c1 iter_args(%h = %h0, %acc = %ys) -> (tensor<3x8xf32>, tensor<5x3x8xf32>) {{
    %at = arith.subi %c4, %t : index
    %x = tensor.extract_slice %xs[%at, 0, 0] [1, 3, 8] [1, 1, 1] : tensor<5x3x8xf32> to tensor<3x8xf32>
    %start = linalg.fill ins(%zero : f32) outs(%e : tensor<3x8xf32>) -> tensor<3x8xf32>
    %p = linalg.matmul ins(%h, %w : tensor<3x8xf32>, tensor<8x8xf32>) outs(%start : tensor<3x8xf32>) -> tensor<3x8xf32>
    %new = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}} ins(%p, %x : tensor<3x8xf32>, tensor<3x8xf32>) outs(%e : tensor<3x8xf32>) {{
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    }} -> tensor<3x8xf32>
    %all = tensor.insert_slice %new into %acc[{row}, 0, 0] [1, 3, 8] [1, 1, 1] : tensor<3x8xf32> into tensor<5x3x8xf32>
    scf.yield {next}, %all : tensor<3x8xf32>, tensor<5x3x8xf32>
  }}
  return %r#1, %r#0 : tensor<5x3x8xf32>, tensor<3x8xf32>
}}
"""


@pytest.fixture(scope="module")
def context():
    return make_context()


def parse(context, **options: str):
    text = LAYER.format(**{"lower": "%c0", "upper": "%c5", "row": "%at", "next": "%new", **options})
    module = parse_module(text, context)
    generalize(module)
    return module


def kernel_of(context, **options: str) -> Kernel:
    module = parse(context, **options)
    with context, mlir.Location.unknown():
        return analyze(module.body.operations[0])


def test_nests_of_a_step(context):
    kernel = kernel_of(context)
    # The first value of the state; product and sum in registers; the next value of the state; its last value.
    assert len(kernel.nests) == 4 and kernel.steps is not None
    assert (kernel.steps.first, kernel.steps.last, kernel.steps.count) == (1, 3, Size(5))
    assert len(kernel.nests[1].statements) == 2 and kernel.shared == 1
    moving = [storage for storage in kernel.storages if storage.step != Size(0)]
    assert [(storage.binding, storage.step, storage.start) for storage in moving] == [
        (3, Size(-24), (Size(96),)),
        (0, Size(-24), (Size(96),)),
    ]


def test_a_state_that_is_a_row_of_the_inputs(context):
    kept = kernel_of(context, next="%x")
    assert len(kept.nests) == 4 and kept.nests[2].accesses[0].storage.binding == 0


def test_rows_of_a_batch_run_in_blocks(context):
    module = parse(context)
    with context, mlir.Location.unknown():
        found = Analysis.of(module.body.operations[0])
        assert found.firsts == (0,)
        kernel = found.kernel(Block(0, 2))
    assert isinstance(kernel, Kernel) and kernel.block == 2 and kernel.steps is not None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"lower": "%c1"}, "does not count from 0"),
        ({"row": "%c4"}, "do not write every row"),
        ({"upper": "%c4"}, "do not write every row"),
    ],
)
def test_what_is_refused(context, options, reason):
    with pytest.raises(Unsupported, match=reason):
        kernel_of(context, **options)


def test_a_step_counts_as_often_as_it_runs(context):
    module = parse(context)
    assert count_flops(module.body.operations[0]) == 5 * 2 * 3 * 8 * 8
    dynamic = parse(context, upper="%n")
    assert count_flops(dynamic.body.operations[0]) is None
