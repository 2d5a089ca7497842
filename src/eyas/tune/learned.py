"""The learned order: a random forest over features of trials, of this dispatch and of all that the database knows.

It predicts the logarithm of baseline over candidate, which is comparable between dispatches and machines where times
are not. One forest is grown of all other trials; a small one of the dispatch's own learns what the first is wrong by,
and counts more with each of them. Until there is enough to learn from, the heuristic leads; its guess stays one of the
columns. Some of each batch go where the trees disagree, so that a model which is wrong finds out.

What it proposes depends on the seed, on what the database had before the session, and on what it was told since: a
session that was killed and goes on is proposed the same.
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
from eyas.tune.forest import Forest, grow
from eyas.tune.heuristic import expected_speed
from eyas.tune.trials import Candidate, Trial

ENOUGH = 24
"""Trials below which there is nothing to learn from."""
_MOST_ROWS = 4000
_FAILED = -3.0
"""What a trial without a time counts as: eight times slower."""
_BEFORE = 3.0
"""How much more a trial of the dispatch itself, of an earlier session, counts than one of another."""
_GROWN_BY = 64
"""Trials of this session after which the forest of all others is grown anew."""
_FEWEST_OWN, _BELIEVE = 4, 6
"""Trials of the dispatch from which on it has a forest, and at which that one is believed by half."""
_FACTS = 0.15
"""What the heuristic's guess counts beside what was learned."""
_EXPLORE_EVERY = 5
_GUESS = "expected speed"


@dataclass(frozen=True)
class Examples:
    """Features and what became of them."""

    features: tuple[Features, ...]
    gains: tuple[float, ...]
    dispatches: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Prior:
    """A forest of all trials but the dispatch's own, and the columns that it was grown with."""

    forest: Forest
    columns: tuple[str, ...]

    def predict(self, rows: Sequence[Features]) -> tuple[np.ndarray, np.ndarray]:
        return self.forest.predict(_matrix(rows, self.columns))


class Learned:
    """Learns from the database once, and from the trials of this session as it is told of them."""

    def __init__(self, database: Database | Examples, seed: int, session: str = "") -> None:
        self._examples = database if isinstance(database, Examples) else examples_of(database, session)
        self._seed, self._turn = seed, 0
        self._told: dict[tuple[str, str], list[tuple[Features, float]]] = {}
        self._priors: dict[tuple[bool, int], Prior] = {}

    def fresh(self) -> Learned:
        """One that was told nothing yet and knows the same of the past."""
        made = Learned(self._examples, self._seed)
        if (False, 0) not in self._priors and len(self._examples.gains) >= ENOUGH:
            self._priors[False, 0] = self._grow(("", ""), [])
        made._priors = {key: one for key, one in self._priors.items() if key == (False, 0)}
        return made

    def propose(
        self, candidates: Sequence[Candidate], features: Mapping[Key, Features], tried: Sequence[Trial]
    ) -> list[int]:
        self._turn += 1
        wanted = [features[key_of(one)] for one in candidates]
        if not candidates:
            return []
        own = candidates[0].dispatch, candidates[0].target
        random = np.random.default_rng((self._seed, self._turn))
        known = [(features[key_of(one.candidate)], gain_of(one)) for one in tried if key_of(one.candidate) in features]
        self._told[own] = known
        prior = self._prior(own)
        if prior is None and len(known) < ENOUGH:
            return _interleaved(np.array([expected_speed(one) for one in wanted]), np.zeros(len(wanted)), random)
        mean, spread = prior.predict(wanted) if prior is not None else (np.zeros(len(wanted)), np.zeros(len(wanted)))
        if len(known) >= _FEWEST_OWN:
            more, doubt = _own(prior, known, wanted, self._seed + self._turn)
            mean, spread = mean + more, np.hypot(spread, doubt)
        # Where the forests see no difference, or never saw the like, what the machine's facts say decides.
        mean = mean + _FACTS * np.array([max(expected_speed(one), _FAILED) for one in wanted])
        return _interleaved(mean, spread, random)

    def _prior(self, own: tuple[str, str]) -> Prior | None:
        """The forest of all that is known beside the dispatch's own trials of this session."""
        told = [one for key, some in self._told.items() if key != own for one in some]
        told = told[: len(told) // _GROWN_BY * _GROWN_BY] if len(self._examples.gains) >= ENOUGH else told
        if len(self._examples.gains) + len(told) < ENOUGH:
            return None
        # Only a dispatch that was met before needs one of its own.
        is_known = own in self._examples.dispatches
        place = is_known, len(told) // _GROWN_BY
        if is_known or place not in self._priors:
            made = self._grow(own, told)
            if is_known:
                return made
            self._priors[place] = made
        return self._priors[place]

    def _grow(self, own: tuple[str, str], told: Sequence[tuple[Features, float]]) -> Prior:
        random = np.random.default_rng(self._seed)
        numbers = list(range(len(self._examples.gains)))
        if len(numbers) > _MOST_ROWS:
            numbers = sorted(random.choice(len(numbers), _MOST_ROWS, replace=False))
        rows = [self._examples.features[number] for number in numbers] + [one for one, _ in told]
        gains = [self._examples.gains[number] for number in numbers] + [gain for _, gain in told]
        # The same dispatch on another device, or compiled by another version, is a near relative.
        weights = [_BEFORE if self._examples.dispatches[number] == own else 1.0 for number in numbers]
        weights += [1.0] * len(told)
        columns = _columns(rows)
        forest = grow(_matrix(rows, columns), np.array(gains), self._seed, np.array(weights), trees=32, depth=10)
        return Prior(forest, tuple(columns))


def _own(
    prior: Prior | None, known: Sequence[tuple[Features, float]], wanted: Sequence[Features], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """What the prior is expected to be wrong by, from trials of the dispatch itself."""
    rows = [one for one, _ in known]
    columns = _columns([*rows, *wanted])
    gains = np.array([gain for _, gain in known])
    wrong = gains - prior.predict(rows)[0] if prior is not None else gains
    forest = grow(_matrix(rows, columns), wrong, seed, trees=24, depth=6)
    mean, spread = forest.predict(_matrix(wanted, columns))
    return mean * len(known) / (len(known) + _BELIEVE), spread


def gain_of(trial: Trial) -> float:
    """What is predicted: how many times faster than the baseline, as a logarithm to base 2."""
    if not trial.status.has_time or not trial.us or not trial.baseline_us:
        return _FAILED
    return max(_FAILED, log2(trial.baseline_us / trial.us))


def examples_of(database: Database, without: str = "") -> Examples:
    """All trials whose dispatches are described, of any compiler, each candidate of a device once: its last trial. Not
    those of a session that is told of them itself."""
    described = {}
    for key, one in database.described().items():
        try:
            described[key] = Facts.from_json(one.facts), Target.parse(one.target)
        except Exception:  # noqa: BLE001 - notes of another version teach nothing, and stop nobody
            continue
    last: dict[tuple, Trial] = {}
    for record in database.records(any_compiler=True):
        trial = record.trial
        if record.session != without and (trial.candidate.dispatch, trial.candidate.target) in described:
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
