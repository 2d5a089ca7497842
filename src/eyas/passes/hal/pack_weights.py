"""`pack-weights`: weights of contractions are stored in the order in which kernels read them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.panels import pack
from eyas.codegen.common.schedule import Panels, Schedule, panels_from_attribute
from eyas.dialects import codegen, flow
from eyas.ir import Pass
from eyas.ir.walk import constant_int, find_ops
from eyas.program.parameters import ParameterStore, on_disk

_IN_PANELS = "#panels"
"""Between the name of a weight and the lanes of its panels."""

Place = tuple[str, int]
"""A binding of an executable."""


@dataclass(frozen=True)
class _Wish:
    """Panels that a strategy would like at a place."""

    lanes: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class PackWeights(Pass):
    """Where a strategy would rather read an operand in panels, and that operand is a weight in every dispatch and is
    read in no other way, the weight is stored in panels.

        hal.parameter "w"                            @f {codegen.packable = [{binding = 0, lanes = 64}]}
      becomes
        hal.parameter "w#panels64" {panels = 64}     @f {strategy {packed = [{binding = 0, lanes = 64}], ...}}

    A schedule that has `packed` before its weights are, by hand or from a spec, wants them packed so.
    """

    name: ClassVar[str] = "pack-weights"
    parameters: ParameterStore = field(default_factory=ParameterStore, compare=False, repr=False)

    def run(self, module: mlir.Module) -> None:
        executables = {op.attributes["sym_name"].value: op for op in module.body.operations if flow.is_executable(op)}
        wishes = _wishes(executables)
        uses = _uses(module)
        keys = self._agreed(wishes, uses)
        for op in find_ops(module, "hal.parameter"):
            key = op.operation.attributes["key"].value
            if key in keys:
                wish = wishes[uses[key][0]]
                op.operation.attributes["key"] = mlir.StringAttr.get(self._packed(key, wish))
                op.operation.attributes[codegen.PANELS] = mlir.IntegerAttr.get(_i64(), wish.lanes)
        packed = {place for key in keys for place in uses[key]}
        for name, function in executables.items():
            bindings = sorted(binding for executable, binding in packed if executable == name)
            if bindings:
                note_packed(function, [Panels(binding, wishes[name, binding].lanes) for binding in bindings])
            if codegen.PACKABLE in function.attributes:
                del function.attributes[codegen.PACKABLE]

    def _agreed(self, wishes: dict[Place, _Wish], uses: dict[str | None, list[Place]]) -> set[str]:
        """Weights that can be packed: every place that reads one wants the same panels, and reads nothing else."""
        live = set(wishes)
        while True:
            keys = {
                key
                for key, places in uses.items()
                if key is not None
                and all(place in live for place in places)
                and len({wishes[place] for place in places}) == 1
                and self._has_elements(key, wishes[places[0]].shape)
            }
            unfit = {place for key, places in uses.items() if key not in keys for place in places}
            if not live & unfit:
                return keys
            live -= unfit

    def _has_elements(self, key: str, shape: tuple[int, ...]) -> bool:
        return key not in self.parameters or math.prod(self.parameters[key].shape) == math.prod(shape)

    def _packed(self, key: str, wish: _Wish) -> str:
        name = f"{key}{_IN_PANELS}{wish.lanes}"
        if key in self.parameters and name not in self.parameters:  # `eyas opt` has no values
            (array,) = on_disk([pack(self.parameters[key].array().reshape(wish.shape), wish.lanes)])
            self.parameters.add(name, array)
        return name


def unpacked_key(key: str) -> str:
    """The weight that a packed one was made of."""
    return key.rpartition(_IN_PANELS)[0] or key


def _wishes(executables: dict[str, mlir.OpView]) -> dict[Place, _Wish]:
    found: dict[Place, _Wish] = {}
    for name, function in executables.items():
        schedule = _schedule_of(function)
        wanted = () if schedule is None else schedule.packed
        if codegen.PACKABLE in function.attributes:
            wanted = (*wanted, *panels_from_attribute(function.attributes[codegen.PACKABLE]))
        inputs = mlir.FunctionType(function.attributes["function_type"].value).inputs
        tensors = [type_ for type_ in inputs if isinstance(type_, mlir.RankedTensorType)]
        for panels in wanted:
            found[name, panels.binding] = _Wish(panels.lanes, tuple(tensors[panels.binding].shape))
    return found


def _uses(module: mlir.Module) -> dict[str | None, list[Place]]:
    """Where each parameter is read. What is not the whole of a parameter is listed under None."""
    uses: dict[str | None, list[Place]] = {None: []}
    for dispatch in find_ops(module, "hal.dispatch"):
        executable = dispatch.operation.attributes["callee"].value
        buffers = iter(dispatch.buffers)
        offsets = list(dispatch.offsets)
        for binding, slot in enumerate(list(dispatch.slots)):
            source = next(buffers).owner if slot < 0 else None
            parameter = source if source is not None and source.name == "hal.parameter" else None
            whole = constant_int(offsets[binding]) == 0
            if parameter is not None and whole and codegen.PANELS not in parameter.attributes:
                key = parameter.attributes["key"].value
            else:
                key = None
            uses.setdefault(key, []).append((executable, binding))
    # A use by anything else than a dispatch, or of a part, rules a parameter out.
    counted = {key: len(places) for key, places in uses.items()}
    for op in find_ops(module, "hal.parameter"):
        key = op.operation.attributes["key"].value
        counted[key] = counted.get(key, 0) - len(list(op.operation.results[0].uses))
    for key, difference in counted.items():
        if difference and key is not None:
            uses[None] += uses.pop(key, [])
    return uses


def _schedule_of(function: mlir.OpView) -> Schedule | None:
    """The schedule of loop nests on a function that `select-strategies` has checked; None where there is none."""
    if codegen.STRATEGY not in function.attributes:
        return None
    attribute = mlir.DictAttr(function.attributes[codegen.STRATEGY].schedule)
    return Schedule.from_attribute(attribute) if "tiles" in attribute else None


def note_packed(function: mlir.OpView, panels: list[Panels]) -> None:
    """Notes on a function that these of its bindings lie in panels."""
    schedule = _schedule_of(function)
    assert schedule is not None, "only schedules have wishes"
    kept = tuple(one for one in schedule.packed if one not in panels)
    # What is packed need not be copied.
    changed = replace(schedule, packed=(*kept, *panels), staged=())
    name = function.attributes[codegen.STRATEGY].strategy
    function.attributes[codegen.STRATEGY] = codegen.StrategyAttr.get(name, changed.to_attribute())


def _i64() -> mlir.Type:
    return mlir.IntegerType.get_signless(64)
