"""What is noted on a dispatch is given up step by step, and plain loops are right where buffers are shared."""

from __future__ import annotations

import re

import pytest
from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.caution import NO_VECTORIZER, prepare, steps_of
from eyas.codegen.common.analysis import generalize
from eyas.codegen.jobs import Caution
from eyas.dialects import codegen
from eyas.ir import make_context, parse_module
from eyas.targets import Target

# The first result may lie where %x does, which is the second.
RESIDUAL = """
func.func private @dispatch(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>)
    attributes {flow.executable, codegen.strategy = #codegen.strategy<"rows", {}>} {
  %e = tensor.empty() : tensor<8x16xf32>
  %y = linalg.exp ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %z = linalg.sub ins(%y, %x : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  return %z, %x : tensor<8x16xf32>, tensor<8x16xf32>
}
"""


ONE_RESULT = RESIDUAL.replace("(tensor<8x16xf32>, tensor<8x16xf32>)\n", "tensor<8x16xf32>\n").replace(
    "%z, %x : tensor<8x16xf32>, ", "%z : "
)


def prepared(caution: Caution, target: Target, text: str = ONE_RESULT) -> tuple[mlir.Module, frozenset[str]]:
    text = text if caution is not Caution.ANOTHER_STRATEGY else re.sub(", codegen.*}>", "", text)
    module = parse_module(text, make_context())
    return module, prepare(module, caution, backend_of(target), target, frozenset({"x"}))


def test_steps() -> None:
    assert steps_of(Target.parse("llvm-cpu:x86_64")) == list(Caution)
    assert Caution.FEWER_OPTIMISATIONS not in steps_of(Target.parse("vmvx"))


@pytest.mark.parametrize("target", ["llvm-cpu:x86_64", "vmvx"])
def test_more_is_given_up_with_each_step(target: str) -> None:
    parsed = Target.parse(target)
    off = {caution: prepared(caution, parsed)[1] for caution in Caution}
    assert off == {
        Caution.NONE: {"x"},
        Caution.FEWER_OPTIMISATIONS: {"x", NO_VECTORIZER},
        Caution.ANOTHER_STRATEGY: {"x", NO_VECTORIZER, "rows"},
        Caution.PLAIN_LOOPS: {"x", "optimize-llvm"},
    }
    for caution, strategy in ((Caution.ANOTHER_STRATEGY, "loops"), (Caution.PLAIN_LOOPS, "loops")):
        module, disabled = prepared(caution, parsed)
        function = module.body.operations[0]
        assert codegen.COPIES_RESULTS in function.attributes
        with module.context, mlir.Location.unknown():
            generalize(module)
            assert backend_of(parsed).select(module.body.operations[0], parsed, disabled)[0].name == strategy


@pytest.mark.parametrize("copies", [False, True])
def test_a_result_is_written_after_all_is_read(copies: bool) -> None:
    from eyas.codegen.llvm_cpu.strategies.loops import Loops

    target = Target.parse("llvm-cpu:x86_64")
    module, _ = prepared(Caution.PLAIN_LOOPS, target, RESIDUAL)
    with module.context, mlir.Location.unknown():
        function = module.body.operations[0]
        if not copies:
            del function.attributes[codegen.COPIES_RESULTS]
        generalize(module)
        lowered = mlir.Module.create()
        Loops().lower(module.body.operations[0], lowered)
        text = str(lowered)
    argument, first, _ = re.findall(r"(%\w+) = builtin.unrealized_conversion_cast", text)
    read = max(found.start() for found in re.finditer(rf"memref.(load|copy) {argument}\b", text))
    written = min(found.start() for found in re.finditer(rf"memref.(store|copy) %\w+, {first}\b", text))
    assert (read < written) == copies
