"""The candidates of one dispatch, in batches: drawn from the spaces of all strategies that apply, then put in order.

What a batch has depends on the seed and on the trials of the batches before it alone, so that a session that was killed
meets the same candidates again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch_mlir import ir as mlir

from eyas.codegen.backends import backend_of
from eyas.codegen.common.analysis import analysis_of
from eyas.codegen.common.space import Space
from eyas.codegen.common.strategies.base import Strategy
from eyas.dialects import codegen
from eyas.tune.dispatches import Dispatch
from eyas.tune.trials import Candidate, Trial

Draw = Callable[..., Iterator[dict[str, int]]]
"""`solver.points`."""
Propose = Callable[[Sequence[Candidate], Sequence[Trial]], list[int]]
"""Indices of candidates, best first."""

_POOL = 6
"""So many times a batch is drawn before the best of it are taken."""
_NEIGHBOURS = 0.5
"""The part of what is drawn that lies near the best point so far."""
_MOST_DRAWS = 400


class Search:
    """A dispatch's spaces, and what was proposed from them."""

    def __init__(
        self,
        dispatch: Dispatch,
        draw: Draw,
        propose: Propose,
        seed: int = 0,
        disabled: frozenset[str] = frozenset(),
        spaces: Mapping[str, Space] | None = None,
    ) -> None:
        self.dispatch, self._draw, self._propose, self._seed = dispatch, draw, propose, seed
        self.backend = backend_of(dispatch.target)
        with dispatch.function.operation.context, mlir.Location.unknown():
            self.found = analysis_of(dispatch.function, {}, dispatch.target.near_bytes)
            chosen, _ = self.backend.select(dispatch.function, dispatch.target, disabled, self.found)
            self.baseline = self._candidate(chosen)
            if spaces is None:
                spaces, self.reasons = self.backend.spaces(dispatch.function, dispatch.target, disabled, self.found)
            else:
                self.reasons = []
        self.spaces = dict(spaces)
        self._seen = {_key(self.baseline)}
        self._schedules = {self.baseline.schedule}
        self._waiting: list[Candidate] = []
        self._drawn: dict[str, Iterator[dict[str, int]]] = {
            name: self._draw(space, seed + number) for number, (name, space) in enumerate(sorted(self.spaces.items()))
        }
        self._batches = 0

    @property
    def size(self) -> int:
        return sum(space.size() for space in self.spaces.values())

    def batch(self, count: int, tried: Sequence[Trial]) -> list[Candidate]:
        """The next candidates; fewer, and none at last, when the spaces are exhausted. `tried` are the trials of all
        batches before."""
        with self.dispatch.function.operation.context, mlir.Location.unknown():
            if not self._batches:
                self._waiting += self._defaults()
            wanted = _POOL * count - len(self._waiting)
            self._waiting += self._near(int(wanted * _NEIGHBOURS), tried)
            self._waiting += self._anywhere(_POOL * count - len(self._waiting))
        self._batches += 1
        order = self._propose(self._waiting, tried) if self._waiting else []
        chosen = [self._waiting[index] for index in order[:count]]
        left = set(order[count:])
        self._waiting = [one for index, one in enumerate(self._waiting) if index in left]
        return chosen

    # --- parts ---------------------------------------------------------------------------------------------------

    def _defaults(self) -> list[Candidate]:
        """What each strategy would choose by itself."""
        found = []
        for strategy in self.backend.strategies:
            if strategy.name in self.spaces:
                choice = strategy.choose(self.found, self.dispatch.target)
                if isinstance(choice, Strategy) and choice.problem() is None:
                    found += self._fresh(choice)
        return found

    def _near(self, count: int, tried: Sequence[Trial]) -> list[Candidate]:
        """Points around the best so far."""
        right = [one for one in tried if one.ratio is not None and one.candidate.strategy in self.spaces]
        if not right or count <= 0:
            return []
        best = max(right, key=lambda one: one.ratio[1]).candidate  # pyright: ignore[reportOptionalSubscript]
        points = self._draw(self.spaces[best.strategy], self._seed + 1000 + self._batches, near=dict(best.point))
        return self._take(best.strategy, points, count)

    def _anywhere(self, count: int) -> list[Candidate]:
        """Points of all strategies, in turn."""
        found: list[Candidate] = []
        while len(found) < count and self._drawn:
            share = -(-(count - len(found)) // len(self._drawn))
            for name in list(self._drawn):
                made = self._take(name, self._drawn[name], share)
                found += made
                if not made:
                    del self._drawn[name]
        return found[:count] if count > 0 else []

    def _take(self, strategy: str, points: Iterator[dict[str, int]], count: int) -> list[Candidate]:
        kind = next(one for one in self.backend.strategies if one.name == strategy)
        found: list[Candidate] = []
        for point in itertools.islice(points, _MOST_DRAWS):
            choice = kind.at(self.found, self.dispatch.target, point)
            if isinstance(choice, Strategy) and choice.problem() is None:
                found += self._fresh(choice)
            if len(found) >= count:
                break
        return found

    def _fresh(self, choice: Strategy) -> list[Candidate]:
        """The candidate, unless it or one with its schedule was proposed before."""
        candidate = self._candidate(choice)
        if _key(candidate) in self._seen or candidate.schedule in self._schedules:
            return []
        self._seen.add(_key(candidate))
        self._schedules.add(candidate.schedule)
        return [candidate]

    def _candidate(self, choice: Strategy) -> Candidate:
        point: dict[str, int] = dict(getattr(choice, "point", {}))
        return Candidate(self.dispatch.key, str(self.dispatch.target), choice.name, point, schedule_text(choice))


def schedule_text(choice: Strategy) -> str:
    """What is noted on a function that is lowered so. Panels are not part of it: `pack-weights` adds them."""
    attribute = codegen.StrategyAttr.get(mlir.StringAttr.get(choice.name), choice.schedule_attribute())
    return str(attribute)


def _key(candidate: Candidate) -> tuple[Any, ...]:
    return candidate.strategy, *sorted(candidate.point.items())
