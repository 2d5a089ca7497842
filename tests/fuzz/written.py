"""Graphs written by hand, for tests: types of results are inferred."""

from __future__ import annotations

from typing import Any

from tests.fuzz.builder import infer
from tests.fuzz.graph import Dim, Graph, Node, Options, TensorType
from tests.fuzz.ops import TABLE


def leaf(dtype: str, *shape: Dim, kind: str = "normal", seed: int = 0, constant: bool = False) -> Node:
    """An argument or a constant; a dynamic size is a tuple, one size for each call."""
    attrs = {"kind": kind, "seed": seed}
    return Node("constant" if constant else "input", (), attrs, TensorType(dtype, tuple(shape)))


def op(name: str, *inputs: int, **attrs: Any) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    """An op on earlier nodes, by position."""
    return name, inputs, attrs


def graph(frontend: str, *parts: Any, results: tuple[int, ...] = (), **options: Any) -> Graph:
    """Leaves and ops in order; the last is the result unless others are named."""
    dims = {dim for part in parts if isinstance(part, Node) for dim in part.type.shape if not isinstance(dim, int)}
    symbols = {f"n{number}": dim for number, dim in enumerate(sorted(dims))}
    calls = len(next(iter(symbols.values()), (0, 0)))
    nodes: list[Node] = []
    for part in parts:
        if not isinstance(part, Node):
            name, inputs, attrs = part
            kind = infer(TABLE[name], [nodes[index].type for index in inputs], attrs, calls)
            part = Node(name, inputs, attrs, kind)
        nodes.append(part)
    return Graph(tuple(nodes), results or (len(nodes) - 1,), symbols, Options(frontend, **options))
