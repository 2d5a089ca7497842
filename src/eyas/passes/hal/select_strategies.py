"""`select-strategies`: each executable is told how it will be lowered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.codegen.common.schedule import panels_to_attribute
from eyas.dialects import codegen, flow
from eyas.passes.targeted import TargetedPass


@dataclass(frozen=True)
class SelectStrategies(TargetedPass):
    """Asks the strategies in order and notes the first that applies, with its schedule, on the function.

    An executable that has a strategy keeps it: that is how an edited dump or a tuning spec decides. It is checked, and
    everything else is noted as if the strategy had been chosen here.

        func.func private @main_dispatch_0_matmul(...) attributes {flow.executable}
      becomes
        ... attributes {flow.executable, codegen.strategy = #codegen.strategy<"contraction", {...}>}
    """

    name: ClassVar[str] = "select-strategies"
    disable: tuple[str, ...] = ()
    analyses: dict[str, Analysis] = field(default_factory=dict, compare=False, repr=False)

    def run(self, module: mlir.Module) -> None:
        target = self.target
        backend = backend_of(target)
        for function in [op for op in module.body.operations if flow.is_executable(op)]:
            found = analysis_of(function, self.analyses, target.near_bytes)
            strategy, rejected = backend.select(function, target, frozenset(self.disable), found)
            if codegen.REJECTED not in function.attributes:
                function.attributes[codegen.REJECTED] = _texts(rejected)
            if noted := strategy.remarks(target):
                function.attributes[codegen.REMARKS] = _texts(noted)
            if strategy.packable:
                function.attributes[codegen.PACKABLE] = panels_to_attribute(strategy.packable)
            name = mlir.StringAttr.get(strategy.name)
            function.attributes[codegen.STRATEGY] = codegen.StrategyAttr.get(name, strategy.schedule_attribute())


def _texts(lines: list[str]) -> mlir.ArrayAttr:
    return mlir.ArrayAttr.get([mlir.StringAttr.get(line) for line in lines])
