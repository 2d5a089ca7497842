"""The learned order: a random forest over features of trials, of this dispatch and of all that the database knows.

It predicts the logarithm of baseline over candidate, which is comparable between dispatches and machines where times
are not. Trials of the dispatch at hand count more, and more with each of them. Until there is enough to learn from, the
heuristic leads; its guess stays one of the columns. Some of each batch go where the trees disagree, so that a model
which is wrong finds out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from eyas.targets import Target
from eyas.tune.database import Database
from eyas.tune.facts import Facts
from eyas.tune.features import Features, Key, features_of, key_of
from eyas.tune.forest import grow
from eyas.tune.heuristic import expected_speed
from eyas.tune.trials import Candidate, Trial

ENOUGH = 24
"""Trials below which there is nothing to learn from."""
_MOST_ROWS = 4000
_FAILED = -3.0
"""What a trial without a time counts as: eight times slower."""
_OWN = 6.0
"""How much more a trial of the dispatch counts than one of another."""
_EXPLORE_EVERY = 5
_GUESS = "expected speed"


@dataclass(frozen=True)
class Examples:
    """Features and what became of them."""

    features: tuple[Features, ...]
    gains: tuple[float, ...]
    dispatches: tuple[tuple[str, str], ...]


class Learned:
    """Learns from the database once, and from the dispatch's own trials each time that it is asked."""

    def __init__(self, database: Database | Examples, seed: int) -> None:
        self._examples = database if isinstance(database, Examples) else examples_of(database)
        self._seed, self._turn = seed, 0

    def propose(
        self, candidates: Sequence[Candidate], features: Mapping[Key, Features], tried: Sequence[Trial]
    ) -> list[int]:
        self._turn += 1
        wanted = [features[key_of(one)] for one in candidates]
        if not candidates:
            return []
        own = {(one.dispatch, one.target) for one in candidates}
        others = [number for number, one in enumerate(self._examples.dispatches) if one not in own]
        random = np.random.default_rng((self._seed, self._turn))
        if len(others) > _MOST_ROWS:
            others = sorted(random.choice(others, _MOST_ROWS, replace=False))
        rows = [self._examples.features[number] for number in others]
        gains = [self._examples.gains[number] for number in others]
        known = [(features[key_of(one.candidate)], gain_of(one)) for one in tried if key_of(one.candidate) in features]
        if len(rows) + len(known) < ENOUGH:
            return _interleaved(np.array([expected_speed(one) for one in wanted]), np.zeros(len(wanted)), random)
        rows += [one for one, _ in known]
        gains += [gain for _, gain in known]
        weights = np.array([1.0] * len(others) + [_own_weight(len(known), len(others))] * len(known))
        columns = _columns([*rows, *wanted])
        forest = grow(_matrix(rows, columns), np.array(gains), self._seed + self._turn, weights)
        mean, spread = forest.predict(_matrix(wanted, columns))
        return _interleaved(mean, spread, random)


def gain_of(trial: Trial) -> float:
    """What is predicted: how many times faster than the baseline, as a logarithm to base 2."""
    if not trial.status.has_time or not trial.us or not trial.baseline_us:
        return _FAILED
    return max(_FAILED, log2(trial.baseline_us / trial.us))


def examples_of(database: Database) -> Examples:
    """All trials whose dispatches are described, of any compiler, each candidate of a device once: its last trial."""
    described = {}
    for key, one in database.described().items():
        try:
            described[key] = Facts.from_json(one.facts), Target.parse(one.target)
        except Exception:  # noqa: BLE001 - notes of another version teach nothing, and stop nobody
            continue
    last: dict[tuple, Trial] = {}
    for trial in database.trials(any_compiler=True):
        if (trial.candidate.dispatch, trial.candidate.target) in described:
            last[*key_of(trial.candidate), trial.device] = trial
    features, gains, dispatches = [], [], []
    for trial in last.values():
        key = trial.candidate.dispatch, trial.candidate.target
        try:
            found = features_of(trial.candidate, *described[key])
        except (ValueError, KeyError, IndexError, TypeError):
            continue  # a schedule in a form that was given up
        features.append(found)
        gains.append(gain_of(trial))
        dispatches.append(key)
    return Examples(tuple(features), tuple(gains), tuple(dispatches))


def matrix_of(rows: Sequence[Features]) -> tuple[np.ndarray, list[str]]:
    """Features as a table, with the heuristic's guess as one more column; what a row has not is -1."""
    columns = _columns(rows)
    return _matrix(rows, columns), columns


def _columns(rows: Sequence[Features]) -> list[str]:
    return [*sorted({name for row in rows for name in row}), _GUESS]


def _matrix(rows: Sequence[Features], columns: Sequence[str]) -> np.ndarray:
    place = {name: number for number, name in enumerate(columns)}
    found = np.full((len(rows), len(columns)), -1.0)
    for number, row in enumerate(rows):
        for name, value in row.items():
            if name in place:
                found[number, place[name]] = value
        found[number, place[_GUESS]] = expected_speed(row)
    return found


def _own_weight(own: int, others: int) -> float:
    """A few trials of the dispatch itself weigh as much as a good part of all others."""
    return 1.0 if not own or not others else max(_OWN, 0.5 * others / max(own, 12))


def _interleaved(mean: np.ndarray, spread: np.ndarray, random: np.random.Generator) -> list[int]:
    """By mean, and every so often the one that might be best of those that are left."""
    noise = random.random(len(mean)) * 1e-9
    by_mean = list(np.argsort(-(mean + noise)))
    by_hope = list(np.argsort(-(mean + 2.0 * spread + noise)))
    if not spread.any():
        by_hope = list(random.permutation(len(mean)))
    order: list[int] = []
    seen: set[int] = set()
    sources = iter(by_mean), iter(by_hope)
    for number in range(len(mean)):
        explores = number % _EXPLORE_EVERY == _EXPLORE_EVERY - 1
        one = next(one for one in sources[explores] if one not in seen)
        seen.add(one)
        order.append(int(one))
    return order
