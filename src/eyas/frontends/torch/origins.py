"""Where the nodes of an exported program come from, if what was exported is a graph that torch made before.

`torch.compile` hands over graphs, and `torch.export` records their generated lines: `<eval_with_key>.7`, line 32. The
nodes of such a graph know the user's own line and the function that it calls, also those of a backward pass.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import fx

_FRAME = re.compile(r'File "(<eval_with_key>[^"]*)", line \d+, in \w+\n\s*(\w+)(?:\s*:[^=]*)? = ')


def note_origins(model: torch.nn.Module, program: torch.export.ExportedProgram) -> None:
    """Gives nodes that were traced from a graph the user's line and function."""
    graphs = {_file_of(one): one for one in model.modules() if isinstance(one, fx.GraphModule)}
    if not graphs:
        return
    named = {file: {node.name: node for node in graph.graph.nodes} for file, graph in graphs.items()}
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, fx.GraphModule) else ():
            places = _FRAME.findall(node.meta.get("stack_trace") or "")
            origin = named.get(places[-1][0], {}).get(places[-1][1]) if places else None
            if origin is not None:
                _note(node, origin)


def _file_of(graph: fx.GraphModule) -> str:
    return type(graph).forward.__code__.co_filename


def _note(node: fx.Node, origin: fx.Node) -> None:
    node.meta["stack_trace"] = origin.meta.get("stack_trace") or ""
    if name := _function(origin):
        node.meta["torch_fn"] = (name, name)
    # The modules that hold the graph are not the user's.
    node.meta["nn_module_stack"] = {key: ("", kind) for key, (_, kind) in node.meta.get("nn_module_stack", {}).items()}


def _function(origin: fx.Node) -> str:
    """What the user calls, as Dynamo recorded it."""
    for key, text in (("source_fn_stack", "{}"), ("fwd_source_fn_stack", "gradient of {}")):
        if recorded := origin.meta.get(key):
            return text.format(_name(recorded[-1]))
    return ""


def _name(recorded: Any) -> str:
    node_name, target = recorded
    return str(getattr(target, "__name__", target if isinstance(target, str) else node_name))
