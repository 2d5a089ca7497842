"""What every strategy for GPUs offers: a kernel, knobs that are numbers, and code for one thread."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from torch_mlir import ir as mlir

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.expressions import Int, Number, Var, between, ceil_div, lift, power_of_two
from eyas.codegen.common.fields import Fields
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import GridAxis
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.space import Constraint, Knob, Space, domain, first_problem, knob, law, suited, wrong_names
from eyas.codegen.common.strategies import base
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.points import MAX_GRID
from eyas.dialects import codegen
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

TILES_STICK_OUT = "small tiles of a nest stick out of their tensor"
THREADS = "threads of a workgroup"

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
    them, each a `knob` that says what it is. What they may be is `constraints`, of a kernel, and `limits`, of a target;
    what is worth trying is `domains`. In the first two, knobs are variables (`expressions.py`), and so is what
    functions such as `workgroups` make of them."""

    knobs_type: ClassVar[type]

    kernel: Kernel
    knobs: Any

    @classmethod
    @abstractmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        """The loop nests that it works on, or why it has none to work on."""

    @classmethod
    @abstractmethod
    def constraints(cls, kernel: Kernel, of: Any) -> Sequence[Constraint]:
        """What knobs must keep so that the kernel runs with them, on whatever device. `of` are the knobs."""

    @classmethod
    @abstractmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> Mapping[str, Sequence[int]]:
        """Values of each knob that are worth trying. Those that are chosen by default belong to them anyway."""

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        """Shared memory that a workgroup has with these knobs."""
        del kernel, of
        return 0

    @classmethod
    def limits(cls, kernel: Kernel, of: Any, target: GpuTarget) -> Sequence[Constraint]:
        """What knobs must keep on this device, on top of what they always must."""
        needed = lift(cls.shared_bytes(kernel, of))
        memory = law(
            needed <= target.shared_bytes,
            f"threads is {{threads}}; with these knobs a workgroup has {{needed}} bytes of shared memory, and the"
            f" device {target.shared_bytes}",
            needed=needed,
        )
        grid = []
        for axis, (extent, piece) in list(enumerate(cls(kernel, of).workgroups))[1:]:
            if extent.static is not None and isinstance(piece, Int):
                count = lift(ceil_div(extent.static, piece))
                grid.append(
                    law(
                        count <= MAX_GRID,
                        f"threads is {{threads}}; with these knobs axis {axis} of the grid has {{count}} workgroups,"
                        f" more than {MAX_GRID}",
                        count=count,
                    )
                )
        return (*within_the_device(of.threads, target), memory, *grid)

    @classmethod
    def why_not_on(cls, kernel: Kernel, target: GpuTarget) -> str | None:
        """Why no knobs will do on this device, or None."""
        del kernel, target
        return None

    @classmethod
    def check(cls, kernel: Kernel, knobs: Any) -> str | None:
        """Why the kernel cannot run with these knobs, in a sentence that begins with the knob; or None."""
        return first_problem(cls.constraints(kernel, open_knobs(cls.knobs_type)), dataclasses.asdict(knobs))

    @classmethod
    def space(cls, found: Analysis, target: Target) -> Space | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        if (reason := cls.why_not_on(kernel, target)) is not None:
            return reason
        default = cls.choose(found, target)
        chosen = {name: [value] for name, value in default.point.items()} if isinstance(default, Strategy) else {}
        domains = cls.domains(kernel, target)
        knobs = [
            Knob(field.name, domain(domains[field.name], *chosen.get(field.name, [])), field.metadata["meaning"])
            for field in dataclasses.fields(cls.knobs_type)
        ]
        of = open_knobs(cls.knobs_type)
        held = (*cls.constraints(kernel, of), *cls.limits(kernel, of, target))
        return Space(cls.name, tuple(knobs), held if not isinstance(default, Strategy) else suited(held, default.point))

    @classmethod
    def at(cls: type[Chosen], found: Analysis, target: Target, point: Mapping[str, int]) -> Chosen | str:
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        assert isinstance(target, GpuTarget)
        names = [field.name for field in dataclasses.fields(cls.knobs_type)]
        return wrong_names(names, point) or cls._checked(kernel, cls.knobs_type(**point), target)

    @classmethod
    def _checked(cls: type[Chosen], kernel: Kernel, knobs: Any, target: Target | None) -> Chosen | str:
        if (problem := cls.check(kernel, knobs)) is not None:
            return problem
        if isinstance(target, GpuTarget):
            limits = cls.limits(kernel, open_knobs(cls.knobs_type), target)
            if (
                problem := cls.why_not_on(kernel, target)
                or first_problem(limits, dataclasses.asdict(knobs), laws_only=True)
            ) is not None:
                return problem
        return cls(kernel, knobs)

    @property
    def point(self) -> dict[str, int]:
        return dataclasses.asdict(self.knobs)

    @abstractmethod
    def emit(self, interface: Interface) -> None:
        """Writes what one thread does."""

    @property
    @abstractmethod
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        """For each axis of the grid, x first: an extent, and how much of it one workgroup has."""

    @classmethod
    def from_attribute(
        cls: type[Chosen], schedule: mlir.Attribute, found: Analysis, target: Target | None = None
    ) -> Chosen | str:
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        return cls._checked(kernel, read_knobs(schedule, cls.knobs_type), target)

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


__all__ = ["THREADS", "TILES_STICK_OUT", "KernelStrategy", "Strategy", "knob", "open_knobs", "powers", "ranges"]


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


def open_knobs(type_: type[Knobs]) -> Knobs:
    """Knobs that are not chosen yet: each is a variable of its name."""
    return type_(**{field.name: Var(field.name) for field in dataclasses.fields(type_)})  # type: ignore[arg-type]


def powers(of: Any, *names: str) -> list[Constraint]:
    """Knobs that must be powers of two."""
    return [law(power_of_two(getattr(of, name)), f"{name} is {{{name}}}; it must be a power of two") for name in names]


def ranges(of: Any, low: int, high: int, *names: str) -> list[Constraint]:
    """Knobs that must be within bounds."""
    words = f"it must be {low} or {high}" if high == low + 1 else f"it must be {low} to {high}"
    return [law(between(low, getattr(of, name), high), f"{name} is {{{name}}}; {words}") for name in names]


def at_most_threads(of: Any, name: str) -> Constraint:
    return law(getattr(of, name) <= of.threads, f"{name} is {{{name}}}; it must be at most threads")


def within_the_device(threads: Int, target: GpuTarget) -> tuple[Constraint, ...]:
    most = target.max_threads
    return (law(between(1, threads, most), f"threads is {{threads}}; a workgroup of the device has 1 to {most}"),)
