"""Makes a dispatch ready to be compiled with more caution than its schedule asks for."""

from __future__ import annotations

from torch_mlir import ir as mlir

from eyas.codegen.common.backend import Backend, generalize
from eyas.codegen.jobs import Caution
from eyas.dialects import codegen
from eyas.targets import CpuTarget, Target

NO_VECTORIZER = "vectorize-llvm"
"""A switch that only this file sets: LLVM does without its vectorisers and costly passes."""


def steps_of(target: Target) -> list[Caution]:
    """What is tried in turn."""
    return [one for one in Caution if isinstance(target, CpuTarget) or one is not Caution.FEWER_OPTIMISATIONS]


def prepare(
    module: mlir.Module, caution: Caution, backend: Backend, target: Target, disabled: frozenset[str]
) -> frozenset[str]:
    """Changes what is noted on the dispatch function, and returns what is switched off.

    Another strategy, and plain loops, know nothing of what the noted schedule implied. Weights are read as they were
    before `pack-weights` (the caller gives them so), and a result is computed in memory of its own before it is
    written, since it may lie where an operand does.
    """
    if caution is Caution.NONE:
        return disabled
    if caution.keeps_schedule:
        return disabled | {NO_VECTORIZER}
    with module.context, mlir.Location.unknown():
        function = next(op for op in module.body.operations if op.operation.name == "func.func")
        attributes = function.attributes
        attributes[codegen.COPIES_RESULTS] = mlir.UnitAttr.get()
        if caution is Caution.PLAIN_LOOPS:
            plain = mlir.StringAttr.get(backend.strategies[-1].name)
            attributes[codegen.STRATEGY] = codegen.StrategyAttr.get(plain, mlir.DictAttr.get({}))
            return disabled | {"optimize-llvm"}
        generalize(module)
        noted = backend.select(function, target, disabled)[0].name
        if codegen.STRATEGY in attributes:
            del attributes[codegen.STRATEGY]
    return disabled | {NO_VECTORIZER, noted}
