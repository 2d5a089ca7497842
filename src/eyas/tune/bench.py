"""One dispatch on the devices: its small program, its baseline, and what becomes of candidates there."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from eyas.errors import EyasError
from eyas.targets import Target
from eyas.tune.compile import Compilers, Failed
from eyas.tune.dispatches import Dispatch
from eyas.tune.keep import keep
from eyas.tune.making import Made, Small
from eyas.tune.runner import RunnerDied, RunnerProcess
from eyas.tune.running import Operands
from eyas.tune.timing import Confirmed, Noise, Ratio, confirm, noise_of, race, ratio_of
from eyas.tune.trials import Candidate, Status, Trial

BASELINE = "baseline"
PLAIN = '#codegen.strategy<"loops", {}>'
_TURNS = 24
_HOPELESS = 3.0
"""A candidate whose first calls take so much longer than the best is not compared any further."""


@dataclass(frozen=True)
class Setting:
    """How candidates are run: `narrow` is the width at which an interval is good enough."""

    cold: bool = False
    disabled: tuple[str, ...] = ()
    narrow: float = 0.02
    seconds: float = 2.0
    """Of timing, for one candidate."""
    reproducers: Path = Path("eyas-reproducers")


class Bench:
    """A dispatch, ready to try candidates on. All devices are of the target's kind; each has its own baseline."""

    def __init__(
        self, dispatch: Dispatch, compilers: Compilers, runners: Sequence[RunnerProcess], setting: Setting
    ) -> None:
        self.dispatch, self._compilers, self._runners, self._setting = dispatch, compilers, runners, setting
        self._operands = Operands.of(dispatch, setting.cold)
        copies = self._operands.copies
        self._small = Small.of(dispatch, copies, setting.disabled)
        self._plain = compilers.compile_one(Small.of(dispatch, copies, (), Target.parse("llvm-cpu")), PLAIN)
        self._made: dict[str, Made] = {BASELINE: compilers.compile_one(self._small)}
        self._codes: dict[str, Trial] = {}
        self._best = 1.0
        self._us = float("inf")

    @property
    def baseline(self) -> Made:
        return self._made[BASELINE]

    def open(self, seen: Sequence[Trial] = ()) -> None:
        """Puts the dispatch on the devices, which hold one at a time. `seen` are trials of it: their code is known."""
        for runner in self._runners:
            runner.open(self._operands, self._plain)
            runner.load(BASELINE, self.baseline, stays=True)
        for trial in seen:
            self.remember(trial)

    def check_baseline(self) -> str | None:
        """How the default schedule misses plain loops, or None: then nothing can be said of others."""
        failed = self._runners[0].check(BASELINE)
        return failed[1] if isinstance(failed, tuple) else None

    def remember(self, trial: Trial) -> None:
        """A trial whose code need not be run again."""
        if trial.code and trial.status is not Status.SAME_CODE:
            self._codes.setdefault(trial.code, trial)
        if trial.ratio is not None and trial.status is Status.TIMED:
            self._best = max(self._best, trial.ratio[0])

    def baseline_us(self) -> float:
        times = self._runners[0].sample([BASELINE], _TURNS, self._setting.seconds)[BASELINE]
        self._us = sorted(times)[len(times) // 2]
        return self._us

    def try_all(self, candidates: Sequence[Candidate], deadline: float = float("inf")) -> Iterator[Trial]:
        """What becomes of each candidate, as it becomes known. All are compiled before the first is timed, so that
        nothing of ours runs beside it; several devices then take turns. None is begun after the deadline."""
        made: dict[int, Made] = {}
        first_of: dict[str, int] = {self.baseline.code: -1}
        twins: list[int] = []
        for number, outcome in self._compilers.compile(self._small, [one.schedule for one in candidates]):
            if isinstance(outcome, Failed):
                yield self._failed(candidates[number], outcome.status, outcome.reason, outcome.said)
            else:
                made[number] = outcome
        todo = []
        for number in sorted(made):
            code = made[number].code
            if code in self._codes or code in first_of:
                twins.append(number)
            else:
                first_of[code] = number
                todo.append(number)
        for trial in self._run_all([(candidates[number], made[number]) for number in todo], deadline):
            self.remember(trial)
            yield trial
        for number in twins:
            if made[number].code in self._codes or made[number].code == self.baseline.code:
                yield self._twin(candidates[number], made[number])

    def noise(self) -> Noise:
        """A/A: what the same code differs by when it is loaded twice."""
        return noise_of(lambda: self._compare(self.baseline, self.baseline))

    def confirm(self, candidate: Candidate, noise: Noise) -> Confirmed:
        """Whether a candidate is faster beyond noise, on fresh loads."""
        made = self._compilers.compile_one(self._small, candidate.schedule)
        return confirm(lambda: self._compare(self.baseline, made), noise)

    # --- parts ---------------------------------------------------------------------------------------------------

    def _run_all(self, work: Sequence[tuple[Candidate, Made]], deadline: float) -> Iterator[Trial]:
        def lane(number: int) -> Iterator[Trial]:
            for candidate, made in work[number :: len(self._runners)]:
                if time.monotonic() < deadline:
                    yield self._run(candidate, made, self._runners[number])

        if len(self._runners) == 1:
            yield from lane(0)
            return
        with ThreadPoolExecutor(len(self._runners)) as pool:
            for trials in pool.map(lambda number: list(lane(number)), range(len(self._runners))):
                yield from trials

    def _run(self, candidate: Candidate, made: Made, runner: RunnerProcess) -> Trial:
        name = "candidate"
        trial = Trial(candidate, runner.label, Status.TIMED, compile_s=made.seconds, code=made.code)
        try:
            runner.load(name, made)
            failed = runner.check(name, _HOPELESS * self._us / self._best)
            if failed is not None and not isinstance(failed, tuple):
                ratio = self._us / failed
                numbers = {"us": failed, "baseline_us": self._us, "ratio": (ratio / 2, ratio, ratio * 2)}
                return replace(trial, status=Status.BEATEN, reason="far slower in its first calls", **numbers)
            if failed is not None:
                number, reason = failed
                folder = self._keep(candidate, Status.WRONG, reason, "", number, runner.evidence(number))
                return replace(trial, status=Status.WRONG, reason=reason, reproducer=str(folder))
            seconds = self._setting.seconds
            timed = race(
                lambda names, turns: runner.sample(names, turns, seconds),
                BASELINE, name, self._best, self._setting.narrow, seconds,
            )  # fmt: skip
            runner.drop(name)
        except RunnerDied as died:
            folder = self._keep(candidate, died.status, died.reason, died.said)
            return replace(trial, status=died.status, reason=died.reason, reproducer=str(folder))
        except EyasError as error:
            # Such as code that this device does not run.
            return replace(trial, status=Status.REFUSED, reason=str(error))
        numbers = {"us": timed.us, "baseline_us": timed.baseline_us, "ratio": timed.ratio.as_tuple()}
        return replace(trial, status=timed.status, **numbers)

    def _twin(self, candidate: Candidate, made: Made) -> Trial:
        """The trial of a candidate whose code another one had."""
        trial = Trial(candidate, self._runners[0].label, Status.SAME_CODE, compile_s=made.seconds, code=made.code)
        other = self._codes.get(made.code)
        if other is None:
            return replace(trial, ratio=(1.0, 1.0, 1.0), reason="the code of the default schedule")
        if not other.status.has_time:
            return replace(trial, status=other.status, reason=other.reason, reproducer=other.reproducer)
        return replace(trial, us=other.us, baseline_us=other.baseline_us, ratio=other.ratio)

    def _compare(self, one: Made, other: Made) -> Ratio:
        runner = self._runners[0]
        names = ("one", "other")
        for name, made in zip(names, (one, other), strict=True):
            runner.load(name, made)
        times = runner.sample(names, _TURNS, self._setting.seconds)
        for name in names:
            runner.drop(name)
        return ratio_of(times["one"], times["other"])

    def _failed(self, candidate: Candidate, status: Status, reason: str, said: str) -> Trial:
        trial = Trial(candidate, self._runners[0].label, status, reason=reason)
        if status is Status.REFUSED:
            return trial
        return replace(trial, reproducer=str(self._keep(candidate, status, reason, said)))

    def _keep(self, candidate, status, reason, said, check=None, evidence=((), ())) -> Path:  # noqa: ANN001
        root = self._setting.reproducers
        return keep(root, self.dispatch, candidate, status, reason, said, check, evidence)
