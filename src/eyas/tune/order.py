"""Which candidates to try first. Every order gives all of them; what is wrong about it costs time and nothing else."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

from eyas.errors import UsageError
from eyas.tune.database import Database
from eyas.tune.features import Features, Key, key_of
from eyas.tune.heuristic import expected_speed
from eyas.tune.learned import Learned
from eyas.tune.trials import Candidate, Trial

ORDERS = ("random", "heuristic", "learned")


class Order(Protocol):
    """Asked again after each few trials, with what became of them."""

    def propose(
        self, candidates: Sequence[Candidate], features: Mapping[Key, Features], tried: Sequence[Trial]
    ) -> list[int]:
        """Indices of all candidates, the most promising first. `features` has those of candidates and of trials."""
        ...


class Random:
    """Without a preference: what the others are compared with."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def propose(
        self, candidates: Sequence[Candidate], features: Mapping[Key, Features], tried: Sequence[Trial]
    ) -> list[int]:
        del features, tried
        return self._random.sample(range(len(candidates)), len(candidates))


class Heuristic:
    """By the speed that the machine's facts let expect; equals in random order."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def propose(
        self, candidates: Sequence[Candidate], features: Mapping[Key, Features], tried: Sequence[Trial]
    ) -> list[int]:
        del tried
        speeds = [expected_speed(features[key_of(one)]) for one in candidates]
        shuffled = self._random.sample(range(len(candidates)), len(candidates))
        return sorted(shuffled, key=lambda one: -speeds[one])


def make_order(name: str, database: Database, seed: int, session: str = "") -> Order:
    """The order of that name; a learned one knows all that the database has of other sessions."""
    if name == "random":
        return Random(seed)
    if name == "heuristic":
        return Heuristic(seed)
    if name == "learned":
        return Learned(database, seed, session)
    raise UsageError(f"there is no order '{name}'; there are {', '.join(ORDERS)}")
