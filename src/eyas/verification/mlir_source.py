"""MLIR programs have no framework: the reference is the program compiled for this machine's CPU, with everything
optional switched off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eyas.frontends import import_model
from eyas.ir import mlir
from eyas.ir.locations import UNKNOWN, describe_location
from eyas.ir.walk import defining_op, is_tensor, nested_operands
from eyas.passes.dispatch.grouping import Role, role_of
from eyas.program.program import ImportedProgram
from eyas.verification.build import Build
from eyas.verification.cut import add_results, main_block
from eyas.verification.source import Layer, Reference, Source, Tapped


class MlirSource(Source):
    """Layers are the tensor ops of `@main` in the input contract, named by op and position: `linalg.matmul_3`."""

    framework = "plain loops"

    def __init__(self, model: Any, build: Build | None = None) -> None:
        self._imported = model if isinstance(model, ImportedProgram) else import_model(model)
        self._build = build or Build()
        with self._imported.module.context:
            self._values = _layer_values(self._imported.module)
        names = {value: name for name, value in self._values.items()}
        self.layers = tuple(_describe(name, value, names) for name, value in self._values.items())
        returned = list(list(main_block(self._imported.module).operations)[-1].operands)
        self._results = tuple(names.get(value, "") for value in returned)

    @property
    def results(self) -> Sequence[str]:
        return self._results

    def program(self, taps: Sequence[str] = ()) -> Tapped:
        ordinals = list(self._values)
        count = len(self._imported.signature.results)

        def choose(module: mlir.Module) -> list[mlir.Value]:
            with module.context:
                values = list(_layer_values(module).values())
            return [values[ordinals.index(tap)] for tap in taps]

        program = add_results(self._imported, choose)
        positions = {name: index for index, name in enumerate(self._results) if name}
        return Tapped(program, positions | {tap: count + index for index, tap in enumerate(taps)})

    def reference(self, inputs: Sequence[np.ndarray]) -> Reference:
        tapped = self.program([layer.name for layer in self.layers if layer.name not in self._results])
        values = self._build.plain.call(tapped.program, inputs)
        results = values[: len(self._imported.signature.results)]
        return Reference(results, {name: values[index] for name, index in tapped.positions.items()})


def _layer_values(module: mlir.Module) -> dict[str, mlir.Value]:
    """Tensors made by the ops of `@main` that compute something, in order."""
    found: dict[str, mlir.Value] = {}
    for view in main_block(module).operations:
        op = view.operation
        if role_of(op) in (Role.HOST, Role.CLONED) or op.name in ("flow.parameter", "arith.constant"):
            continue
        for result in op.results:
            if is_tensor(result):
                found[f"{op.name}_{len(found)}"] = result
    return found


def _describe(name: str, value: mlir.Value, names: dict[mlir.Value, str]) -> Layer:
    op = defining_op(value)
    assert op is not None
    place = describe_location(op.location)
    reads: list[str] = []
    seen: set[mlir.Value] = set()
    stack = list(nested_operands(op))
    while stack:
        operand = stack.pop()
        owner = defining_op(operand)
        if operand in names:
            reads.append(names[operand])
        elif owner is not None and operand not in seen:
            seen.add(operand)
            stack += nested_operands(owner)
    return Layer(name, op.name, "" if place == UNKNOWN else place, tuple(dict.fromkeys(reads)))
