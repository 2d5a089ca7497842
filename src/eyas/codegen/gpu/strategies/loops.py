"""Plain loops through upstream bufferisation: the strategy that any op of the input contract has.

One workgroup, whose threads divide what is parallel among them and leave the rest to one of them. Slow is allowed here;
failing is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.expressions import Var
from eyas.codegen.common.fields import Fields
from eyas.codegen.common.space import Knob, Space, first_problem, powers_of_two
from eyas.codegen.common.strategies.loops import PlainLoops
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.plain import emit_plain_kernel
from eyas.codegen.gpu.strategies.base import THREADS, Strategy, unaligned_bindings, within_the_device
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_MOST_THREADS = 256

Chosen = TypeVar("Chosen", bound="Loops")


@dataclass(frozen=True)
class Loops(PlainLoops, Strategy):
    """`threads` of one workgroup."""

    threads: int = 64

    @classmethod
    def choose(cls: type[Chosen], found: Analysis, target: Target) -> Chosen:
        del found
        assert isinstance(target, GpuTarget)
        return cls(min(_MOST_THREADS, target.max_threads))

    @classmethod
    def space(cls, found: Analysis, target: Target) -> Space | str:
        del found
        assert isinstance(target, GpuTarget)
        threads = powers_of_two(1, target.max_threads)
        return Space(cls.name, (Knob("threads", threads, THREADS),), within_the_device(Var("threads"), target))

    @property
    def point(self) -> dict[str, int]:
        return {"threads": self.threads}

    @classmethod
    def from_attribute(
        cls: type[Chosen], schedule: mlir.Attribute, found: Analysis, target: Target | None = None
    ) -> Chosen | str:
        del found
        read = cls(Fields(schedule, "", ("threads",)).integer("threads", cls.threads))
        limits = within_the_device(Var("threads"), target) if isinstance(target, GpuTarget) else ()
        return first_problem(limits, read.point) or read

    def schedule_attribute(self) -> mlir.DictAttr:
        i64 = mlir.IntegerType.get_signless(64)
        return mlir.DictAttr.get({"threads": mlir.IntegerAttr.get(i64, self.threads)})

    def describe(self) -> str:
        return f"threads={self.threads}"

    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        types = mlir.FunctionType(function.attributes["function_type"].value)
        tensors = sum(isinstance(type_, mlir.RankedTensorType) for type_ in types.inputs)
        with mlir.InsertionPoint(module.body), function.operation.location:
            name = mlir.StringAttr(function.attributes["sym_name"]).value
            constants = len(types.inputs) - tensors
            bindings = tensors + len(types.results)
            interface = Interface(name, bindings, constants, self.threads, unaligned_bindings(function))
            emit_plain_kernel(function, interface)
            interface.finish()
