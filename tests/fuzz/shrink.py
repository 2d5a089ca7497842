"""Makes a failing graph small: hypothesis shrinks the numbers that made it, then ops are cut off one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes
from hypothesis.errors import NoSuchExample
from tests.fuzz.graph import Graph, Node, Options
from tests.fuzz.strategies import graphs

Fails = Callable[[Graph], bool]


def shrink(graph: Graph, choices: Sequence[int], fails: Fails, frontend: str | None, seconds: float) -> Graph:
    """A smaller graph that fails in the same way."""
    deadline = time.monotonic() + seconds
    best = [graph]

    def fails_in_time(candidate: Graph) -> bool:
        if candidate == best[0]:
            return True
        if time.monotonic() > deadline or not fails(candidate):
            return False
        best[0] = candidate
        return True

    _cut(best, fails_in_time)
    if time.monotonic() < deadline and best[0] == graph:
        # Nothing could be cut: the failure needs all of it, so the numbers themselves are made simpler.
        _shrink_choices(choices, fails_in_time, frontend)
        _cut(best, fails_in_time)
    return best[0]


def _shrink_choices(choices: Sequence[int], fails: Fails, frontend: str | None) -> None:
    database, key = InMemoryExampleDatabase(), b"graph"
    database.save(key, choices_to_bytes(tuple(choices)))
    how = settings(
        database=database,
        phases=[Phase.reuse, Phase.shrink],
        deadline=None,
        max_examples=200,
        suppress_health_check=list(HealthCheck),
    )
    try:
        find(graphs(frontend), fails, settings=how, database_key=key)
    except NoSuchExample:
        pass


def _cut(best: list[Graph], fails: Fails) -> None:
    """Fewer results, plainer options, ops replaced by arguments of their type."""
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(best[0]):
            if fails(candidate):
                progress = True
                break


def _smaller(graph: Graph):
    for index in range(len(graph.nodes)):
        if not graph.nodes[index].is_leaf and len(graph.results) + len(graph.users(index)) > 0:
            if graph.results != (index,):
                yield replace(graph, results=(index,)).pruned()
    if len(graph.results) > 1:
        for place in range(len(graph.results)):
            yield replace(graph, results=graph.results[:place] + graph.results[place + 1 :]).pruned()
    plain = Options(graph.options.frontend).for_target(graph.options.target)
    for options in (plain, *(_without(graph, name) for name in graph.options.disable)):
        if options != graph.options:
            yield replace(graph, options=options)
    named = set(graph.symbols.values())
    for index, node in enumerate(graph.nodes):
        dims_named = all(isinstance(dim, int) or dim in named for dim in node.type.shape)
        if not node.is_leaf and dims_named and graph.results != (index,):
            kind = "normal" if node.type.dtype.startswith(("f", "b")) else "small"
            leaf = Node("input", (), {"kind": kind, "seed": 0}, node.type)
            nodes = (*graph.nodes[:index], leaf, *graph.nodes[index + 1 :])
            results = tuple(r for r in graph.results if r != index)
            yield Graph(nodes, results, graph.symbols, graph.options).pruned()


def _without(graph: Graph, name: str):
    return replace(graph.options, disable=tuple(n for n in graph.options.disable if n != name))
