"""What an exported torch program writes to: buffers and parameters become state, arguments are written back.

`torch.export` has made such a program functional: new values are extra results, and its signature says whose they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from eyas.dialects import flow
from eyas.errors import FrontendError
from eyas.frontends.torch.aliases import STATE_INPUTS
from eyas.frontends.torch.tensors import as_numpy
from eyas.program.dtypes import short_name
from eyas.program.parameters import Parameter
from eyas.program.program import Argument

_STATE_OUTPUTS = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)


@dataclass(frozen=True)
class Mutations:
    """Positions of state among the imported function's arguments and results, and what each variable starts from."""

    reads: dict[int, str]
    writes: dict[int, str]
    initial: dict[str, Parameter]
    mutates: tuple[tuple[int, int], ...]
    """(result, argument) of the function once its state is gone: the caller's tensor gets that result's value."""
    results: tuple[Argument, ...]
    """Those results."""


def expose_mutations(
    program: torch.export.ExportedProgram, arguments: tuple[Argument, ...], kept: frozenset[str]
) -> Mutations:
    """Makes ordinary arguments and results of all that the program changes, by editing its signature.

    Results come in the order: the user's, new values of arguments, new values of state. `kept` names variables that
    other programs change; this one reads them as state.
    """
    signature = program.graph_signature
    users, inputs, states = [], [], []
    for spec in signature.output_specs:
        if spec.kind in _STATE_OUTPUTS:
            states.append(spec)
        elif spec.kind == OutputKind.USER_INPUT_MUTATION:
            inputs.append(spec)
        elif spec.kind in (OutputKind.USER_OUTPUT, OutputKind.TOKEN):
            users.append(spec)
        else:
            raise FrontendError(f"a result of the kind {spec.kind.name} ('{spec.target}') is not supported")
    names = {_variable(spec.target) for spec in states} | set(kept)
    user_inputs = [
        spec.arg.name
        for spec in signature.input_specs
        if spec.kind == InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument)
    ]
    mutates = tuple((len(users) + i, user_inputs.index(spec.target)) for i, spec in enumerate(inputs))
    results = tuple(
        Argument(f"{arguments[position].name}.new", arguments[position].dtype, arguments[position].dims)
        for _, position in mutates
    )
    reads: dict[int, str] = {}
    initial: dict[str, Parameter] = {}
    position = 0
    for spec in signature.input_specs:
        if spec.kind in STATE_INPUTS and (name := _variable(spec.target)) in names:
            reads[position] = name
            initial[flow.initial_key(name)] = _first_value(program, name, str(spec.target))
            spec.kind = InputKind.USER_INPUT
        if spec.kind == InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument):
            position += 1
    writes = {len(users) + len(inputs) + i: _variable(spec.target) for i, spec in enumerate(states)}
    for spec in [*inputs, *states]:
        spec.kind = OutputKind.USER_OUTPUT
    signature.output_specs[:] = [*users, *inputs, *states]
    return Mutations(reads, writes, initial, mutates, results)


def _variable(target: str | None) -> str:
    assert target is not None
    return target


def _first_value(program: torch.export.ExportedProgram, name: str, target: str) -> Parameter:
    value = program.state_dict.get(target, program.constants.get(target))
    if not isinstance(value, torch.Tensor):
        raise FrontendError(f"the model writes to '{name}', which has no value to start from")
    if value.layout != torch.strided or value.is_quantized:
        raise FrontendError(f"the model writes to '{name}', which is {value.layout}; only dense tensors are supported")
    dtype = short_name(str(value.dtype), f"state '{name}'")
    return Parameter(flow.initial_key(name), dtype, tuple(value.shape), lambda: as_numpy(value))
