"""The graph as data: leaves and ops in order, each with one typed result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eyas.targets import Target

Dim = int | tuple[int, ...]
"""A size, or the sizes of a dynamic dimension: one for each call that will be made."""


@dataclass(frozen=True)
class TensorType:
    """An element type of `shadow.DTYPES` and sizes."""

    dtype: str
    shape: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        return all(isinstance(dim, int) for dim in self.shape)

    def at(self, call: int) -> tuple[int, ...]:
        """The sizes in one call."""
        return tuple(dim if isinstance(dim, int) else dim[call] for dim in self.shape)

    def smallest(self, axis: int) -> int:
        dim = self.shape[axis]
        return dim if isinstance(dim, int) else min(dim)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Node:
    """`op` is a name of the table, or `input` or `constant`; `inputs` are indices of earlier nodes."""

    op: str
    inputs: tuple[int, ...]
    attrs: Mapping[str, Any]
    type: TensorType

    @property
    def is_leaf(self) -> bool:
        return self.op in ("input", "constant")

    def __str__(self) -> str:
        given = [f"%{index}" for index in self.inputs] + [f"{key}={value!r}" for key, value in self.attrs.items()]
        return f"{self.op}({', '.join(given)}) : {self.type}"


@dataclass(frozen=True)
class Options:
    """How the graph is compiled and called; none of it may change results beyond rounding."""

    frontend: str = "jax"
    disable: tuple[str, ...] = ()
    device: str | None = "local-sync"
    """None: what the target runs on by default."""
    threads: int | None = 1
    max_arena_bytes: int = 0
    arguments: str = "arrays"
    """How arguments are passed: `arrays`, `strided` (views that are not contiguous), or torch `tensors`."""
    target: str = "llvm-cpu"

    def for_target(self, target: str) -> Options:
        """The same for another target; one that is no CPU's runs on its own kind of device."""
        on_cpu = Target.parse(target).backend in ("llvm-cpu", "vmvx")
        where = {} if on_cpu else {"device": None, "threads": None}
        return replace(self, target=target, **where)


@dataclass(frozen=True)
class Graph:
    """Nodes, which of them are returned, the sizes of each symbol in each call, and compile options."""

    nodes: tuple[Node, ...]
    results: tuple[int, ...]
    symbols: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    options: Options = field(default_factory=Options)

    @property
    def calls(self) -> int:
        return len(next(iter(self.symbols.values()), (0, 0)))

    @property
    def inputs(self) -> list[int]:
        return [index for index, node in enumerate(self.nodes) if node.op == "input"]

    def symbol(self, dim: Dim) -> str | None:
        """The name of a dynamic dimension of an input."""
        return next((name for name, sizes in self.symbols.items() if sizes == dim), None)

    def users(self, index: int) -> list[int]:
        return [user for user, node in enumerate(self.nodes) if index in node.inputs]

    def digest(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]

    def for_target(self, target: str) -> Graph:
        """The same graph, compiled for something else."""
        return replace(self, options=self.options.for_target(target))

    def pruned(self) -> Graph:
        """Without nodes that no result needs."""
        needed = set(self.results)
        for index in reversed(range(len(self.nodes))):
            if index in needed:
                needed.update(self.nodes[index].inputs)
        kept = sorted(needed)
        place = {old: new for new, old in enumerate(kept)}
        nodes = [self.nodes[old] for old in kept]
        moved = tuple(Node(n.op, tuple(place[i] for i in n.inputs), n.attrs, n.type) for n in nodes)
        return Graph(moved, tuple(place[i] for i in self.results), self.symbols, self.options)

    def source(self) -> str:
        """Python text that makes the graph again."""
        lines = ["from tests.fuzz.graph import Graph, Node, Options, TensorType", "", "graph = Graph(", "    ("]
        lines += [f"        {node!r}," for node in self.nodes]
        lines += ["    ),", f"    {self.results!r},", f"    {dict(self.symbols)!r},", f"    {self.options!r},", ")"]
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [f"%{index} = {node}" for index, node in enumerate(self.nodes)]
        lines.append(f"return {', '.join(f'%{index}' for index in self.results)}")
        if self.symbols:
            lines.append(f"symbols {dict(self.symbols)}")
        return "\n".join([*lines, str(self.options)])


def used_ops(graph: Graph) -> Sequence[str]:
    return [node.op for node in graph.nodes if not node.is_leaf]
