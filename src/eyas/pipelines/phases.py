"""The seven phases. Each takes and gives valid MLIR text, so any of them can be dumped, edited and resumed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from eyas.codegen.backends import all_switches, backend_of
from eyas.errors import UsageError
from eyas.ir import Pass, PassPipeline, Upstream
from eyas.passes import lookup
from eyas.pipelines.request import Options, Phase
from eyas.targets import Target

OPTIONAL_PASSES = (
    "speculate-branches",
    "count-loops",
    "batch-loops",
    "outline-control-flow",
    "convert-sorts",
    "widen-accumulators",
    "quantize-contractions",
    "narrow-contractions",
    "skip-inserted-zeros",
    "convert-conv-layout",
    "propagate-transposes",
    "split-reductions",
    "propagate-reshapes",
    "trim-windows",
    "fuse-gathers",
    "fold-scales",
    "winograd",
    "evaluate-constants",
    "compose-copies",
    "fuse-attention",
    "lower-precision",
    "unify-dimensions",
    "fold-index-ranges",
    "form-dispatches",
    "deduplicate-executables",
    "apply-tuning-spec",
    "write-state-in-place",
    "reuse-in-place",
    "plan-memory",
    "insert-barriers",
    "pack-weights",
)
"""Passes that a program compiles without, in the order in which it meets them."""

PLAIN_FORMS = ("form-dispatches", "insert-barriers")
"""Passes that still run when they are switched off, but make no choice: each op alone, each dispatch after the last."""


def switches(target: Target) -> tuple[str, ...]:
    """Passes and strategies that a program for this target compiles without, in the order in which it meets them."""
    return (*OPTIONAL_PASSES, *backend_of(target).switches)


def check_disabled(names: Iterable[str]) -> None:
    """Refuses names that are unknown, or without which nothing compiles."""
    if unknown := [name for name in names if name not in OPTIONAL_PASSES]:
        allowed = (*OPTIONAL_PASSES, *all_switches())
        for name in unknown:
            if name not in allowed:
                near = difflib.get_close_matches(name, allowed, 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                raise UsageError(f"'{name}' cannot be disabled{hint}; what can: {', '.join(allowed)}")


def pipeline(phase: Phase, options: Options) -> PassPipeline:
    """The passes that lead into a phase, without their tools."""
    check_disabled(options.disable)
    off = set(options.disable) - set(PLAIN_FORMS)
    steps = [step for step in _STEPS[phase](options) if getattr(step, "name", "") not in off]
    return PassPipeline(tuple(steps))


def _make(name: str, **options: object) -> Pass:
    found = lookup(name)
    assert found is not None, name
    return found(**options)


def _strategies(options: Options) -> dict[str, Any]:
    """What passes are told that ask which strategies there are."""
    return {"target": options.target, "disable": options.disable}


def _bindings(options: Options) -> dict[str, Any]:
    """What passes are told that bound the tensors of a dispatch."""
    return {"max_bindings": options.target.limits.max_bindings}


def _input(options: Options) -> list[Pass | Upstream]:
    return [_make("verify-input-contract")]


def _optimize(options: Options) -> list[Pass | Upstream]:
    return [
        Upstream("inline,convert-elementwise-to-linalg,canonicalize,cse,loop-invariant-code-motion"),
        _make("speculate-branches"),
        _make("count-loops"),
        _make("batch-loops"),
        _make("outline-control-flow", **_strategies(options)),
        _make("convert-sorts", keep="sort" in {*backend_of(options.target).switches} - {*options.disable}),
        _make("widen-accumulators"),
        _make("quantize-contractions"),
        _make("narrow-contractions"),
        _make("skip-inserted-zeros"),
        _make("convert-conv-layout"),
        _make("propagate-transposes"),
        Upstream("canonicalize,cse"),
        _make("split-reductions", target=options.target),
        _make("propagate-reshapes"),
        _make("trim-windows"),
        _make("fuse-gathers"),
        *(_change_filters(options) if "evaluate-constants" not in options.disable else []),
        _make("evaluate-constants"),
        Upstream("canonicalize,cse"),
        _make("compose-copies"),
        Upstream("canonicalize,cse"),
        _make("fuse-attention", target=options.target),
        *_lower_precision(options),
    ]


def _lower_precision(options: Options) -> list[Pass | Upstream]:
    """Last, on what runs and not on what was written; then weights are rounded, once."""
    if options.precision is None or "lower-precision" in options.disable:
        return []
    lower = _make("lower-precision", target=options.target, to=options.precision)
    return [lower, Upstream("canonicalize,cse"), _make("evaluate-constants"), Upstream("canonicalize,cse")]


def _change_filters(options: Options) -> list[Pass | Upstream]:
    """What filters go through in `evaluate-constants`; in each call it would cost more than it saves."""
    # Transforms of narrow numbers lose more than a product of them does.
    has_transforms = "transforms" in backend_of(options.target).switches and options.precision is None
    return [_make("fold-scales"), *([_make("winograd", target=options.target)] if has_transforms else [])]


def _dispatch(options: Options) -> list[Pass | Upstream]:
    return [
        _make("split-concats", **_bindings(options)),
        # Sizes first: once ops are in executables, nobody can ask them for their shapes.
        _make("convert-float-sizes"),
        _make("tie-shapes"),
        Upstream("lower-affine,canonicalize,cse"),
        _make("check-nested-shapes"),
        _make("unify-dimensions"),
        _make("fold-index-ranges"),
        Upstream("canonicalize,cse"),
        _make("check-shapes"),
        _make("fold-index-ranges"),
        Upstream("canonicalize,cse"),
        _make("convert-reshapes-to-flow"),
        _make(
            "form-dispatches",
            target=options.target,
            fuse="form-dispatches" not in options.disable,
            **_bindings(options),
        ),
        _make("pack-bindings", **_bindings(options)),
        _make("outline-dispatches"),
        Upstream("cse"),
        _make("deduplicate-executables"),
    ]


def _schedule(options: Options) -> list[Pass | Upstream]:
    return [
        # Before anybody asks which strategy there will be.
        _make("apply-tuning-spec", **_strategies(options)),
        _make("convert-flow-to-stream"),
        Upstream("cse"),
        _make("write-state-in-place", **_strategies(options)),
        _make("reuse-in-place", **_strategies(options)),
        _make("plan-memory", max_arena_bytes=options.max_arena_bytes),
        Upstream("cse"),
        _make("insert-barriers", overlap="insert-barriers" not in options.disable),
    ]


def _hal(options: Options) -> list[Pass | Upstream]:
    return [
        _make("convert-stream-to-hal"),
        Upstream("cse"),
        _make("note-alignment", target=options.target),
        # Chosen here and not in codegen, so that a dump of this phase can be edited and resumed.
        _make("select-strategies", **_strategies(options)),
        _make("pack-weights"),
    ]


def _codegen(options: Options) -> list[Pass | Upstream]:
    return [
        # While loops can still be read.
        _make("note-work"),
        # What was noted may have been edited since, or lies in a dump of another day.
        _make("verify-schedules", target=str(options.target)),
        _make("compile-executables", **_strategies(options)),
        _make("split-bindings", target=options.target),
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
