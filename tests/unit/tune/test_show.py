"""What `eyas tune --show-space` and `--dump-constraints` print."""

from __future__ import annotations

import itertools

import pytest
from test_solver import LARGE, SMALL, box

from eyas.ir import make_context, parse_module
from eyas.targets import Target
from eyas.tune.show import count_points, dump_constraints, excluded, show_space

MATMUL = """
func.func private @product(%x: tensor<13x45xf32>, %y: tensor<45x50xf32>) -> tensor<13x50xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<13x50xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<13x50xf32>) -> tensor<13x50xf32>
  %r = linalg.matmul ins(%x, %y : tensor<13x45xf32>, tensor<45x50xf32>)
    outs(%fill : tensor<13x50xf32>) -> tensor<13x50xf32>
  return %r : tensor<13x50xf32>
}
"""


def test_points_are_counted():
    assert count_points(SMALL).points == sum(SMALL.problem(point) is None for point in box(SMALL))
    assert str(count_points(SMALL)).replace(",", "").isdigit()
    assert not count_points(LARGE).is_exact


def test_what_excludes_is_told():
    shares = excluded(SMALL)
    assert [one for one, _, _ in shares] == list(SMALL.constraints)
    for one, all_, alone in shares:
        exact = sum(not one.condition.evaluate(point) for point in box(SMALL)) / SMALL.size()
        assert all_ == pytest.approx(exact, abs=0.06) and alone <= all_


@pytest.mark.parametrize("target", ["llvm-cpu:x86_64:x86-64-v3", "vmvx", "vulkan:hopper"])
def test_a_dispatch_in_words_and_as_constraints(target):
    module, target = parse_module(MATMUL, make_context()), Target.parse(target)
    with module.context:
        (function,) = [op for op in module.body.operations if op.operation.name == "func.func"]
        text = show_space(function, target)
        constraints = dump_constraints(function, target)
    lines = text.splitlines()
    assert lines[0].startswith(f"product on {target}: ")
    assert any(line.startswith("contraction: ") and " of them valid" in line for line in lines)
    assert any(line.split()[:2] == ["excludes", "alone"] for line in lines)
    after = list(itertools.dropwhile(lambda line: line != "do not apply:", lines))
    assert any("no transform of tiles" in line for line in after)
    assert constraints.count("smt.solver()") == text.count(" of them valid")
    parse_module(constraints, make_context())
