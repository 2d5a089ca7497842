"""What a compilation is asked for and what it may use, apart: a frozen `Request` decides the result, `Services` do not.

Nothing of MLIR or LLVM is imported here: a module from the cache is there before they would be.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyas.cache.store import Store
from eyas.errors import CompileWarning, UsageError
from eyas.specs import SpecSource, shipped
from eyas.targets import Target

if TYPE_CHECKING:
    from eyas.pipelines.compilation import Compilation


class Phase(Enum):
    """A phase, named after the IR that it leaves behind."""

    INPUT = "input"
    OPTIMIZE = "optimize"
    DISPATCH = "dispatch"
    SCHEDULE = "schedule"
    HAL = "hal"
    CODEGEN = "codegen"
    VM = "vm"

    @property
    def description(self) -> str:
        return _DESCRIPTIONS[self]

    @property
    def ordinal(self) -> int:
        return list(Phase).index(self)


_DESCRIPTIONS = {
    Phase.INPUT: "linalg, tensor and arith on tensors, as the frontends leave it",
    Phase.OPTIMIZE: "the same, fused and simplified, constants evaluated",
    Phase.DISPATCH: "flow: executables and dispatches",
    Phase.SCHEDULE: "stream: buffers, one arena, barriers",
    Phase.HAL: "hal: command buffers and bindings",
    Phase.CODEGEN: "hal with machine code",
    Phase.VM: "vm instructions",
}


PRECISIONS = ("f16", "bf16")
"""Types that programs in f32 may be lowered to; see `lower-precision`."""


@dataclass(frozen=True)
class Options:
    """What the passes of one target's compilation are told. `disable` names passes and strategies to leave out;
    `precision` is one of `PRECISIONS`, None for what the model has."""

    target: Target = field(default_factory=Target.host)
    disable: tuple[str, ...] = ()
    max_arena_bytes: int = 0
    precision: str | None = None
    specs: tuple[SpecSource, ...] = ()
    """Tuning specs in order, also those that come with the package."""


@dataclass(frozen=True)
class Request:
    """One compilation: all that its result depends on.

    `model` is what the frontends take with one call's `inputs` and `kwargs`, a mapping of entry points, or an
    `ImportedProgram`, which is compiled from a copy. With `after` that program is what this phase left (see `dumps`),
    and compilation goes on from there; it ends with the phase `last`.
    """

    model: Any
    inputs: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None
    carry: Mapping[int, int] | None = None
    targets: tuple[Target, ...] = field(default_factory=lambda: (Target.host(),))
    disable: tuple[str, ...] = ()
    max_arena_bytes: int = 0
    precision: str | None = None
    after: Phase | None = None
    last: Phase = Phase.VM
    external_weights: Path | None = None
    """A safetensors file for the weights, which then stays beside the module."""
    tuning_specs: tuple[SpecSource, ...] = ()
    """Where several match a dispatch, the first decides."""
    default_specs: bool = True
    """Whether specs that come with the package apply as well, after these."""

    def __post_init__(self) -> None:
        if not self.targets:
            raise UsageError("a compilation needs at least one target")
        if self.precision not in (None, *PRECISIONS):
            raise UsageError(f"precision '{self.precision}' is none of {', '.join(PRECISIONS)}")
        if self.tuning_specs and Phase.SCHEDULE not in self.phases:
            raise UsageError(
                f"a tuning spec is applied in the phase '{Phase.SCHEDULE.value}', which is not run here"
                f" ({', '.join(phase.value for phase in self.phases) or 'no phase'} would be)"
            )

    @property
    def phases(self) -> list[Phase]:
        """Those that have to be run."""
        return list(Phase)[0 if self.after is None else self.after.ordinal + 1 : self.last.ordinal + 1]

    @property
    def gives_inputs(self) -> bool:
        """Whether anything is said about the model's call."""
        return bool(self.inputs or self.kwargs or self.dynamic_shapes is not None or self.carry)

    def options(self, target: Target) -> Options:
        """What the passes are told when they compile for one of the targets."""
        return Options(target, self.disable, self.max_arena_bytes, self.precision, self.specs(target))

    def specs(self, target: Target) -> tuple[SpecSource, ...]:
        """The tuning specs of one of the targets, the user's before those that come with the package."""
        if "apply-tuning-spec" in self.disable:
            return ()
        return (*self.tuning_specs, *(shipped(target.backend) if self.default_specs else ()))


class Watcher:
    """Hears what a compilation does, between `__enter__` and `__exit__`. Kernels report from several threads."""

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def on_start(self, compilation: Compilation) -> None:
        """The program is there, for one target, and no phase has begun."""

    def on_phase(self, phase: Phase, compilation: Compilation) -> None:
        """A phase begins."""

    def on_pass(self, name: str, seconds: float) -> None:
        """A pass of the phase is done."""

    def on_kernel(self, name: str, seconds: float | None) -> None:
        """A kernel was compiled, in so much processor time, or found in the cache: None."""

    def on_warning(self, message: str) -> None:
        """Something is not as good as it should be, and right all the same."""


class WarnAsPython(Watcher):
    """Warnings as Python has them, which users can filter or make errors of."""

    def on_warning(self, message: str) -> None:
        warnings.warn(message, CompileWarning, stacklevel=2)


@dataclass(frozen=True)
class Services:
    """What a compilation uses and what its result does not depend on.

    `store` is where compiled code is looked for and kept, None for nowhere; `workers` the number of processes that
    compile kernels, 0 for one per CPU; `dump` a folder for the program after each phase.
    """

    store: Store | None = None
    workers: int = 0
    dump: Path | None = None
    watchers: tuple[Watcher, ...] = (WarnAsPython(),)

    def on_start(self, compilation: Compilation) -> None:
        for watcher in self.watchers:
            watcher.on_start(compilation)

    def on_phase(self, phase: Phase, compilation: Compilation) -> None:
        for watcher in self.watchers:
            watcher.on_phase(phase, compilation)

    def on_pass(self, name: str, seconds: float) -> None:
        for watcher in self.watchers:
            watcher.on_pass(name, seconds)

    def on_kernel(self, name: str, seconds: float | None) -> None:
        for watcher in self.watchers:
            watcher.on_kernel(name, seconds)

    def on_warning(self, message: str) -> None:
        for watcher in self.watchers:
            watcher.on_warning(message)
