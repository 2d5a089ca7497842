"""Which knobs made a difference: a forest learns the gains of trials from knobs and shapes, then each knob is shuffled.

What the forest predicts of trials that it has not seen says how much to believe of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2
from statistics import mean

import numpy as np

from eyas.tune.database import Database, Record
from eyas.tune.forest import grow, permutation_importance
from eyas.tune.learned import gain_of
from eyas.tune.trials import Trial

_FEWEST = 20
_MOST_VALUES = 12


@dataclass(frozen=True)
class Knob:
    """What shuffling a knob adds to the error, as a part of the gains' variance, and how trials with each of its values
    went: their speed as a part of the best of their dispatch, the mean and the best."""

    name: str
    importance: float
    values: tuple[tuple[int, float, float, int], ...]
    """Value, mean, best, number of trials."""


@dataclass(frozen=True)
class Importance:
    """Of the knobs of one strategy for one kind of target."""

    strategy: str
    backend: str
    trials: int
    explained: float
    """The part of the variance that the forest explains of trials that it was not grown with; below 0 it is useless."""
    knobs: tuple[Knob, ...]


def importance_of(records: Sequence[Record], database: Database) -> tuple[Importance, ...]:
    """For each strategy with enough trials, those with the most trials first."""
    del database
    groups: dict[tuple[str, str], list[Trial]] = {}
    for one in records:
        trial = one.trial
        if trial.status.has_time and trial.us and trial.baseline_us and trial.candidate.point:
            key = trial.candidate.strategy, trial.candidate.target.partition(":")[0]
            groups.setdefault(key, []).append(trial)
    found = [_of_strategy(*key, trials) for key, trials in groups.items() if len(trials) >= _FEWEST]
    return tuple(sorted(found, key=lambda one: -one.trials))


def _of_strategy(strategy: str, backend: str, trials: list[Trial]) -> Importance:
    names = sorted({name for one in trials for name in one.candidate.point})
    dispatches = sorted({(one.candidate.dispatch, one.candidate.target) for one in trials})
    rows = np.array(
        [
            [float(log2(max(one.candidate.point.get(name, 0), 0) + 1)) for name in names]
            + [float(dispatches.index((one.candidate.dispatch, one.candidate.target)))]
            for one in trials
        ]
    )
    gains = np.array([gain_of(one) for one in trials])
    groups = {name: [number] for number, name in enumerate(names)}
    forest = grow(rows, gains, seed=0)
    found = permutation_importance(forest, rows, gains, groups, seed=0)
    best = {
        key: max(gain for one, gain in zip(trials, gains, strict=True) if _key(one) == key)
        for key in set(map(_key, trials))
    }
    knobs = [
        Knob(name, found[name], _values(name, trials, gains, best))
        for name in found
        if len({one.candidate.point.get(name) for one in trials}) > 1
    ]
    return Importance(strategy, backend, len(trials), _explained(rows, gains), tuple(knobs))


def _key(trial: Trial) -> tuple[str, str]:
    return trial.candidate.dispatch, trial.candidate.target


def _values(
    name: str, trials: Sequence[Trial], gains: np.ndarray, best: dict[tuple[str, str], float]
) -> tuple[tuple[int, float, float, int], ...]:
    speeds: dict[int, list[float]] = {}
    for one, gain in zip(trials, gains, strict=True):
        if name in one.candidate.point:
            speeds.setdefault(one.candidate.point[name], []).append(float(2 ** (gain - best[_key(one)])))
    often = sorted(speeds, key=lambda value: -len(speeds[value]))[:_MOST_VALUES]
    return tuple((value, mean(speeds[value]), max(speeds[value]), len(speeds[value])) for value in sorted(often))


def _explained(rows: np.ndarray, gains: np.ndarray) -> float:
    """By four-fold cross-validation."""
    part = np.random.default_rng(0).permutation(len(rows)) % 4
    guesses = np.empty(len(rows))
    for one in range(4):
        inside = part != one
        guesses[~inside] = grow(rows[inside], gains[inside], seed=one, trees=24).predict(rows[~inside])[0]
    return 1.0 - float(((guesses - gains) ** 2).mean() / (gains.var() or 1.0))
