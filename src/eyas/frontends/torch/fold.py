"""Small constants of a torch program are computed with torch before import.

The importer folds ops on small constants too, and does some of it wrong: a slice whose last step is cut short ends the
process, a conversion to bytes makes a literal of the wrong type, and a choice by a constant one without its sizes.
"""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch import fx
from torch._ops import OpOverload
from torch._subclasses import FakeTensor
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument

from eyas.frontends.torch.nothing import size_arguments
from eyas.program.literals import LARGEST_INLINE_BYTES

_CONSTANTS = (InputKind.BUFFER, InputKind.PARAMETER, InputKind.CONSTANT_TENSOR)

_BYTES = (torch.int8, torch.uint8)

_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32)
"""Types that the importer makes no constants of."""

_PRODUCTS = ("addmm", "baddbmm", "bmm", "convolution", "mm")
"""Names of ops that are left to `evaluate-constants`: torch's convolution of bf16 multiplies infinities by zeros that
fill up its blocks."""


def fold_constants(program: torch.export.ExportedProgram) -> None:
    """Replaces nodes whose tensors are all small constants by constants. What the program writes to is none."""
    graph, specs = program.graph, program.graph_signature.input_specs
    known, parts = _constants(program), dict[fx.Node, tuple[Any, ...]]()
    for node in list(graph.nodes):
        chosen = _chosen(node, known)
        sizes = None if chosen is None else size_arguments(graph, node, list(node.meta["val"].shape))
        if sizes is not None:
            node.target, node.args = torch.ops.aten.expand.default, (chosen, sizes)
        value = _value(node, known, parts)
        if isinstance(value, tuple):
            parts[node] = value
        if not isinstance(value, torch.Tensor) or not _is_small(value):
            continue
        placeholder = _as_placeholder(graph, node)
        target = f"folded.{placeholder.name}"
        known[placeholder] = program.constants[target] = value.detach().clone()
        specs.insert(0, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(placeholder.name), target))
    for node in parts:
        if not node.users:
            graph.erase_node(node)


def _value(node: fx.Node, known: dict[fx.Node, torch.Tensor], parts: dict[fx.Node, tuple[Any, ...]]) -> Any:
    """What the node makes of constants: a tensor, or several (values and their places); None if it is not known."""
    if node.target is operator.getitem:
        whole = parts.get(node.all_input_nodes[0])
        return None if whole is None else whole[cast(int, node.args[1])]
    if not _can_fold(node, known):
        return None
    args, kwargs = fx.map_arg((node.args, node.kwargs), known.__getitem__)
    with torch.no_grad():
        value = node.target(*args, **kwargs)  # pyright: ignore[reportCallIssue]
    return tuple(value) if isinstance(value, list) else value


def _constants(program: torch.export.ExportedProgram) -> dict[fx.Node, torch.Tensor]:
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    found = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind in _CONSTANTS and isinstance(spec.arg, TensorArgument):
            value = program.state_dict.get(str(spec.target), program.constants.get(str(spec.target)))
            if isinstance(value, torch.Tensor) and _is_small(value):
                found[nodes[spec.arg.name]] = value
    return found


def _is_small(value: torch.Tensor) -> bool:
    if isinstance(value, FakeTensor) or value.layout != torch.strided or value.is_quantized:
        return False
    return value.numel() * value.element_size() <= LARGEST_INLINE_BYTES


def _can_fold(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> bool:
    operands, made = node.all_input_nodes, node.meta.get("val")
    results = [made] if isinstance(made, torch.Tensor) else list(made) if isinstance(made, tuple | list) else []
    return (
        isinstance(node.target, OpOverload)
        # Its operand's strides matter, which constants do not keep.
        and node.target is not torch.ops.aten.as_strided.default
        and node.target.overloadpacket.__name__ not in _PRODUCTS
        and (bool(operands) or (isinstance(made, torch.Tensor) and made.dtype in _UNSIGNED and not made.dim()))
        and all(operand in known for operand in operands)
        and bool(results)
        # The importer has no complex literals.
        and all(isinstance(one, torch.Tensor) and not one.is_complex() for one in results)
        and not node.target._schema.is_mutable
        and torch.Tag.nondeterministic_seeded not in node.target.tags
        # Bytes that become numbers are quantised weights; products of them are done in bytes.
        and not (results[0].is_floating_point() and any(known[one].dtype in _BYTES for one in operands))
    )


def _chosen(node: fx.Node, known: dict[fx.Node, torch.Tensor]) -> Any:
    """The operand that a choice is, if its condition is known to be the same everywhere."""
    condition = known.get(node.all_input_nodes[0]) if node.target is torch.ops.aten.where.self else None
    if condition is None or not condition.numel():
        return None
    return node.args[1] if condition.all() else None if condition.any() else node.args[2]


def _as_placeholder(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """The first argument, in the place of the node and with its name, which results of the program may refer to."""
    name, meta = node.name, dict(node.meta)
    with graph.inserting_before(next(iter(graph.nodes))):
        placeholder = graph.placeholder(f"{name}_folded")
    node.replace_all_uses_with(placeholder)
    graph.erase_node(node)
    placeholder.name = name
    placeholder.meta = meta
    return placeholder
