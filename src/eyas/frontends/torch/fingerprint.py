"""A digest of an exported torch program: equal only when compiling it would give the same module.

It covers the graph with all types, the signature, how the call nests, every weight's bytes and which of them share
memory, the places that messages and kernels are named after, and torch's version. What is not known to be covered makes
the program uncacheable: dynamic sizes (whose guards are in an environment of torch's own), tensor subclasses, objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument
from torch.utils import _pytree as pytree

from eyas.cache.digest import Uncacheable, digests_of_arrays, key_of
from eyas.frontends.torch.tensors import as_numpy, identity

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_NAMED = (torch.dtype, torch.device, torch.layout, torch.memory_format)
# Code that torch makes has a number that counts up in each process.
_GENERATED = re.compile(r"<eval_with_key>\.\d+")
_DENSE = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def fingerprint(
    program: torch.export.ExportedProgram,
    description: str,
    argument_names: tuple[str, ...] | None,
    dynamic_shapes: Any,
    training: bool,
) -> str:
    """The digest of what `export_model` returns; raises Uncacheable where there is none."""
    if dynamic_shapes is not None:
        raise Uncacheable("dynamic shapes")
    tensors: dict[str, torch.Tensor] = {}
    parts = [
        torch.__version__,
        description,
        argument_names,
        training,
        _graph(program.graph_module, "", tensors),
        [_spec(spec) for spec in program.graph_signature.input_specs],
        [_spec(spec) for spec in program.graph_signature.output_specs],
        [_tree(spec) for spec in (program.call_spec.in_spec, program.call_spec.out_spec)],
        [(str(symbol), str(bounds)) for symbol, bounds in program.range_constraints.items()],
    ]
    for name, value in [*program.state_dict.items(), *program.constants.items()]:
        if not isinstance(value, torch.Tensor):
            raise Uncacheable(f"constant '{name}' is a {type(value).__qualname__}")
        tensors[f"state {name}"] = value
    return key_of(parts, _values(tensors))


def weight_bytes(program: torch.export.ExportedProgram) -> int:
    tensors = [one for one in [*program.state_dict.values(), *program.constants.values()] if hasattr(one, "nbytes")]
    return sum(one.nbytes for one in tensors)


def _graph(module: torch.nn.Module, path: str, tensors: dict[str, torch.Tensor]) -> list[Any]:
    """Every node in order, bodies of operators in place; tensors that nodes refer to are added to `tensors`."""
    if not isinstance(module, torch.fx.GraphModule):
        raise Uncacheable(f"'{path}' is a {type(module).__qualname__}")
    nodes = []
    for node in module.graph.nodes:
        body: Any = None
        if node.op == "get_attr":
            value = module
            for name in node.target.split("."):
                value = getattr(value, name)
            if isinstance(value, torch.Tensor):
                tensors[f"attribute {path}.{node.target}"] = value
            else:
                body = _graph(value, f"{path}.{node.target}", tensors)
        meta = node.meta
        stack = [(key, *map(str, value)) for key, value in (meta.get("nn_module_stack") or {}).items()]
        place = (_plain(stack), _GENERATED.sub("<generated>", meta.get("stack_trace") or ""))
        nodes.append(
            (node.op, node.name, _plain(node.target), _plain(node.args), _plain(node.kwargs))
            + (_value(meta.get("val")), place, body)
        )
    return nodes


def _plain(value: Any) -> Any:
    """A node's operand as plain values; the first item of a pair says what it was."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, torch.fx.Node):
        return ("node", value.name)
    if isinstance(value, torch._ops.OpOverload | torch._ops.HigherOrderOperator):
        return ("operator", str(value.name()), getattr(value, "_overloadname", ""))
    if isinstance(value, _NAMED):
        return ("named", type(value).__name__, str(value))
    if isinstance(value, complex):
        return ("complex", value.real, value.imag)
    if isinstance(value, slice):
        return ("slice", *(_plain(one) for one in (value.start, value.stop, value.step)))
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [_plain(one) for one in value]
    if isinstance(value, dict):
        return ("dict", [(_plain(key), _plain(one)) for key, one in value.items()])
    module = getattr(value, "__module__", None)
    if callable(value) and module in ("_operator", "operator", "builtins", "math"):
        return ("function", module, value.__name__)
    raise Uncacheable(f"an operand is a {type(value).__module__}.{type(value).__qualname__}")


def _value(value: Any) -> Any:
    """What a node makes."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise Uncacheable(f"a tensor is {value.layout}")
        sizes = [*value.shape, *value.stride(), value.storage_offset()]
        if any(isinstance(size, _SYMBOLIC) for size in sizes):
            raise Uncacheable("a size is dynamic")
        return ("tensor", str(value.dtype), str(value.device), [int(size) for size in sizes], value.requires_grad)
    if isinstance(value, _SYMBOLIC):
        raise Uncacheable("a number is dynamic")
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, [_value(one) for one in value])
    return _plain(value)


def _spec(spec: Any) -> Any:
    """An input or output of the signature: an enum, an argument and a target."""
    argument = spec.arg
    value = _plain(argument.value) if isinstance(argument, ConstantArgument) else None
    kind = spec.kind.name if isinstance(spec.kind, Enum) else str(spec.kind)
    return (kind, type(argument).__name__, argument.name, value, spec.target, getattr(spec, "persistent", None))


def _tree(spec: pytree.TreeSpec | None) -> Any:
    if spec is None or spec.is_leaf():
        return None
    kind = spec.type
    return (f"{kind.__module__}:{kind.__qualname__}", _context(spec.context), [_tree(one) for one in spec.children()])


def _context(context: Any) -> Any:
    if isinstance(context, type):
        # Its fields are what becomes part of a module.
        names = getattr(context, "_fields", None) or getattr(context, "__match_args__", ())
        return ("type", f"{context.__module__}:{context.__qualname__}", _context(tuple(names)))
    if isinstance(context, (tuple, list)):
        return (type(context).__name__, [_context(one) for one in context])
    return _plain(context)


def _values(tensors: dict[str, torch.Tensor]) -> list[Any]:
    """Type, layout and bytes of each tensor; those that are the same memory point at the first."""
    first: dict[Any, int] = {}
    described = []
    for number, (name, tensor) in enumerate(tensors.items()):
        if type(tensor) not in _DENSE or tensor.is_quantized or tensor.layout != torch.strided:
            raise Uncacheable(f"'{name}' is a {type(tensor).__qualname__} of {tensor.layout}")
        same = first.setdefault(identity(tensor), number)
        layout = (list(tensor.shape), list(tensor.stride()), tensor.requires_grad)
        described.append((name, str(tensor.dtype), str(tensor.device), *layout, same))
    return [described, digests_of_arrays(as_numpy(one) for one in _distinct(tensors))]


def _distinct(tensors: dict[str, torch.Tensor]) -> Iterator[torch.Tensor]:
    seen = set()
    for tensor in tensors.values():
        if identity(tensor) not in seen:
            seen.add(identity(tensor))
            yield tensor
