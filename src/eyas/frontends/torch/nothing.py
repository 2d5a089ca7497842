"""Tensors without elements: whatever makes one makes the same, and many lowerings stumble over sizes of 0."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32)


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
        with graph.inserting_before(node):
            empty = _constant(graph, value)
        empty.meta, name = dict(node.meta), node.name
        node.replace_all_uses_with(empty)
        graph.erase_node(node)
        # Results of the program are known by the names of nodes.
        empty.name = name
        changed = True
    if changed:
        graph.eliminate_dead_code(lambda node: _has_effect(node))
        graph.lint()


def _constant(graph: torch.fx.Graph, value: torch.Tensor) -> torch.fx.Node:
    """Memory, for unsigned types: the importer has no constants of them."""
    if value.dtype in _UNSIGNED:
        return graph.call_function(aten.empty.memory_format, (list(value.shape),), {"dtype": value.dtype})
    return graph.call_function(aten.full.default, (list(value.shape), False), {"dtype": value.dtype})


def _makes_nothing(node: torch.fx.Node) -> bool:
    """Whether a node's only result is a tensor that has no elements, whatever the sizes that vary."""
    value = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, torch.Tensor):
        return False
    if node.target is (aten.empty.memory_format if value.dtype in _UNSIGNED else aten.full.default):
        return False
    if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
        return False
    return all(isinstance(size, int) for size in value.shape) and not value.numel() and not value.is_complex()


def _has_effect(node: torch.fx.Node) -> Any:
    return node.op in ("placeholder", "output") or node.is_impure()
