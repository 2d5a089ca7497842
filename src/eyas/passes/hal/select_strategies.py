"""`select-strategies`: each executable is told how it will be lowered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.common.backend import generalized
from eyas.dialects import codegen, flow
from eyas.passes.targeted import TargetedPass


@dataclass(frozen=True)
class SelectStrategies(TargetedPass):
    """Asks the strategies in order and notes the first that applies, with its schedule, on the function.

    An executable that has a strategy keeps it: that is how an edited dump or a tuning spec decides.

        func.func private @main_dispatch_0_matmul(...) attributes {flow.executable}
      becomes
        ... attributes {flow.executable, codegen.strategy = #codegen.strategy<"contraction", {...}>}
    """

    name: ClassVar[str] = "select-strategies"
    disable: tuple[str, ...] = ()

    def run(self, module: mlir.Module) -> None:
        target = self.target
        backend = backend_of(target)
        for function in [op for op in module.body.operations if flow.is_executable(op)]:
            if codegen.STRATEGY in function.attributes:
                continue
            single = generalized(function)
            strategy, rejected = backend.select(single.body.operations[0], target, frozenset(self.disable))
            name = mlir.StringAttr.get(strategy.name)
            function.attributes[codegen.REJECTED] = mlir.ArrayAttr.get([mlir.StringAttr.get(r) for r in rejected])
            if noted := strategy.remarks(target):
                function.attributes[codegen.REMARKS] = mlir.ArrayAttr.get([mlir.StringAttr.get(r) for r in noted])
            if strategy.packable:
                function.attributes[codegen.PACKABLE] = mlir.DenseI64ArrayAttr.get(list(strategy.packable))
            function.attributes[codegen.STRATEGY] = codegen.StrategyAttr.get(name, strategy.schedule_attribute())
