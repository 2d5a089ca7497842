"""Many graphs, one after the other; failures are shrunk and grouped, and everything is counted."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.bundles import MOST, Bundler, Drawn, outcomes
from tests.fuzz.check import Outcome
from tests.fuzz.checker import Checker
from tests.fuzz.graph import Graph, used_ops
from tests.fuzz.shrink import shrink
from tests.fuzz.strategies import random_graph

SHRINKS_PER_SYMPTOM = 2
SHRINKS_OF_WRONG = 40


@dataclass(frozen=True)
class Failure:
    """A graph that failed, as small as it could be made."""

    seed: int
    graph: Graph
    outcome: Outcome
    nodes_before: int

    @property
    def group(self) -> str:
        if self.outcome.kind != "wrong":
            return self.outcome.symptom
        dtypes = sorted({node.type.dtype for node in self.graph.nodes})
        return f"wrong: {' '.join(used_ops(self.graph))} ({' '.join(dtypes)})"


@dataclass
class Tally:
    """What was tried and how it went."""

    outcomes: Counter[str] = field(default_factory=Counter)
    frontends: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    compared: int = 0
    elements: int = 0
    dynamic: int = 0
    nodes: int = 0
    seconds: float = 0.0

    @property
    def tried(self) -> int:
        """Graphs that the framework itself takes."""
        return sum(count for kind, count in self.outcomes.items() if kind != "invalid")

    @property
    def bad(self) -> int:
        return self.tried - self.outcomes["passed"]

    def note(self, graph: Graph, outcome: Outcome) -> None:
        self.outcomes[outcome.kind] += 1
        if outcome.kind == "invalid":
            return
        self.frontends[graph.options.frontend] += 1
        self.ops.update(used_ops(graph))
        self.compared += outcome.compared
        self.elements += outcome.elements
        self.dynamic += bool(graph.symbols)
        self.nodes += len(used_ops(graph))

    def merge(self, other: Tally) -> None:
        self.outcomes += other.outcomes
        self.frontends += other.frontends
        self.ops += other.ops
        self.failures += other.failures
        self.compared += other.compared
        self.elements += other.elements
        self.dynamic += other.dynamic
        self.nodes += other.nodes
        self.seconds = max(self.seconds, other.seconds)


def run(
    graphs: int,
    seed: int,
    step: int = 1,
    minutes: float | None = None,
    frontend: str | None = None,
    shrink_s: float = 60.0,
    log: Path | None = None,
    on_graph: Callable[[Tally], None] = lambda _: None,
    on_failure: Callable[[Failure], None] = lambda _: None,
    target: str = "llvm-cpu",
    together: int = MOST,
) -> Tally:
    """Tries graphs of the seeds `seed`, `seed + step`, ... until enough were tried or time is up."""
    tally, checker = Tally(), Checker()
    shrunk: Counter[str] = Counter()
    begin = time.monotonic()

    def try_all(bundle: Sequence[Drawn]) -> None:
        for drawn, outcome in outcomes(bundle, checker.check) if bundle else ():
            tally.note(drawn.graph, outcome)
            if outcome.is_bad:
                small = drawn.graph
                limit = SHRINKS_OF_WRONG if outcome.symptom == "wrong" else SHRINKS_PER_SYMPTOM
                if shrunk[outcome.symptom] < limit and outcome.kind != "hung":
                    shrunk[outcome.symptom] += 1

                    def fails(candidate: Graph, symptom: str = outcome.symptom) -> bool:
                        return checker.check(candidate.for_target(target)).symptom == symptom

                    small = shrink(small, drawn.choices, fails, frontend, shrink_s).for_target(target)
                    outcome = checker.check(small)
                failure = Failure(drawn.seed, small, outcome, len(drawn.graph.nodes))
                tally.failures.append(failure)
                if log is not None:
                    _write(log, failure)
                on_failure(failure)
            tally.seconds = time.monotonic() - begin
            on_graph(tally)

    bundler = Bundler(together)
    while tally.tried < graphs and (minutes is None or time.monotonic() - begin < 60 * minutes):
        graph, choices = random_graph(seed, frontend, target)
        seed += step
        if graph is not None:
            try_all(bundler.add(Drawn(seed - step, graph, choices)))
        if tally.tried + bundler.held >= graphs:
            for bundle in bundler.rest():
                try_all(bundle)
    checker.close()
    return tally


def _write(log: Path, failure: Failure) -> None:
    record = {
        "seed": failure.seed,
        "group": failure.group,
        "detail": failure.outcome.detail,
        "graph": str(failure.graph),
        "source": failure.graph.source(),
    }
    with log.open("a") as file:
        file.write(json.dumps(record) + "\n")
