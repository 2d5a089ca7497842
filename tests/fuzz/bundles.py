"""Several graphs as one program with all their results: most of a small graph's time is spent once for each program.

Graphs of one frontend are bundled, static ones and dynamic ones apart; all are compiled and called with the options of
the first. A bundle that does not pass is checked in halves, down to single graphs, so that outcomes are those of
graphs. Should both halves pass, the bundle itself is the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.fuzz.check import Outcome
from tests.fuzz.graph import Graph, Node

MOST = 8
"""Graphs in a bundle."""


@dataclass(frozen=True)
class Drawn:
    """A graph with the seed that made it and the numbers that were drawn."""

    seed: int
    graph: Graph
    choices: Sequence[int] = ()


class Bundler:
    """Holds graphs back until there are enough to go together."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._seen = most, 0
        self._held: dict[Any, list[Drawn]] = {}

    @property
    def held(self) -> int:
        return sum(map(len, self._held.values()))

    def add(self, drawn: Drawn) -> list[Drawn]:
        """The graphs that are due with this one, if any."""
        self._seen += 1
        # Now and then a graph alone: programs with one result, one dispatch or nothing to compute are of that kind.
        if self._seen % self._most == 0:
            return [drawn]
        options = drawn.graph.options
        key = (options.frontend, options.target, bool(options.disable), bool(drawn.graph.symbols))
        held = self._held.setdefault(key, [])
        alike = replace(drawn.graph, options=held[0].graph.options if held else options)
        held.append(replace(drawn, graph=alike))
        return self._held.pop(key) if len(held) == self._most else []

    def rest(self) -> list[list[Drawn]]:
        """What was held back, bundle by bundle."""
        rest = list(self._held.values())
        self._held.clear()
        return rest


def merged(graphs: Sequence[Graph]) -> Graph:
    """One graph that computes what all of them do, side by side."""
    if len(graphs) == 1:
        return graphs[0]
    nodes: list[Node] = []
    results: list[int] = []
    symbols: dict[str, tuple[int, ...]] = {}
    for graph in graphs:
        start = len(nodes)
        nodes += [replace(node, inputs=tuple(start + index for index in node.inputs)) for node in graph.nodes]
        results += [start + index for index in graph.results]
        symbols |= graph.symbols
    options = graphs[0].options
    # Room for the results and intermediates of each.
    options = replace(options, max_arena_bytes=len(graphs) * options.max_arena_bytes)
    return Graph(tuple(nodes), tuple(results), symbols, options)


def outcomes(bundle: Sequence[Drawn], check: Callable[[Graph], Outcome]) -> Iterator[tuple[Drawn, Outcome]]:
    """Each graph with its outcome, and the bundle with its own where it fails and none of its graphs does."""
    whole = merged([drawn.graph for drawn in bundle])
    outcome = check(whole)
    if len(bundle) == 1:
        yield bundle[0], outcome
    elif outcome.kind == "passed":
        # The first stands for the elements of all.
        yield bundle[0], outcome
        yield from ((drawn, Outcome("passed")) for drawn in bundle[1:])
    else:
        middle = len(bundle) // 2
        parts = [*outcomes(bundle[:middle], check), *outcomes(bundle[middle:], check)]
        yield from parts
        if outcome.is_bad and not any(part.is_bad for _, part in parts):
            yield Drawn(bundle[0].seed, whole), outcome
