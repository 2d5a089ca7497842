"""What every strategy for GPUs offers: a kernel, knobs that are numbers, and code for one thread."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.fields import Fields
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import GridAxis
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.strategies import base
from eyas.codegen.gpu.interface import Interface
from eyas.dialects import codegen

TILES_STICK_OUT = "small tiles of a nest stick out of their tensor"

Knobs = TypeVar("Knobs")
Chosen = TypeVar("Chosen", bound="KernelStrategy")


@dataclass(frozen=True)
class Strategy(base.Strategy):
    """One way to lower a dispatch to a kernel of threads."""

    @abstractmethod
    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        """Adds a module of kernels with the entry function. `function` is the dispatch function on tensors."""


@dataclass(frozen=True)
class KernelStrategy(Strategy):
    """A strategy that emits loop nests. Its knobs are a frozen dataclass of numbers, `threads` (of a workgroup) among
    them."""

    knobs_type: ClassVar[type]

    kernel: Kernel
    knobs: Any

    @classmethod
    @abstractmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        """The loop nests that it works on, or why it has none to work on."""

    @classmethod
    @abstractmethod
    def check(cls, kernel: Kernel, knobs: Any) -> str | None:
        """Why the kernel cannot run with these knobs, in a sentence that begins with the knob; or None."""

    @abstractmethod
    def emit(self, interface: Interface) -> None:
        """Writes what one thread does."""

    @property
    @abstractmethod
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        """For each axis of the grid, x first: an extent, and how much of it one workgroup has."""

    @classmethod
    def from_attribute(cls: type[Chosen], schedule: mlir.Attribute, found: Analysis) -> Chosen | str:
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        knobs = read_knobs(schedule, cls.knobs_type)
        return cls.check(kernel, knobs) or cls(kernel, knobs)

    def problem(self) -> str | None:
        return self.check(self.kernel, self.knobs)

    def schedule_attribute(self) -> mlir.DictAttr:
        i64 = mlir.IntegerType.get_signless(64)
        values = dataclasses.asdict(self.knobs)
        return mlir.DictAttr.get({name: mlir.IntegerAttr.get(i64, value) for name, value in values.items()})

    @property
    def grid(self) -> tuple[GridAxis, ...]:
        return tuple(GridAxis(axis, tile) for axis, (_, tile) in enumerate(self.workgroups))

    @property
    def grid_extents(self) -> tuple[Size, ...]:
        return tuple(extent for extent, _ in self.workgroups)

    def lower(self, function: mlir.OpView, module: mlir.Module) -> None:
        with mlir.InsertionPoint(module.body), function.operation.location:
            name = mlir.StringAttr(function.attributes["sym_name"]).value
            bindings = sum(storage.binding is not None for storage in self.kernel.storages)
            constants = len(self.kernel.scalar_arguments)
            interface = Interface(name, bindings, constants, self.knobs.threads, unaligned_bindings(function))
            with interface.body:
                self.emit(interface)
            interface.finish()

    def describe(self) -> str:
        return " ".join(f"{name}={value}" for name, value in dataclasses.asdict(self.knobs).items())


def read_knobs(attribute: mlir.Attribute, type_: type[Knobs]) -> Knobs:
    """Reads what `schedule_attribute` writes, and what people make of it; raises FieldError."""
    names = [field.name for field in dataclasses.fields(type_)]  # type: ignore[arg-type]
    fields = Fields(attribute, "", names)
    return type_(**{name: fields.integer(name) for name in names})


def unaligned_bindings(function: mlir.OpView) -> frozenset[int]:
    """Bindings that may begin anywhere in their buffer."""
    if codegen.UNALIGNED not in function.attributes:
        return frozenset()
    return frozenset(mlir.DenseI64ArrayAttr(function.attributes[codegen.UNALIGNED]))


def check_powers_of_two(**knobs: int) -> str | None:
    """Why some of these are not powers of two."""
    for name, value in knobs.items():
        if value < 1 or value & (value - 1):
            return f"{name} is {value}; it must be a power of two"
    return None
