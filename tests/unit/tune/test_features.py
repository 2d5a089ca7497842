"""Features: what they say of schedules, from real dispatches and from made ones."""

from __future__ import annotations

import json

import pytest
from tests.unit.tune.simulated import TARGET, candidates_of, product_facts

from eyas.ir import make_context, parse_module
from eyas.targets import Target
from eyas.tune.facts import Facts, facts_of
from eyas.tune.features import features_of, parse_schedule
from eyas.tune.trials import Candidate

MATMUL = """
func.func @product(%a: tensor<24x50xf32>, %b: tensor<50x70xf32>) -> tensor<24x70xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<24x70xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<24x70xf32>) -> tensor<24x70xf32>
  %out = linalg.matmul ins(%a, %b : tensor<24x50xf32>, tensor<50x70xf32>) outs(%init : tensor<24x70xf32>)
      -> tensor<24x70xf32>
  return %out : tensor<24x70xf32>
}
"""


def test_facts_of_a_product_and_back_from_text():
    module = parse_module(MATMUL, make_context())
    with module.context:
        facts = facts_of(module.body.operations[0], Target.parse(TARGET))
    [nest] = facts.nests
    assert sorted(nest.loops) == [24, 50, 70] and nest.depth == 50
    assert facts.flops == 2 * 24 * 50 * 70 and facts.bytes == 4 * (24 * 50 + 50 * 70 + 24 * 70)
    assert Facts.from_json(json.loads(json.dumps(facts.to_json()))) == facts


def test_schedules_are_read_as_they_are_printed():
    fields = "{grid = [{loop = 0 : i64, tile = 22 : i64}], staged = [1], tiles = [{inside = [2, 3]}]}"
    text = f'#codegen.strategy<"rows", {fields}>'
    name, fields = parse_schedule(text)
    assert name == "rows" and fields["grid"] == [{"loop": 0, "tile": 22}] and fields["tiles"] == [{"inside": [2, 3]}]
    assert parse_schedule('#codegen.strategy<"loops">') == ("loops", {})
    assert parse_schedule('#codegen.strategy<"x", {inside = array<i64: 1, 2>}>') == ("x", {"inside": [1, 2]})
    with pytest.raises(ValueError, match="is no schedule"):
        parse_schedule("{tiles = []}")


def one_of(facts: Facts, target: str = TARGET, **point: int) -> dict[str, float]:
    wanted = {"vectors": 2, "rows": 4, "width": 16} | point
    found = [one for one in candidates_of("d", facts, target) if wanted.items() <= one.point.items()]
    return features_of(found[0], facts, Target.parse(target))


def test_the_register_tile():
    facts = product_facts(96, 128, 64)
    small, large = one_of(facts), one_of(facts, vectors=6, rows=8)
    assert small["multiply-adds/load"] == pytest.approx(8 / 6)  # two vectors and four elements for eight sums
    assert large["multiply-adds/load"] > small["multiply-adds/load"]
    assert small["registers"] == pytest.approx(11 / 32) and large["registers"] > 1
    # The same tile takes twice the registers of a machine with narrower vectors.
    avx2 = one_of(facts, "llvm-cpu:x86_64:x86-64-v3:cores=2")
    assert avx2["registers"] == pytest.approx((16 + 4 + 1) / 16)


def test_tails_and_workgroups():
    full, tail = one_of(product_facts(96, 128, 64)), one_of(product_facts(96, 130, 64))
    assert full["filled lanes"] == 1.0 and tail["filled lanes"] == pytest.approx(130 / 160)
    one, many = one_of(product_facts(96, 128, 64), piece=96), one_of(product_facts(96, 128, 64), piece=6)
    assert one["balance"] == 0.5, "one workgroup leaves one of two cores idle"
    assert many["balance"] == 1.0 and many["group bytes/l1"] < one["group bytes/l1"]


def test_gpu_tiles():
    facts, target = product_facts(512, 512, 256), Target.parse("vulkan:hopper")
    fields = {
        "threads": 256,
        "columns": 16,
        "row_points": 8,
        "column_points": 8,
        "depth": 16,
        "slices": 1,
        "buffers": 2,
    }

    def found(**changes: int) -> dict[str, float]:
        text = ", ".join(f"{name} = {value} : i64" for name, value in (fields | changes).items())
        schedule = f'#codegen.strategy<"products", {{{text}}}>'
        return features_of(Candidate("d", str(target), "products", fields | changes, schedule), facts, target)

    usual = found()
    assert usual["tile rows"] == usual["tile columns"] == pytest.approx(7.01, abs=0.01)  # 128 x 128
    assert usual["shared/most"] == pytest.approx((128 + 128) * 16 * 4 * 2 / target.workgroup_bytes)
    assert found(depth=64)["shared/most"] > 1 and found(threads=48)["whole subgroups"] == 0
    assert found(row_points=4, column_points=4)["waves"] > usual["waves"]
