"""Failures of an import in the user's terms: the function that the model calls, not what it was taken apart into."""

from __future__ import annotations

import re
from typing import Any

import torch

from eyas.errors import FrontendError, UnsupportedOpError
from eyas.frontends.torch.weights import place_of


def failed_node(program: torch.export.ExportedProgram, error: FrontendError) -> torch.fx.Node | None:
    """The node of the decomposed program that an error is about, where the error says."""
    if not error.node:
        return None
    return next((node for node in _nodes(program) if place_of(node)[0] == error.node), None)


def in_user_terms(error: FrontendError, node: torch.fx.Node | None) -> FrontendError:
    """The same error, said of the function that the user calls."""
    called = None if node is None else user_function(node)
    if called is None or f"'{called}'" in str(error):
        return error
    op = str(getattr(node, "target", ""))
    if called == op.split(".")[1 if op.startswith("aten.") else 0]:
        return error
    return type(error)(f"'{called}': {error}").at(error.node)


def user_function(node: torch.fx.Node) -> str | None:
    """The function or method of torch that a node is part of, as `torch.export` recorded it."""
    recorded = node.meta.get("torch_fn")
    if not recorded or not isinstance(recorded[1], str):
        return None
    return recorded[1].rpartition(".")[2] or None


def where(node: torch.fx.Node) -> str:
    """The node and the user's line, for an error."""
    name, line = place_of(node)
    return f"at node '{name}'" + (f" ({line[0]}:{line[1]})" if line else "")


def refuse(node: torch.fx.Node, place: str, why: str) -> UnsupportedOpError:
    name = user_function(node) or _plain(node.target)
    return UnsupportedOpError(f"'{name}' {place} is not supported: {why}")


def _plain(target: Any) -> str:
    return re.sub(r"\.default$", "", str(getattr(target, "name", lambda: target)()))


def _nodes(program: torch.export.ExportedProgram) -> Any:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes
