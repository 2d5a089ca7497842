"""`verify-schedules`: what schedules take for granted of their surroundings holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.common.analysis import Analysis, analysis_of
from eyas.codegen.common.backend import Backend
from eyas.codegen.common.schedule import packed_of
from eyas.dialects import codegen, flow, hal
from eyas.errors import CompileError
from eyas.ir.walk import constant_int, defining_op, find_ops
from eyas.passes.targeted import TargetedPass


@dataclass(frozen=True)
class VerifySchedules(TargetedPass):
    """Refuses schedules that do not fit their loops, or what was decided with them: weights in panels, results in
    place of operands. Both are decided once for a schedule, and then the schedule may be edited in a dump.
    """

    name: ClassVar[str] = "verify-schedules"
    analyses: dict[str, Analysis] = field(default_factory=dict, compare=False, repr=False)

    def run(self, module: mlir.Module) -> None:
        backend = backend_of(self.target)
        executables = {op.attributes["sym_name"].value: op for op in module.body.operations if flow.is_executable(op)}
        for function in executables.values():
            if codegen.STRATEGY in function.attributes:
                found = analysis_of(function, self.analyses, self.target.near_bytes)
                backend.check_noted(function, found, self.target)
        for dispatch in find_ops(module, "hal.dispatch"):
            function = executables.get(dispatch.callee.value)
            if function is not None and codegen.STRATEGY in function.attributes:
                _check_panels(dispatch, function)
                _check_in_place(dispatch, function, backend)


def _check_panels(dispatch: hal.DispatchOp, function: mlir.OpView) -> None:
    packed = {panels.binding: panels.lanes for panels in packed_of(function.attributes[codegen.STRATEGY].schedule)}
    for binding, place in enumerate(_places(dispatch)):
        source = defining_op(place[0]) if isinstance(place[0], mlir.Value) else None
        parameter = source if source is not None and source.name == "hal.parameter" else None
        panels = parameter is not None and codegen.PANELS in parameter.attributes
        lies = parameter.attributes[codegen.PANELS].value if parameter is not None and panels else 0
        if lies == packed.get(binding, 0):
            continue
        what = f"parameter '{parameter.attributes['key'].value}'" if parameter is not None else "that buffer"
        raise CompileError(
            f"executable '{_name(function)}': packed says that binding {binding} lies {_said(packed.get(binding, 0))},"
            f" but {what} lies {_said(lies)}. Weights are packed once, for the tile that the schedule had then; to have"
            " them packed for another one, note the strategy without `packed` on the dump of the phase before"
            " (4.schedule.mlir) and resume from there"
        )


def _check_in_place(dispatch: hal.DispatchOp, function: mlir.OpView, backend: Backend) -> None:
    strategy = backend.noted_strategy(function)
    if strategy.works_in_place or flow.IN_PLACE in function.attributes:
        return
    places, access = _places(dispatch), list(dispatch.access)
    # What has no bytes may lie anywhere.
    empty = {binding for binding, length in enumerate(dispatch.lengths) if constant_int(length) == 0}
    for result in (binding for binding, kind in enumerate(access) if kind > 1 and binding not in empty):
        others = [binding for binding in range(len(places)) if binding != result and binding not in empty]
        shared = [binding for binding in others if places[binding] == places[result]]
        if shared:
            able = ", ".join(one.name for one in backend.strategies if one.works_in_place)
            raise CompileError(
                f"executable '{_name(function)}' cannot use the strategy '{strategy.name}' as noted: binding {result}"
                f" is written where binding {shared[0]} is read, which it does not allow; those that do: {able}."
                " Compile with `--disable reuse-in-place` to give results places of their own"
            )


def _places(dispatch: hal.DispatchOp) -> list[tuple[mlir.Value | int, mlir.Value | int]]:
    """Of each binding the buffer, or the slot of the submission's table, and the offset in it."""
    buffers = iter(dispatch.buffers)
    offsets = [constant_int(offset) if constant_int(offset) is not None else offset for offset in dispatch.offsets]
    return [(next(buffers) if slot < 0 else slot, offset) for slot, offset in zip(dispatch.slots, offsets, strict=True)]


def _said(lanes: int) -> str:
    return f"in panels of {lanes} lanes" if lanes else "in its own order"


def _name(function: mlir.OpView) -> str:
    return function.attributes["sym_name"].value
