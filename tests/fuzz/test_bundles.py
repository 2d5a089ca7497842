"""Bundles compute what their graphs do, and a graph that fails is found in them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.fuzz.bundles import Bundler, Drawn, merged, outcomes
from tests.fuzz.check import Outcome, check
from tests.fuzz.graph import Graph
from tests.fuzz.lowering import evaluate
from tests.fuzz.strategies import FRONTENDS
from tests.fuzz.written import graph, leaf, op

N = (5, 1, 3)


def some(frontend: str) -> list[Graph]:
    return [
        graph(frontend, leaf("f32", 7), op("neg", 0), op("exp", 1), results=(2, 1)),
        graph(frontend, leaf("f32", N, 4), op("abs", 0)),
        graph(frontend, leaf("i32", 3, constant=True), leaf("i32", 3, seed=2), op("add", 0, 1)),
    ]


@pytest.mark.parametrize("frontend", FRONTENDS)
def test_a_bundle_is_its_graphs_side_by_side(frontend):
    parts = some(frontend)
    whole = merged(parts)
    assert len(whole.results) == 4 and whole.symbols == {"n0": N}
    wanted = [shadow.value for part in parts for shadow in evaluate(part, 1)]
    for got, want in zip(evaluate(whole, 1), wanted, strict=True):
        assert got.value.shape == want.shape
    np.testing.assert_array_equal(evaluate(whole, 0)[0].value, evaluate(parts[0], 0)[0].value)
    assert check(whole).kind == "passed"


def test_one_bad_graph_is_found():
    drawn = [Drawn(seed, graph("jax", leaf("f32", 1 + seed), op("neg", 0))) for seed in range(8)]

    def bad_with_five(one: Graph) -> Outcome:
        return Outcome("wrong" if any(node.type.shape == (5,) for node in one.nodes) else "passed", compared=1)

    found = list(outcomes(drawn, bad_with_five))
    assert [one.seed for one, _ in found] == list(range(8))
    assert [one.seed for one, outcome in found if outcome.is_bad] == [4]


def test_a_bundle_that_fails_by_itself_is_a_failure():
    drawn = [Drawn(seed, graph("jax", leaf("f32", 1 + seed), op("neg", 0))) for seed in range(2)]
    found = list(outcomes(drawn, lambda one: Outcome("wrong" if len(one.results) > 1 else "passed")))
    assert [outcome.kind for _, outcome in found] == ["passed", "passed", "wrong"]
    assert found[-1][0].graph == merged([one.graph for one in drawn])


def test_a_bundle_has_one_set_of_options():
    bundler = Bundler(4)
    kinds = [{"threads": 1}, {"threads": 2}, {"disable": ("rows",)}]
    due = []
    for seed in range(48):
        one = graph("jax", leaf("f32", 2), op("neg", 0), **kinds[seed % 3])
        due.append(bundler.add(Drawn(seed, one)))
    due = [bundle for bundle in (*due, *bundler.rest()) if bundle]
    assert sorted(one.seed for bundle in due for one in bundle) == list(range(48))
    assert {len({one.graph.options for one in bundle}) for bundle in due} == {1}
    assert {one.graph.options.disable for bundle in due for one in bundle} == {(), ("rows",)}
    assert bundler.held == 0 and {1, 4} <= {len(bundle) for bundle in due}
