"""Specs that do not fit: each error says which line, which entry, which dispatch and what is allowed."""

from __future__ import annotations

import pytest

from eyas.dialects import codegen
from eyas.errors import CompileError
from eyas.ir import PassPipeline, make_context, parse_module
from eyas.passes.schedule.apply_tuning_spec import ApplyTuningSpec
from eyas.specs import SpecSource
from eyas.tune.spec import Entry, OpMatch, Spec

TARGET = "llvm-cpu:x86_64:znver3"
PRODUCT = """
func.func private @product(%a: tensor<64x96xf32>, %b: tensor<96x128xf32>) -> tensor<64x128xf32> attributes {dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>) outs(%f : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %c : tensor<64x128xf32>
}
"""  # noqa: E501
TILES = '#codegen.strategy<"contraction", {grid = [], tiles = [{loop = 1, width = 8}]}>'
TEXT = Spec((Entry("mine", OpMatch(TARGET, "contraction", (64, 128, 96)), TILES),)).text()


def applied(*sources: SpecSource, disable: tuple[str, ...] = ()):
    """The function's attributes and what became of the specs."""
    context = make_context()
    module = parse_module(PRODUCT, context)
    PassPipeline((ApplyTuningSpec(TARGET, disable=disable, specs=sources),)).run(module)
    assert module.operation.verify()
    text = str(module)
    assert "tuning.facts" not in text and "tuning.entry" not in text
    attributes = module.body.operations[0].attributes
    noted = str(attributes[codegen.STRATEGY]) if codegen.STRATEGY in attributes else None
    return noted, str(module.operation.attributes[codegen.TUNING])


def test_an_entry_that_fits():
    noted, record = applied(SpecSource("mine.mlir", TEXT))
    assert "width = 8" in noted and 'used = {mine = ["product"]}' in record


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "contraction"', 'kind = "contraction', r"'mine.mlir' is not valid MLIR: .*mine.mlir:7"),
        ("@__transform_main", "@main", "needs a sequence @__transform_main .*; it has no such sequence"),
        ("kind =", "kinds =", r"mine.mlir:5, entry @mine: tuning.match has 'kinds'.*did you mean 'kind'"),
        ("sizes = [64,", 'sizes = ["all",', r'mine.mlir:5, .*"all" is no size: a number, "any"'),
        ("sizes = [64,", 'sizes = ["multiple of 0",', "is no size"),
        ('kind = "contraction"', "kind = 3", "kind = 3.*; it must be text"),
        ("sizes = [64, 128, 96]", "types = [64]", "types = .*; it must be a list of types"),
        (":znver3", ":zen3", "mine.mlir:5, entry @mine: .*unknown CPU of x86_64 'zen3'"),
        (
            '<"contraction"',
            '<"contractions"',
            "mine.mlir:3, entry @mine: unknown strategy 'contractions'. Did you mean",
        ),
        ("width = 8", "widths = 8", "mine.mlir:3, entry @mine: executable 'product' cannot .*tiles.*widths"),
        ("loop = 1", "loop = 7", r"'product' cannot use .* tiles\[0\].loop is 7; allowed are the loops \[0, 1, 2\]"),
        ("tiles = [", "tiles = [{}, ", "tiles has 2 tiles; it must have one for each of the 1 loop nests"),
        (
            '"codegen.strategy" =',
            '"elsewhere" =',
            "mine.mlir:3, entry @mine: its action @set_schedule noted no codegen",
        ),
        ("restrict_root in %op", "in", "is not valid MLIR"),
    ],
)
def test_what_is_wrong_is_said(old, new, message):
    assert old in TEXT
    with pytest.raises(CompileError, match=message):
        applied(SpecSource("mine.mlir", TEXT.replace(old, new)))


def test_a_shipped_spec_gives_way():
    bad = SpecSource("shipped.mlir", TEXT.replace("loop = 1", "loop = 7"), shipped=True)
    noted, record = applied(bad)
    assert noted is None and "used = {}" in record and "loop is 7; allowed are" in record


def test_what_is_switched_off_stays_off():
    noted, record = applied(SpecSource("mine.mlir", TEXT), disable=("contraction",))
    assert noted is None and "contraction is switched off" in record


def test_the_first_spec_decides():
    other = SpecSource("other.mlir", TEXT.replace("width = 8", "width = 4"))
    elsewhere = SpecSource("elsewhere.mlir", TEXT.replace(TARGET, "vmvx"))
    noted, record = applied(elsewhere, other, SpecSource("mine.mlir", TEXT))
    assert "width = 4" in noted
    assert 'other_targets = ["mine"]' in record and 'unused = ["mine"]' in record
    assert record.count('used = {mine = ["product"]}') == 1


def test_a_spec_without_entries_decides_nothing():
    noted, record = applied(SpecSource("empty.mlir", Spec().text()))
    assert noted is None and "used = {}" in record
