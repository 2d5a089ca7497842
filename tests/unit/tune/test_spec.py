"""Tuning specs as data: what is printed is read back, and merging says what it drops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eyas.errors import CompileError, UsageError
from eyas.ir import make_context, parse_module
from eyas.specs import as_sources
from eyas.targets import Target
from eyas.tune.spec import Entry, OpMatch, Spec, match_of, merge, name_of, note, schedule_of

MAPS = tuple(f"affine_map<(d0, d1, d2) -> {one}>" for one in ("(d0, d2)", "(d2, d1)", "(d0, d1)"))
PRODUCT = OpMatch(
    "llvm-cpu:x86_64:znver3", "contraction", (64, 128, 96), ("f32",) * 3, MAPS, ((64, 128, 96),), (0, 1, -1)
)
SCHEDULE = '#codegen.strategy<"contraction", {grid = [{loop = 0, tile = 16}], tiles = [{loop = 1, width = 8}]}>'
LOOPS = '#codegen.strategy<"loops", {}>'
FUNCTION = """
func.func private @product(%a: tensor<64x96xf32>, %b: tensor<96x128xf32>) -> tensor<64x128xf32> attributes {dim_args = array<i64>, flow.executable} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x128xf32>) -> tensor<64x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x96xf32>, tensor<96x128xf32>) outs(%f : tensor<64x128xf32>) -> tensor<64x128xf32>
  return %c : tensor<64x128xf32>
}
func.func private @open(%n: index, %a: tensor<?x96xf16>) -> tensor<?x96xf16> attributes {dim_args = array<i64: 0, 0>, flow.executable} {
  %e = tensor.empty(%n) : tensor<?x96xf16>
  %r = linalg.exp ins(%a : tensor<?x96xf16>) outs(%e : tensor<?x96xf16>) -> tensor<?x96xf16>
  return %r : tensor<?x96xf16>
}
func.func private @sorted(%a: tensor<8xf32>) -> tensor<8xf32> attributes {dim_args = array<i64>, flow.executable} {
  %r = tm_tensor.sort dimension(0) outs(%a : tensor<8xf32>) {
  ^bb0(%x: f32, %y: f32):
    %less = arith.cmpf olt, %x, %y : f32
    tm_tensor.yield %less : i1
  } -> tensor<8xf32>
  return %r : tensor<8xf32>
}
"""  # noqa: E501


@pytest.fixture(scope="module")
def functions():
    context = make_context()
    module = parse_module(FUNCTION, context)
    with context:
        yield {op.attributes["sym_name"].value: op for op in module.body.operations}


def test_what_is_printed_is_read_back():
    other = Entry(
        "second entry", OpMatch(kind="softmax", sizes=("any", "multiple of 16", "dynamic")), LOOPS, 'a "gain" of 2 ×'
    )
    spec = Spec((Entry("product", PRODUCT, SCHEDULE), other), {"compiler": "eyas 0.1", "two words": "x"})
    assert Spec.parse(spec.text()) == spec
    assert Spec.parse(Spec().text()) == Spec()


def test_edited_text_is_read():
    text = Spec((Entry("product", PRODUCT, SCHEDULE),)).text()
    edited = text.replace("sizes = [64, 128, 96]", 'sizes = ["any", "multiple of 16", 96]').replace(
        "tile = 16", "tile = 8 : i64"
    )
    entry = Spec.parse(edited).entries[0]
    assert entry.match == replace(PRODUCT, sizes=("any", "multiple of 16", 96))
    assert entry.schedule == SCHEDULE.replace("tile = 16", "tile = 8")


def test_facts_of_dispatches(functions):
    target = Target.parse("llvm-cpu:x86_64:znver3:cores=4")
    assert match_of(functions["product"], target) == PRODUCT
    found = match_of(functions["open"], target)
    assert (found.kind, found.sizes, found.types) == ("elementwise", ("dynamic", 96), ("f16", "f16"))
    found = match_of(functions["sorted"], Target.parse("vmvx"))
    assert (found.kind, found.sizes, found.nests, found.target) == ("tm_tensor.sort", (8,), (), "vmvx")
    assert name_of(PRODUCT) == "contraction_64x128x96_f32" and name_of(found) == "tm_tensor_sort_8_f32"


def test_schedules_are_noted_and_read(functions):
    note(functions["product"], SCHEDULE.replace("{grid", "{packed = [{binding = 1, lanes = 8}], grid"))
    assert schedule_of(functions["product"]) == SCHEDULE
    with pytest.raises(CompileError, match="is no schedule"):
        note(functions["product"], "#codegen.strategy<nothing>")


def test_the_first_of_equal_matches_stays():
    told = []
    mine, again = Entry("mine", PRODUCT, SCHEDULE), Entry("again", PRODUCT, SCHEDULE)
    differs = Entry("differs", PRODUCT, LOOPS)
    wide = Entry("wide", replace(PRODUCT, sizes=(64, "any", 96), nests=None), LOOPS)
    same_name = Entry("wide", replace(PRODUCT, sizes=(64, 32, 96), nests=None), LOOPS)
    merged = merge(
        [
            Spec((mine,), {"date": "1", "machine": "a"}),
            Spec((again, differs, wide, same_name), {"date": "2", "machine": "a"}),
        ],
        told.append,
    )
    assert merged.entries == (mine, wide, replace(same_name, name="wide_2"))
    assert merged.header == {"date": "1; 2", "machine": "a"}
    assert len(told) == 2 and "'differs' matches what 'mine' does" in told[0] and "never has its turn" in told[1]
    assert Spec.parse(merged.text()) == merged


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (("any", 8), (3, 8), True),
        (("multiple of 4", 8), ("multiple of 8", 8), True),
        (("multiple of 8", 8), ("multiple of 4", 8), False),
        (("multiple of 8", 8), ("dynamic", 8), False),
        (("any", 8), ("dynamic", 8), True),
        ((3, 8), ("any", 8), False),
        ((3,), (3, 8), False),
    ],
)
def test_what_covers_what(wide, narrow, expected):
    assert OpMatch(sizes=wide).covers(OpMatch(sizes=narrow, kind="softmax")) is expected


def test_other_forms_are_not_merged():
    text = Spec((Entry("product", PRODUCT, SCHEDULE),)).text()
    more = text.replace(
        '    "tuning.match"',
        '    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op\n    "tuning.match"',
    )
    with pytest.raises(UsageError, match=r"entry @product \(mine.mlir:3\).*operation_name"):
        Spec.parse(more, "mine.mlir")


def test_names_are_given_once():
    with pytest.raises(UsageError, match="two entries of a tuning spec are called 'a'"):
        Spec((Entry("a", PRODUCT, LOOPS), Entry("a", OpMatch(), LOOPS))).text()


def test_specs_as_people_give_them(tmp_path):
    spec = Spec((Entry("product", PRODUCT, SCHEDULE),))
    (tmp_path / "a.mlir").write_text(spec.text())
    path, text, made = as_sources([str(tmp_path / "a.mlir"), spec.text(), spec])
    assert path.text == text.text == made.text and path.name.endswith("a.mlir") and path.digest == text.digest
    assert as_sources(None) == ()
    with pytest.raises(UsageError, match="cannot read the tuning spec 'nowhere.mlir': No such file"):
        as_sources("nowhere.mlir")
    with pytest.raises(UsageError, match="not a int"):
        as_sources(3)
