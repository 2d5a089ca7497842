"""The dispatches of a model, each with what it takes to run it by itself, and its part of the model's time."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch_mlir import ir as mlir

from eyas.cache.digest import key_of
from eyas.codegen.common.flops import count_flops
from eyas.dialects import codegen, flow
from eyas.errors import EyasError, UsageError
from eyas.ir.walk import constant_int, find_ops
from eyas.pipelines import driver
from eyas.pipelines.compilation import Compilation
from eyas.pipelines.request import Phase, Request, Services
from eyas.program.parameters import Parameter
from eyas.runtime import Event, Module
from eyas.targets import Target
from eyas.tune.program import Operand, Tensor, small_program, tensors_of


@dataclass(frozen=True)
class Dispatch:
    """An executable of a model and one of its calls. `function` is its op after the schedule phase, whose module
    `model` keeps."""

    name: str
    key: str
    """Digest of what is computed and of which operands are constant: the same in every model that has it."""
    target: Target
    operands: tuple[Operand, ...]
    results: tuple[Tensor, ...]
    constants: tuple[int, ...]
    weights: dict[str, Parameter] = field(repr=False, compare=False)
    """Of the operands that are constant in the model, by their keys there."""
    function: mlir.OpView = field(repr=False, compare=False)
    model: Compilation = field(repr=False, compare=False)
    calls: int = 1
    """How often the model runs it in a call."""
    us: float = 0.0
    """What all of its calls take of a call of the model; 0 where that was not measured."""
    share: float = 0.0
    flops: int | None = None
    """Of one call."""

    @property
    def bytes(self) -> int:
        """Of operands and results, each once."""
        return sum(one.tensor.nbytes for one in self.operands) + sum(one.nbytes for one in self.results)

    @property
    def is_fixed(self) -> bool:
        """Whether its strategy is a consequence of something else, so that there is nothing to choose."""
        return flow.IN_PLACE in self.function.attributes

    def text(self, copies: int = 1) -> str:
        """The small program after the schedule phase."""
        with self.function.operation.context, mlir.Location.unknown():
            return small_program(self.function, self.operands, self.results, self.constants, copies)

    def __str__(self) -> str:
        operands = ", ".join(f"{one.tensor}{' constant' if one.weight else ''}" for one in self.operands)
        return f"{self.name}({operands}) -> {', '.join(map(str, self.results))}"


@dataclass(frozen=True)
class Model:
    """A model that is compiled as it is by default, with its dispatches, the longest first."""

    request: Request
    module: Module
    inputs: tuple[Any, ...]
    dispatches: tuple[Dispatch, ...]
    skipped: dict[str, str]
    """Dispatches that cannot run by themselves, and why."""
    call_us: float = 0.0

    def find(self, name: str) -> Dispatch:
        """A dispatch by its name or a part of it that no other has."""
        exact = [one for one in self.dispatches if one.name == name]
        found = exact or [one for one in self.dispatches if name in one.name]
        if len(found) == 1:
            return found[0]
        names = [one.name for one in self.dispatches]
        if name in self.skipped:
            raise UsageError(f"dispatch '{name}' cannot run by itself: {self.skipped[name]}")
        if found:
            raise UsageError(f"'{name}' is a part of several names: {', '.join(one.name for one in found)}")
        near = difflib.get_close_matches(name, names, 1, 0.3)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise UsageError(f"no dispatch is called '{name}'{hint} There are: {', '.join(names)}")


def open_model(
    request: Request,
    make_inputs: Any,
    device: Any = None,
    threads: int | None = None,
    services: Services | None = None,
    runs: int = 5,
) -> Model:
    """Compiles a model for its one target as it is by default, runs it, and finds its dispatches. `make_inputs` gives
    the arrays of a call for the signature of the entry point."""
    target = driver.only_target(request)
    compilation = driver.run(replace(request, last=Phase.SCHEDULE), services)
    module = driver.compile(request, services).load(device, threads)
    entry = "main" if "main" in module.functions else next(iter(module.functions))
    inputs = tuple(make_inputs(module.functions[entry].signature))
    events = module.profile(*inputs, runs=runs, entry=entry)
    found, skipped = dispatches_of(compilation, target, events)
    spans = [_span_us(run) for run in events]
    return Model(request, module, inputs, tuple(found), skipped, float(np.median(spans)) if spans else 0.0)


def dispatches_of(
    compilation: Compilation, target: Target, events: Sequence[Sequence[Event]] = ()
) -> tuple[list[Dispatch], dict[str, str]]:
    """The dispatches of a program after the schedule phase, the longest first, and why others cannot run by
    themselves. `events` are profiled calls of the compiled program: times, and sizes that are known only then."""
    times, constants = _measured(events)
    total = sum(times.values())
    found, skipped = [], {}
    with compilation.module.context, mlir.Location.unknown():
        executables = {op.attributes["sym_name"].value: op for op in compilation.module.body.operations
                       if flow.is_executable(op)}  # fmt: skip
        calls: dict[str, list[mlir.OpView]] = {}
        for op in find_ops(compilation.module, "stream.dispatch"):
            calls.setdefault(op.callee.value, []).append(op)
        for name, function in executables.items():
            try:
                one = _dispatch(name, function, calls.get(name, []), compilation, target, constants.get(name))
            except (UsageError, EyasError) as error:
                skipped[name] = str(error)
                continue
            us = times.get(name, 0.0)
            found.append(replace(one, us=us, share=us / total if total else 0.0))
    return sorted(found, key=lambda one: -one.us), skipped


def _dispatch(
    name: str,
    function: mlir.OpView,
    calls: Sequence[mlir.OpView],
    compilation: Compilation,
    target: Target,
    seen: tuple[int, ...] | None,
) -> Dispatch:
    if not calls:
        raise UsageError("nothing calls it")
    call = calls[0]
    constants = [constant_int(value) for value in call.constants]
    if None in constants:
        if seen is None or len(seen) != len(constants):
            raise UsageError("its sizes are known only in a call, and no call was profiled that runs it")
        constants = list(seen)
    numbers = tuple(int(one) for one in constants if one is not None)
    inputs, results = tensors_of(function, numbers)
    weights: dict[str, Parameter] = {}
    operands = []
    for tensor, resource in zip(inputs, call.resources, strict=False):
        # A weight in every call is one here; the values are those of the first.
        position = len(operands)
        key = _weight(resource) if all(_weight(list(one.resources)[position]) for one in calls) else None
        if key is not None and key in compilation.parameters and compilation.parameters[key].nbytes == tensor.nbytes:
            weights[key] = compilation.parameters[key]
        else:
            key = None
        operands.append(Operand(tensor, key))
    key = key_of("dispatch", _plain_text(function), [one.weight is not None for one in operands])
    flops = count_flops(function)
    return Dispatch(
        name, key, target, tuple(operands), tuple(results), numbers, weights, function, compilation, len(calls),
        flops=flops if flops and flops > 0 else None,
    )  # fmt: skip


def _weight(resource: mlir.Value) -> str | None:
    """The key of a weight that is read as a whole."""
    owner = resource.owner
    is_weight = not isinstance(owner, mlir.Block) and owner.name == "stream.parameter"
    return mlir.StringAttr(owner.attributes["key"]).value if is_weight else None


def _plain_text(function: mlir.OpView) -> str:
    """What is computed, without names, places and what was chosen for it."""
    single = mlir.Module.create(mlir.Location.unknown())
    with mlir.InsertionPoint(single.body):
        copy = function.operation.clone()
    copy.attributes["sym_name"] = mlir.StringAttr.get("dispatch")
    for name in (codegen.STRATEGY, codegen.REJECTED, codegen.REMARKS):
        if name in copy.attributes:
            del copy.attributes[name]
    for op in find_ops(copy, *{inner.operation.name for inner in copy.regions[0].blocks[0].operations}):
        if flow.NOT_FUSED in op.operation.attributes:
            del op.operation.attributes[flow.NOT_FUSED]
    return single.operation.get_asm(enable_debug_info=False, assume_verified=True)


def _measured(events: Sequence[Sequence[Event]]) -> tuple[dict[str, float], dict[str, tuple[int, ...]]]:
    """By kernel: microseconds of all its dispatches in the median call, and the push constants of its longest one."""
    runs: dict[str, list[float]] = {}
    constants: dict[str, tuple[float, tuple[int, ...]]] = {}
    for number, run in enumerate(events):
        for event in run:
            times = runs.setdefault(event.name, [0.0] * len(events))
            times[number] += event.duration_us if event.end_ns else 0.0
            if event.name not in constants or event.duration_us > constants[event.name][0]:
                constants[event.name] = event.duration_us, tuple(event.constants)
    return {name: float(np.median(times)) for name, times in runs.items()}, {k: v[1] for k, v in constants.items()}


def _span_us(run: Sequence[Event]) -> float:
    ran = [event for event in run if event.end_ns]
    return (max(e.end_ns for e in ran) - min(e.start_ns for e in ran)) / 1e3 if ran else 0.0
