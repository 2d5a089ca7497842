"""Nodes in an order in which each comes after what it reads.

The standard wants files to be so, and ONNX Runtime sorts them when it loads them: quantisers that insert nodes leave
branches of an `If` that capture what is computed further down.
"""

from __future__ import annotations

import heapq

import onnx

from eyas.errors import FrontendError
from eyas.frontends.onnx.subgraphs import replace_nodes, subgraphs


def sort_nodes(graph: onnx.GraphProto) -> None:
    """Sorts the nodes of a graph and of those inside it; whatever need not move stays where it is."""
    makers = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
    waits = [{makers[name] for name in _reads(node) if name in makers} for node in graph.node]
    if any(max(before, default=-1) >= at for at, before in enumerate(waits)):
        replace_nodes(graph, [graph.node[at] for at in _order(graph, waits)])
    for node in graph.node:
        for inner in subgraphs(node):
            sort_nodes(inner)


def _order(graph: onnx.GraphProto, waits: list[set[int]]) -> list[int]:
    users: dict[int, list[int]] = {}
    for at, before in enumerate(waits):
        for one in before:
            users.setdefault(one, []).append(at)
    left = [len(before) for before in waits]
    ready = [at for at, count in enumerate(left) if not count]
    order: list[int] = []
    while ready:
        at = heapq.heappop(ready)
        order.append(at)
        for user in users.get(at, ()):
            left[user] -= 1
            if not left[user]:
                heapq.heappush(ready, user)
    if len(order) < len(waits):
        stuck = graph.node[next(at for at, count in enumerate(left) if count)]
        raise FrontendError(f"node '{stuck.name or stuck.op_type}' ({stuck.op_type}) needs a result that depends on it")
    return order


def _reads(node: onnx.NodeProto) -> set[str]:
    """What a node reads, in its subgraphs too, but for what they make themselves."""
    names = set(node.input)
    for graph in subgraphs(node):
        inside = {value.name for value in graph.output}
        for inner in graph.node:
            inside |= _reads(inner)
        own = {name for inner in graph.node for name in inner.output}
        own |= {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        names |= inside - own
    return names
