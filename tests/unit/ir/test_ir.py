"""Passes as data, pipelines as text, contexts, and MLIR's diagnostics as our errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from eyas.errors import CompileError, EyasError, UsageError
from eyas.ir import (
    Pass,
    PassPipeline,
    Upstream,
    clone_into,
    describe_location,
    make_context,
    mlir,
    parse_module,
    run_upstream,
)
from eyas.ir.walk import find_ops
from eyas.passes import PASSES, lookup, parse_pipeline


@pytest.fixture(scope="module")
def context():
    return make_context()


@dataclass(frozen=True)
class Example(Pass):
    """One option of each kind."""

    name: ClassVar[str] = "example-pass"
    max_ops: int = 8
    ratio: float = 0.5
    is_loud: bool = False
    kind: str = "plain"
    sizes: tuple = ()

    def run(self, module):
        module.operation.attributes["seen"] = mlir.StringAttr.get(str(self))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", Example()),
        ("max-ops=3", Example(max_ops=3)),
        ("max-ops=-3 ratio=0.25", Example(max_ops=-3, ratio=0.25)),
        ("is-loud=true kind=odd", Example(is_loud=True, kind="odd")),
        ("sizes=1,2,x", Example(sizes=(1, 2, "x"))),
    ],
)
def test_options_parse_and_print_back(options, expected):
    parsed = Example.parse(options)
    assert parsed == expected
    assert str(parsed) == "example-pass" + (f"{{{options}}}" if options else "")
    assert Example.parse(str(parsed).removeprefix("example-pass").strip("{}")) == parsed


def test_defaults_are_not_printed():
    assert str(Example.parse("max-ops=8 is-loud=false")) == "example-pass"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("max-ops=many", r"example-pass\{max-ops=many\}: expected a int, got 'many'"),
        ("is-loud=maybe", "expected a bool, got 'maybe'"),
        ("max-opps=3", "has no option 'max-opps=3'; its options: max-ops, ratio, is-loud, kind, sizes"),
        ("max-ops", "has no option 'max-ops'"),
    ],
)
def test_bad_options_are_the_users_error(options, message):
    with pytest.raises(UsageError, match=message):
        Example.parse(options)


def test_passes_are_frozen_and_compare_by_value():
    assert Example(max_ops=3) == Example(max_ops=3) != Example()
    with pytest.raises(AttributeError):
        Example().max_ops = 4


@pytest.mark.parametrize(
    "text",
    [
        "cse",
        "canonicalize,cse",
        "tie-shapes,plan-memory{max-arena-bytes=4096},cse",
        "compile-executables{target=llvm-cpu:aarch64 disable=rows,contraction workers=2}",
        "func.func(canonicalize{max-iterations=3},cse),tie-shapes",
    ],
)
def test_pipelines_parse_and_print_back(text):
    pipeline = parse_pipeline(text)
    assert str(pipeline) == text
    assert parse_pipeline(str(pipeline)) == pipeline


def test_ours_and_upstream_are_told_apart():
    steps = parse_pipeline(" cse , plan-memory{max-arena-bytes=1}").steps
    assert steps[0] == Upstream("cse") and steps[1] == lookup("plan-memory")(max_arena_bytes=1)


@pytest.mark.parametrize("name", PASSES)
def test_every_pass_prints_its_name_and_parses_back(name):
    made = lookup(name)()
    assert str(made) == name and made.name == name
    assert parse_pipeline(name).steps == (made,)
    assert (type(made).__doc__ or "").strip()


def test_unknown_passes(context):
    module = parse_module("module {}", context)
    with pytest.raises(UsageError, match="cannot parse the pass pipeline 'no-such-pass'.*no-such-pass"):
        parse_pipeline("no-such-pass").run(module)
    with pytest.raises(UsageError, match="'canonicalize{no-option=1}': no such option no-option"):
        parse_pipeline("canonicalize{no-option=1}").run(module)


def test_pipelines_run_in_order_and_are_observed(context):
    module = parse_module(
        "func.func @main() -> i32 { %0 = arith.constant 1 : i32 %1 = arith.constant 1 : i32 return %0 : i32 }", context
    )
    seen = []
    PassPipeline((Example(max_ops=3), Upstream("canonicalize"))).run(
        module,
        lambda step, given, seconds: seen.append((str(step), len(find_ops(given, "arith.constant")), seconds >= 0)),
    )
    assert seen == [("example-pass{max-ops=3}", 2, True), ("canonicalize", 1, True)]
    assert module.operation.attributes["seen"].value == "example-pass{max-ops=3}"


def test_a_pipeline_runs_on_one_module_after_another(context):
    """Managers of simplifications are kept with the context; some passes remember the module that they ran on."""
    text = """func.func @main(%x: f32, %n: i32) -> f32 {
      %y = math.fpowi %x, %n : f32, i32
      %z = math.fpowi %x, %n : f32, i32
      return %z : f32
    }"""
    for _ in range(3):
        module = parse_module(text, context)
        for passes in ("canonicalize,cse", "convert-math-to-funcs{min-width-of-fpowi-exponent=1}", "canonicalize,cse"):
            run_upstream(module, passes)
        assert str(module).count("call @__mlir_math_fpowi_f32_i32") == 1
        assert "fpowi %" not in str(module)


def test_failing_upstream_passes_become_compile_errors(context):
    """The error names the pass and the node, in one sentence."""
    text = """func.func @main(%x: tensor<?xf32>, %s: tensor<?xindex>) -> tensor<*xf32> {
      %0 = tensor.cast %x : tensor<?xf32> to tensor<*xf32> loc("my_node")
      %1 = "test.unknown"(%0) : (tensor<*xf32>) -> tensor<*xf32> loc("my_node")
      return %1 : tensor<*xf32>
    }"""
    context.allow_unregistered_dialects = True
    try:
        module = parse_module(text, context)
        with pytest.raises(CompileError, match=r"pass 'one-shot-bufferize.*' failed at node 'my_node': .+") as caught:
            parse_pipeline("one-shot-bufferize{bufferize-function-boundaries=true}").run(module)
    finally:
        context.allow_unregistered_dialects = False
    assert isinstance(caught.value, EyasError)


def test_data_of_a_call_is_no_option():
    @dataclass(frozen=True)
    class WithData(Pass):
        name: ClassVar[str] = "with-data"
        weights: dict = field(default_factory=dict, compare=False)

    assert str(WithData(weights={"a": 1})) == "with-data"
    with pytest.raises(UsageError, match="its options: none"):
        WithData.parse("weights=3")


# Diagnostics and contexts


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ('loc("conv1"("model.py":3:4))', "node 'conv1' (model.py:3)"),
        ('loc("conv1")', "node 'conv1'"),
        ('loc("model.py":3:4)', "model.py:3"),
        ('loc("-":3:4)', "line 3"),
        ("loc(unknown)", "an unknown place"),
    ],
)
def test_locations_in_words(context, location, expected):
    assert describe_location(location) == expected
    with context:
        assert (
            describe_location(mlir.Location.parse(location) if hasattr(mlir.Location, "parse") else location)
            == expected
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main( {", r"model.mlir is not valid MLIR: .* \(at line 1\)"),
        ("module {\n  nonsense\n}", r"\(at line 2\)"),
        ("func.func @main() -> f32 { return }", "return"),
        (b"ML\xefR broken", "model.mlir is not valid MLIR"),
        ("", None),
    ],
)
def test_syntax_errors_name_the_line(context, text, message):
    if message is None:
        assert not list(parse_module(text, context, "model.mlir").body.operations)
        return
    with pytest.raises(CompileError, match=message):
        parse_module(text, context, "model.mlir")


def test_every_dialect_is_there(context):
    text = """func.func @main(%x: !torch.vtensor<[2],f32>, %y: tensor<2xf32>, %r: !stream.resource) -> tensor<2xf32> {
      %0 = stablehlo.add %y, %y : tensor<2xf32>
      %1 = tosa.add %0, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      return %1 : tensor<2xf32>
    }"""
    assert parse_module(text, context).operation.verify()


def test_contexts_are_independent(context):
    other = make_context()
    module = parse_module("func.func @main() { return }", context)
    copy = clone_into(module.operation, other)
    assert copy.context != module.context and str(copy) == str(module)
    run_upstream(copy, "symbol-dce")
    next(iter(copy.body.operations)).operation.erase()
    assert "@main" in str(module) and "@main" not in str(copy)


@pytest.mark.parametrize("passes", ["canonicalize", "func.func(canonicalize)", "inline", "inline,cse"])
def test_padding_of_what_is_inserted_with_gaps_is_kept(passes):
    """Upstream's `canonicalize` would add the padding to the place of the first element, without the gaps."""
    module = parse_module(
        """func.func @f(%x: tensor<3xf32>) -> tensor<9xf32> {
          %zero = arith.constant 0.0 : f32
          %p = tensor.pad %x low[1] high[0] {
          ^bb0(%i: index):
            tensor.yield %zero : f32
          } : tensor<3xf32> to tensor<4xf32>
          %e = tensor.empty() : tensor<9xf32>
          %f = linalg.fill ins(%zero : f32) outs(%e : tensor<9xf32>) -> tensor<9xf32>
          %r = tensor.insert_slice %p into %f[1] [4] [2] : tensor<4xf32> into tensor<9xf32>
          return %r : tensor<9xf32>
        }""",
        make_context(),
    )
    run_upstream(module, passes)
    assert "tensor.pad" in str(module)
