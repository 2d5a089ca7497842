"""Numbers that a torch program computes from sizes that vary, in forms that the importer knows.

A number may stand where a tensor belongs, as in `size - x`: there it becomes a tensor without dimensions, of the type
that torch gives it beside the other operands. And torch has functions of Python for some of what it does with numbers,
where the importer knows operators. A number that torch has found out meanwhile is that constant.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from eyas.frontends.torch.leaves import fake_mode

aten = torch.ops.aten

_NUMBERS = (torch.SymInt, torch.SymFloat)


def prepare_numbers(program: torch.export.ExportedProgram) -> None:
    """Rewrites the program's graphs in place."""
    for module in program.graph_module.modules():
        if isinstance(module, fx.GraphModule):
            for node in list(module.graph.nodes):
                if node.op == "call_function" and not _settle(module.graph, node):
                    _name_operator(node)
                    _hold_numbers(module.graph, node)
                    _multiply(module.graph, node)
            module.recompile()


def _settle(graph: fx.Graph, node: fx.Node) -> bool:
    """Arithmetic whose result is known goes."""
    number = node.meta.get("val")
    if isinstance(node.target, OpOverload) or not isinstance(number, (bool, int, float)):
        return False
    if getattr(node.target, "__module__", None) not in ("_operator", "builtins", "math"):
        return False
    node.replace_all_uses_with(number)  # pyright: ignore[reportArgumentType]
    graph.erase_node(node)
    return True


_MOST_FACTORS = 16


def _multiply(graph: fx.Graph, node: fx.Node) -> None:
    """A power of a whole number is a product."""
    if node.target not in (operator.pow, pow) or not all(_is_whole(argument) for argument in node.args):
        return
    base, exponent = node.args[:2]
    if not isinstance(exponent, int) or not 1 <= exponent <= _MOST_FACTORS:
        return
    product = base
    with graph.inserting_before(node):
        for _ in range(exponent - 1):
            product = graph.call_function(operator.mul, (product, base))
            product.meta = dict(node.meta)
    node.replace_all_uses_with(product)  # pyright: ignore[reportArgumentType]
    graph.erase_node(node)


def _name_operator(node: fx.Node) -> None:
    target = _OPERATORS.get(node.target)
    if target is not None and all(_is_whole(argument) for argument in node.args):
        node.target = target


_OPERATORS: dict[Any, Any] = {
    torch.sym_float: aten.Float.Scalar,
    torch.sym_max: torch.ops.prim.max.int,
    torch.sym_min: torch.ops.prim.min.int,
}
"""By function, the operator for whole numbers."""


def _is_whole(argument: Any) -> bool:
    return isinstance(_value(argument), (int, torch.SymInt))


def _hold_numbers(graph: fx.Graph, node: fx.Node) -> None:
    if not isinstance(node.target, OpOverload):
        return
    for place, (slot, argument) in enumerate(zip(node.target._schema.arguments, node.args, strict=False)):
        if isinstance(argument, fx.Node) and isinstance(_value(argument), _NUMBERS) and str(slot.type) == "Tensor":
            with graph.inserting_before(node):
                node.update_arg(place, _held(graph, argument, _type_beside(node, argument)))


def _type_beside(node: fx.Node, number: fx.Node) -> torch.dtype:
    """What torch converts a number to that an op takes beside tensors."""
    example = 1.0 if isinstance(_value(number), torch.SymFloat) else 1
    values = [_value(leaf) for leaf in pytree.tree_leaves((node.args, node.kwargs))]
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return torch.result_type(tensors[0], example) if tensors else torch.tensor(example).dtype


def _held(graph: fx.Graph, number: fx.Node, dtype: torch.dtype) -> fx.Node:
    """A tensor without dimensions that holds a number."""
    held = graph.call_function(aten.full.default, ([], number), {"dtype": dtype})
    with fake_mode(graph):
        held.meta = {"stack_trace": number.meta.get("stack_trace"), "val": torch.full((), 1, dtype=dtype)}
    return held


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, fx.Node) else argument
