"""The seven phases. Each takes and gives valid MLIR text, so any of them can be dumped, edited and resumed."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from eyas.cache.store import Store
from eyas.errors import UsageError
from eyas.ir import Pass, PassPipeline, Upstream
from eyas.passes import lookup


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


@dataclass(frozen=True)
class Options:
    """What changes the compiled code. `disable` names passes and strategies to leave out, for bisecting."""

    target: str = "llvm-cpu"
    disable: tuple[str, ...] = ()
    max_arena_bytes: int = 0
    workers: int = 0
    parameters: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Weights by name; passes that evaluate constants read and extend it."""
    analyses: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Loop nests of dispatch functions by their text, so that passes read each function once."""
    on_kernel: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    store: Store | None = field(default=None, compare=False, repr=False)
    """Where compiled dispatches are kept; None to compile them all."""


OPTIONAL = (
    "widen-accumulators",
    "quantize-contractions",
    "narrow-contractions",
    "convert-conv-layout",
    "propagate-transposes",
    "propagate-reshapes",
    "trim-windows",
    "fuse-gathers",
    "fold-scales",
    "winograd",
    "evaluate-constants",
    "compose-copies",
    "fuse-attention",
    "unify-dimensions",
    "fold-index-ranges",
    "form-dispatches",
    "deduplicate-executables",
    "write-state-in-place",
    "reuse-in-place",
    "plan-memory",
    "insert-barriers",
    "pack-weights",
    "microkernels",
    "transforms",
    "contraction",
    "windows",
    "attention",
    "rows",
    "expand-math",
    "optimize-llvm",
)
"""Passes and strategies that a program compiles without, in the order in which it meets them."""

NEEDED_IN_PLACE = ("rows", "contraction", "transforms", "microkernels")
"""Without one of these, plain loops take over, and nothing is written in place."""

PLAIN_FORMS = ("form-dispatches", "insert-barriers")
"""Passes that still run when they are switched off, but make no choice: each op alone, each dispatch after the last."""


def check_disabled(names: tuple[str, ...]) -> None:
    """Refuses names that are unknown, or without which nothing compiles."""
    for name in names:
        if name not in OPTIONAL:
            near = difflib.get_close_matches(name, OPTIONAL, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise UsageError(f"'{name}' cannot be disabled{hint}; what can: {', '.join(OPTIONAL)}")


def pipeline(phase: Phase, options: Options) -> PassPipeline:
    """The passes that lead into a phase."""
    check_disabled(options.disable)
    off = set(options.disable) - set(PLAIN_FORMS)
    steps = [step for step in _STEPS[phase](options) if getattr(step, "name", "") not in off]
    return PassPipeline(tuple(steps))


def _make(name: str, **options: object) -> Pass:
    found = lookup(name)
    assert found is not None, name
    return found(**options)


def _input(options: Options) -> list[Pass | Upstream]:
    return [_make("verify-input-contract")]


def _optimize(options: Options) -> list[Pass | Upstream]:
    return [
        Upstream("inline,convert-elementwise-to-linalg,canonicalize,cse"),
        _make("widen-accumulators"),
        _make("quantize-contractions"),
        _make("narrow-contractions"),
        _make("convert-conv-layout"),
        _make("propagate-transposes"),
        Upstream("canonicalize,cse"),
        _make("propagate-reshapes"),
        _make("trim-windows"),
        _make("fuse-gathers"),
        *(_change_filters(options) if "evaluate-constants" not in options.disable else []),
        _make("evaluate-constants", parameters=options.parameters, disable=options.disable, store=options.store),
        Upstream("canonicalize,cse"),
        _make("compose-copies"),
        Upstream("canonicalize,cse"),
        _make("fuse-attention"),
    ]


def _change_filters(options: Options) -> list[Pass | Upstream]:
    """What filters go through in `evaluate-constants`; in each call it would cost more than it saves."""
    return [_make("fold-scales"), _make("winograd", target=options.target)]


def _dispatch(options: Options) -> list[Pass | Upstream]:
    return [
        # Sizes first: once ops are in executables, nobody can ask them for their shapes.
        _make("convert-float-sizes"),
        _make("tie-shapes"),
        Upstream("lower-affine,canonicalize,cse"),
        _make("unify-dimensions"),
        _make("fold-index-ranges"),
        Upstream("canonicalize,cse"),
        _make("check-shapes"),
        _make("fold-index-ranges"),
        Upstream("canonicalize,cse"),
        _make("convert-reshapes-to-flow"),
        _make("form-dispatches", fuse="form-dispatches" not in options.disable),
        _make("outline-dispatches"),
        Upstream("cse"),
        _make("deduplicate-executables"),
    ]


def _schedule(options: Options) -> list[Pass | Upstream]:
    strategies_off = set(NEEDED_IN_PLACE) & set(options.disable)
    where = {"target": options.target, "disable": options.disable, "analyses": options.analyses}
    return [
        _make("convert-flow-to-stream"),
        Upstream("cse"),
        *([] if strategies_off else [_make("write-state-in-place", **where)]),
        # Only loop nests know where they read and write; plain loops assume that buffers do not overlap.
        *([] if strategies_off else [_make("reuse-in-place", **where)]),
        _make("plan-memory", max_arena_bytes=options.max_arena_bytes),
        Upstream("cse"),
        _make("insert-barriers", overlap="insert-barriers" not in options.disable),
    ]


def _hal(options: Options) -> list[Pass | Upstream]:
    return [
        _make("convert-stream-to-hal"),
        Upstream("cse"),
        # Chosen here and not in codegen, so that a dump of this phase can be edited and resumed.
        _make("select-strategies", target=options.target, disable=options.disable, analyses=options.analyses),
        _make("pack-weights", parameters=options.parameters),
    ]


def _codegen(options: Options) -> list[Pass | Upstream]:
    return [
        # What was noted may have been edited since, or lies in a dump of another day.
        _make("verify-schedules", target=options.target, analyses=options.analyses),
        _make(
            "compile-executables",
            target=options.target,
            disable=options.disable,
            workers=options.workers,
            on_done=options.on_kernel,
            store=options.store,
        ),
    ]


def _vm(options: Options) -> list[Pass | Upstream]:
    return [_make("convert-hal-to-vm"), Upstream("cse")]


_STEPS = {
    Phase.INPUT: _input,
    Phase.OPTIMIZE: _optimize,
    Phase.DISPATCH: _dispatch,
    Phase.SCHEDULE: _schedule,
    Phase.HAL: _hal,
    Phase.CODEGEN: _codegen,
    Phase.VM: _vm,
}
