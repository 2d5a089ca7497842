"""Tensors without elements: whatever makes one makes the same, and many lowerings stumble over sizes of 0."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten

TRUE_TYPE = "eyas_true_type"
"""Where a node's metadata has the type that its result has for the caller."""

_SIGNED = {torch.uint8: torch.int8, torch.uint16: torch.int16, torch.uint32: torch.int32}
"""Upstream folds what has no elements to literals of signed types."""


def drop_empty(program: torch.export.ExportedProgram) -> None:
    """Replaces ops whose results have no elements by constants of their shapes."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            _drop_empty(module.graph)


def _drop_empty(graph: torch.fx.Graph) -> None:
    changed = False
    for node in list(graph.nodes):
        if not _makes_nothing(node):
            continue
        value = node.meta["val"]
        sizes = size_arguments(graph, node, list(value.shape))
        if sizes is None:
            continue
        is_result = all(user.op == "output" for user in node.users)
        held: torch.dtype = value.dtype
        if is_result and held in _SIGNED:
            held = _SIGNED[held]
        with graph.inserting_before(node):
            empty = _constant(graph, sizes, held)
        empty.meta, name = {**node.meta, "val": value.to(held), TRUE_TYPE: value.dtype}, node.name
        empty.meta.pop("tensor_meta", None)
        node.replace_all_uses_with(empty)
        graph.erase_node(node)
        # Results of the program are known by the names of nodes.
        empty.name = name
        changed = True
    if changed:
        graph.eliminate_dead_code(lambda node: _has_effect(node))
        graph.lint()


def size_arguments(graph: torch.fx.Graph, node: torch.fx.Node, shape: list[Any]) -> list[Any] | None:
    """A shape as arguments of a node: a size that varies is asked of a tensor before the node, if one has it."""
    sizes = []
    for size in shape:
        if not isinstance(size, torch.SymInt):
            sizes.append(size)
            continue
        found = _tensor_of_size(graph, node, size)
        if found is None:
            return None
        tensor, dim = found
        with graph.inserting_before(node):
            asked = graph.call_function(aten.sym_size.int, (tensor, dim))
        asked.meta["val"] = size
        sizes.append(asked)
    return sizes


def _tensor_of_size(graph: torch.fx.Graph, node: torch.fx.Node, size: torch.SymInt) -> tuple[torch.fx.Node, int] | None:
    for other in graph.nodes:
        if other is node:
            return None
        value = other.meta.get("val")
        for dim, given in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(given, torch.SymInt) and given.node.expr == size.node.expr:
                return other, dim
    return None


def _constant(graph: torch.fx.Graph, shape: list[Any], dtype: torch.dtype) -> torch.fx.Node:
    """Memory, for unsigned types: the importer has no constants of them."""
    if dtype in _SIGNED:
        return graph.call_function(aten.empty.memory_format, (shape,), {"dtype": dtype})
    return graph.call_function(aten.full.default, (shape, False), {"dtype": dtype})


def _makes_nothing(node: torch.fx.Node) -> bool:
    """Whether a node's only result is a tensor that has no elements, whatever the sizes that vary."""
    value = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, torch.Tensor):
        return False
    if node.target is (aten.empty.memory_format if value.dtype in _SIGNED else aten.full.default):
        return False
    if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
        return False
    return any(isinstance(size, int) and size == 0 for size in value.shape) and not value.is_complex()


def _has_effect(node: torch.fx.Node) -> Any:
    return node.op in ("placeholder", "output") or node.is_impure()
