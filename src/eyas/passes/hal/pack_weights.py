"""`pack-weights`: weights of contractions are stored in the order in which kernels read them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from torch_mlir import ir as mlir

from eyas.codegen.common.panels import pack
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

        hal.dispatch(hal.parameter "w") @f       {codegen.packable = [0], strategy {tiles = [[16, 1, 4, 0, 6]]}}
      becomes
        hal.dispatch(hal.parameter "w#panels64") @f           {strategy {packed = [0], tiles = [[16, 1, 4, 0, 6]]}}
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
                op.operation.attributes["key"] = mlir.StringAttr.get(self._packed(key, wishes[uses[key][0]]))
        packed = {place for key in keys for place in uses[key]}
        for name, function in executables.items():
            bindings = sorted(binding for executable, binding in packed if executable == name)
            if bindings:
                note_packed(function, bindings)
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
        if codegen.PACKABLE not in function.attributes:
            continue
        schedule = mlir.DictAttr(function.attributes[codegen.STRATEGY].schedule)
        width, _, vectors, *_ = list(mlir.DenseI64ArrayAttr(mlir.ArrayAttr(schedule["tiles"])[0]))
        inputs = mlir.FunctionType(function.attributes["function_type"].value).inputs
        tensors = [type_ for type_ in inputs if isinstance(type_, mlir.RankedTensorType)]
        for binding in list(mlir.DenseI64ArrayAttr(function.attributes[codegen.PACKABLE])):
            found[name, binding] = _Wish(width * vectors, tuple(tensors[binding].shape))
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
            whole = source is not None and source.name == "hal.parameter" and constant_int(offsets[binding]) == 0
            key = source.attributes["key"].value if source is not None and whole else None
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


def note_packed(function: mlir.OpView, bindings: list[int]) -> None:
    """Tells the schedule that is noted on an executable which of its bindings are in panels."""
    strategy = function.attributes[codegen.STRATEGY]
    schedule = mlir.DictAttr(strategy.schedule)
    entries = {entry.name: entry.attr for entry in schedule} | {"packed": mlir.DenseI64ArrayAttr.get(bindings)}
    entries.pop("staged", None)  # what is packed need not be copied
    function.attributes[codegen.STRATEGY] = codegen.StrategyAttr.get(strategy.strategy, mlir.DictAttr.get(entries))
