"""Tensors of a torch model that are the same memory, and those that tracing writes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from eyas.frontends.torch.tensors import identity

STATE_INPUTS = (InputKind.BUFFER, InputKind.PARAMETER, InputKind.CONSTANT_TENSOR)


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
        if spec.kind not in STATE_INPUTS:
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
