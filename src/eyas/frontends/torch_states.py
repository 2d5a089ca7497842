"""What an exported torch program writes to: buffers and parameters become state, arguments are written back.

`torch.export` has made such a program functional: new values are extra results, and its signature says whose they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from eyas.dialects import flow
from eyas.errors import FrontendError
from eyas.frontends.dtypes import short_name
from eyas.frontends.parameters import Parameter
from eyas.frontends.program import Argument
from eyas.frontends.torch_weights import as_numpy, identity

_STATE_OUTPUTS = (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
_STATE_INPUTS = (InputKind.BUFFER, InputKind.PARAMETER, InputKind.CONSTANT_TENSOR)


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
        if spec.kind in _STATE_INPUTS and (name := _variable(spec.target)) in names:
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


def merge_aliases(program: torch.export.ExportedProgram) -> None:
    """Makes one input of those that are the same memory, and buffers of constants that are written to.

    Tensors that the model reaches through plain objects, such as the layers of a cache, are constants to torch.export,
    although they may be registered as buffers too.
    """
    graph, signature = program.graph, program.graph_signature
    nodes = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    first: dict[object, torch.fx.Node] = {}
    dropped = []
    for spec in signature.input_specs:
        if spec.kind not in _STATE_INPUTS:
            continue
        value = program.state_dict.get(str(spec.target), program.constants.get(str(spec.target)))
        if not isinstance(value, torch.Tensor):
            continue
        node = nodes[spec.arg.name]
        kept = first.setdefault(identity(value), node)
        if kept is not node and spec.kind == InputKind.CONSTANT_TENSOR:
            node.replace_all_uses_with(kept)
            graph.erase_node(node)
            dropped.append(spec)
        elif spec.kind == InputKind.CONSTANT_TENSOR and is_written(node):
            spec.kind, spec.persistent = InputKind.BUFFER, False
    if dropped:
        signature.input_specs[:] = [spec for spec in signature.input_specs if spec not in dropped]
        program.graph_module.recompile()


def is_written(value: torch.fx.Node) -> bool:
    """Whether an in-place op writes to a tensor, or to a view of it."""
    for user in value.users:
        schema = getattr(user.target, "_schema", None)
        arguments = zip(schema.arguments, user.args, strict=False) if schema is not None else ()
        aliases = [argument.alias_info for argument, given in arguments if given is value and argument.alias_info]
        if any(alias.is_write for alias in aliases) or (aliases and is_written(user)):
            return True
    return False


class RestoreWrites:
    """Undoes what tracing does to a model's tensors: in-place ops on tensors that torch.export takes for constants,
    such as a cache's count of positions, run while it traces.

    Such ops have no other operands than constants, so what they write is small.
    """

    _MAX_BYTES, _MAX_DEPTH = 1 << 24, 6

    def __init__(self, model: torch.nn.Module) -> None:
        self._found: dict[int, torch.Tensor] = {}
        self._seen: set[int] = set()
        for module in model.modules():
            self._search(vars(module), 0)

    def _search(self, value: Any, depth: int) -> None:
        if id(value) in self._seen or depth > self._MAX_DEPTH or isinstance(value, (torch.nn.Module, type, str, bytes)):
            return
        self._seen.add(id(value))
        if isinstance(value, torch.Tensor):
            if not value.requires_grad and value.nbytes <= self._MAX_BYTES:
                self._found[id(value)] = value
        elif isinstance(value, Mapping):
            for item in value.values():
                self._search(item, depth + 1)
        elif isinstance(value, (list, tuple, set)):
            for item in value:
                self._search(item, depth + 1)
        elif hasattr(value, "__dict__") and not callable(value):
            self._search(vars(value), depth + 1)

    def __enter__(self) -> None:
        self._before = [(one, one._version, one.detach().clone()) for one in self._found.values()]

    def __exit__(self, *failure: Any) -> None:
        with torch.no_grad():
            for tensor, version, value in self._before:
                if tensor._version != version:
                    tensor.copy_(value)
