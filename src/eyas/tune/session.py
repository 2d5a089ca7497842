"""The loop of the tuner: dispatches by what may be gained, batches of candidates, and what is kept.

Time goes to the dispatch of which the most can be expected: its part of the model's time, what the device could do
beyond what it does, and how long ago it was that something better was found. Every trial is in the database before the
next one begins; a session that goes on replays the batches that it has trials of.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eyas.errors import EyasError
from eyas.targets.others import BUSY
from eyas.tune.bench import Bench, Setting
from eyas.tune.compile import Compilers
from eyas.tune.database import Database
from eyas.tune.dispatches import Dispatch
from eyas.tune.facts import facts_of
from eyas.tune.features import features_of, key_of
from eyas.tune.order import Order
from eyas.tune.runner import RunnerDied, RunnerProcess
from eyas.tune.search import Draw, Search
from eyas.tune.timing import Noise
from eyas.tune.trials import Candidate, Status, Trial

_BATCHES = 2
"""Of a dispatch, before another one may have its turn: changing it costs as much as a few trials."""
_PATIENCE = 24
"""Trials without anything better after which half as much is expected of a dispatch."""


@dataclass(frozen=True)
class Plan:
    """What a session may use. `trials` bounds those of each dispatch; None means as many as time allows."""

    seconds: float
    seed: int = 0
    trials: int | None = None
    batch: int = 8
    setting: Setting = field(default_factory=Setting)


class Listener:
    """Hears what a session does."""

    def on_dispatch(self, dispatch: Dispatch, noise: float, us: float) -> None:
        """A dispatch is on the device: what equal code differs by, and its time by default."""

    def on_trial(self, dispatch: Dispatch, trial: Trial, best: float, left_s: float) -> None:
        """A trial is in the database; `best` is the ratio of the best so far."""

    def on_note(self, text: str) -> None:
        """Something that whoever reads the numbers should know."""


@dataclass
class State:
    """A dispatch in a session."""

    dispatch: Dispatch
    search: Search
    potential: float
    bench: Bench | None = None
    tried: list[Trial] = field(default_factory=list)
    noise: Noise | None = None
    baseline_us: float = 0.0
    since_better: int = 0
    is_done: bool = False
    refuted: set[str] = field(default_factory=set)
    """Schedules that were the best and did not hold when they were compared afresh."""
    winner: Trial | None = None
    """The best trial that did hold."""

    @property
    def best(self) -> Trial | None:
        """The fastest right candidate that was not refuted."""
        right = [
            one
            for one in self.tried
            if one.ratio is not None and one.status.has_time and one.candidate.schedule not in self.refuted
        ]
        return max(right, key=lambda one: one.ratio[0] if one.ratio else 0.0, default=None)

    @property
    def expected(self) -> float:
        return 0.0 if self.is_done else self.potential * 0.5 ** (self.since_better / _PATIENCE)


class Session:
    """Tunes the dispatches of a model one by one."""

    def __init__(
        self,
        name: str,
        dispatches: Sequence[Dispatch],
        plan: Plan,
        database: Database,
        compilers: Compilers,
        runners: Sequence[RunnerProcess],
        order: Order,
        draw: Draw,
        listener: Listener | None = None,
        potential: Callable[[Dispatch], float] = lambda one: one.share,
        spaces: Callable[[Dispatch], Any] = lambda _: None,
    ) -> None:
        self.name, self.plan, self.database = name, plan, database
        self._compilers, self._runners, self._order = compilers, runners, order
        self._listener = listener or Listener()
        self._order_name = getattr(order, "name", type(order).__name__.lower())
        self._facts: dict[str, Any] = {}
        self.states: list[State] = []
        for one in dispatches:
            if one.is_fixed:
                continue
            propose = self._proposer(one)
            search = Search(one, draw, propose, plan.seed, frozenset(plan.setting.disabled), spaces(one))
            self.states.append(State(one, search, max(potential(one), 1e-6)))
        self._open: State | None = None
        self._deadline = float("inf")

    def run(self) -> list[State]:
        """Tunes until the time is over, nothing is left to try, or Ctrl-C, which keeps what there is."""
        self._deadline = time.monotonic() + self.plan.seconds
        try:
            while self.left_s > 0 and (state := max(self.states, key=lambda one: one.expected, default=None)):
                if state.expected <= 0:
                    break
                self._slice(state)
        except KeyboardInterrupt:
            self._listener.on_note("interrupted: what was found until now is kept")
        self._tell_others()
        return self.states

    @property
    def left_s(self) -> float:
        return self._deadline - time.monotonic()

    def _slice(self, state: State) -> None:
        try:
            bench = self._opened(state)
        except (EyasError, RunnerDied) as error:
            state.is_done = True
            self._listener.on_note(f"{state.dispatch.name} is left as it is: {error}")
            return
        for _ in range(_BATCHES):
            if self.left_s <= 0 or state.is_done:
                break
            self._batch(state, bench)
        self._confirm(state, bench)

    def _batch(self, state: State, bench: Bench) -> None:
        count = self.plan.batch
        if self.plan.trials is not None:
            count = min(count, self.plan.trials - len(state.tried))
        candidates = state.search.batch(count, state.tried) if count > 0 else []
        if not candidates:
            state.is_done = True
            return
        known = self._known(state)
        tried: dict[int, Trial] = {}
        fresh = []
        for number, one in enumerate(candidates):
            old = known.get(key_of(one))
            if old is not None:
                tried[number] = old
                bench.remember(old)
            else:
                fresh.append(number)
        numbers = {key_of(candidates[number]): number for number in fresh}
        for trial in bench.try_all([candidates[number] for number in fresh], self._deadline):
            trial = replace(trial, order=self._order_name)
            self.database.add(self.name, trial)
            tried[numbers[key_of(trial.candidate)]] = trial
            best = self._best_ratio([*state.tried, *tried.values()])
            self._listener.on_trial(state.dispatch, trial, best, max(self.left_s, 0.0))
        before = self._best_ratio(state.tried)
        # In the order of the batch, whenever they were done.
        state.tried += [tried[number] for number in sorted(tried)]
        state.since_better = 0 if self._best_ratio(state.tried) > before else state.since_better + len(tried)

    def _confirm(self, state: State, bench: Bench) -> None:
        """Compares the best afresh, and the next where it does not hold; what is not a gain even then is none."""
        assert state.noise is not None
        for _ in range(3):
            best = state.best
            if best is None or best.ratio is None or best.ratio[0] <= 1 or best.code == bench.baseline.code:
                return
            if state.winner is not None and best.candidate.schedule == state.winner.candidate.schedule:
                return
            try:
                confirmed = bench.confirm(best.candidate, state.noise)
            except (EyasError, RunnerDied):
                confirmed = None
            if confirmed is not None and confirmed.is_gain:
                state.winner = replace(best, ratio=confirmed.ratio.as_tuple())
                return
            state.refuted.add(best.candidate.schedule)

    def _opened(self, state: State) -> Bench:
        if state.bench is None:
            state.bench = Bench(state.dispatch, self._compilers, self._runners, self.plan.setting)
        if self._open is not state:
            state.bench.open(state.tried)
            self._open = state
        if state.noise is None:
            if (problem := state.bench.check_baseline()) is not None:
                raise EyasError(f"what the compiler makes of it by default is not what plain loops compute: {problem}")
            state.noise = state.bench.noise()
            state.baseline_us = state.bench.baseline_us()
            self._describe(state)
            self._listener.on_dispatch(state.dispatch, state.noise.level, state.baseline_us)
        return state.bench

    def _describe(self, state: State) -> None:
        one = state.dispatch
        self.database.describe(one.key, str(one.target), one.name, self._facts[one.key].to_json())
        baseline = state.search.baseline
        if key_of(baseline) not in self._known(state):
            code = state.bench.baseline.code if state.bench is not None else ""
            us = state.baseline_us
            trial = Trial(baseline, self._runners[0].label, Status.TIMED, us, us, (1.0, 1.0, 1.0), 0.0, code)
            self.database.add(self.name, replace(trial, order="baseline"))

    def _known(self, state: State) -> dict[Any, Trial]:
        """Trials of the dispatch on this device that the database has, the first of each candidate."""
        one = state.dispatch
        found: dict[Any, Trial] = {}
        for runner in self._runners:
            for trial in self.database.trials(one.key, str(one.target), runner.label):
                found.setdefault(key_of(trial.candidate), trial)
        return found

    def _proposer(self, dispatch: Dispatch) -> Callable[[Sequence[Candidate], Sequence[Trial]], list[int]]:
        facts = self._facts[dispatch.key] = facts_of(dispatch.function, dispatch.target)

        def propose(candidates: Sequence[Candidate], tried: Sequence[Trial]) -> list[int]:
            everything = [*candidates, *(one.candidate for one in tried)]
            features = {key_of(one): features_of(one, facts, dispatch.target) for one in everything}
            return self._order.propose(candidates, features, tried)

        return propose

    def _tell_others(self) -> None:
        for runner in self._runners:
            try:
                share = runner.others()
            except (EyasError, RunnerDied):
                continue
            if share > BUSY:
                self._listener.on_note(
                    f"other programs had {share:.0%} of this machine's CPUs while candidates were timed: small gains"
                    " are not told from noise then"
                )

    @staticmethod
    def _best_ratio(trials: Sequence[Trial]) -> float:
        return max((one.ratio[1] for one in trials if one.ratio is not None and one.status.has_time), default=1.0)


def reproducers_beside(database: str) -> Path:
    """Where wrong candidates are kept: beside the database, or here where that is in memory."""
    path = Path(database)
    return (path.parent if path.parent.is_dir() and database != ":memory:" else Path()) / "tuning-reproducers"
