"""Graphs of Dynamo with some of their arguments fixed to numbers, also inside branches and loops.

A graph that Dynamo made for any size has the sizes as arguments and hands them on to the bodies of `cond`,
`while_loop`, `scan` and `map`, where torch.export takes tensors alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator


def has_bodies(graph: fx.GraphModule) -> bool:
    return any(isinstance(node.target, HigherOrderOperator) for node in graph.graph.nodes)


def specialize(graph: fx.GraphModule, numbers: Mapping[int, Any]) -> fx.GraphModule:
    """A copy with numbers for the arguments at these positions; the arguments stay, and nothing uses them."""
    copied = fx.Graph()
    copied.output(copied.graph_copy(graph.graph, {}))
    made = fx.GraphModule(graph, copied)
    known: dict[fx.Node, Any] = {}
    for position, node in enumerate(_arguments(made)):
        if position in numbers:
            known[node] = numbers[position]
    for node in list(copied.nodes):
        if _is_arithmetic(node, known):
            known[node] = node.target(*_with(node.args, known), **_with(node.kwargs, known))
        elif node not in known:
            node.args, node.kwargs = _with(node.args, known), _with(node.kwargs, known)
            if isinstance(node.target, HigherOrderOperator):
                _specialize_bodies(made, node)
    for node in reversed(known):
        if node.op != "placeholder":
            copied.erase_node(node)
    made.recompile()
    return made


def _specialize_bodies(graph: fx.GraphModule, node: fx.Node) -> None:
    """The last argument of each such operator are the operands that all iterations and branches see."""
    *others, operands = node.args
    if not isinstance(operands, (tuple, list)):
        return
    numbers = {i: operand for i, operand in enumerate(operands) if not isinstance(operand, (fx.Node, torch.Tensor))}
    if not numbers:
        return
    for position, body in enumerate(others):
        if not (isinstance(body, fx.Node) and body.op == "get_attr"):
            continue
        module = getattr(graph, str(body.target))
        if not isinstance(module, fx.GraphModule):
            continue
        arguments = _arguments(module)
        first = len(arguments) - len(operands)
        special = specialize(module, {first + i: number for i, number in numbers.items()})
        for argument in [_arguments(special)[first + i] for i in numbers]:
            special.graph.erase_node(argument)
        special.recompile()
        name = f"{body.target}_of_{node.name}"
        graph.add_submodule(name, special)
        with graph.graph.inserting_before(node):
            others[position] = graph.graph.get_attr(name)
    kept = [operand for i, operand in enumerate(operands) if i not in numbers]
    node.args = (*others, type(operands)(kept) if isinstance(operands, tuple) else kept)


def _arguments(graph: fx.GraphModule) -> list[fx.Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _is_arithmetic(node: fx.Node, known: Mapping[fx.Node, Any]) -> bool:
    """Whether a node computes a number from numbers that are known."""
    operands = node.all_input_nodes
    value = node.meta.get("example_value", node.meta.get("val"))
    return (
        node.op == "call_function"
        and bool(operands)
        and all(operand in known for operand in operands)
        and value is not None
        and not isinstance(value, (torch.Tensor, tuple, list))
    )


def _with(arguments: Any, known: Mapping[fx.Node, Any]) -> Any:
    return fx.map_arg(arguments, lambda node: known.get(node, node))
