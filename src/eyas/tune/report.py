"""What a database says of some sessions: before and after for each dispatch, how trials went, which knobs mattered.

write_report(Database(), Path("report.html"))            # one page that needs no other file
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from eyas.errors import UsageError
from eyas.pages.frame import fill, script_data
from eyas.tune.charts import draw_before_after, draw_convergence, draw_importance
from eyas.tune.database import Database, Record, SessionInfo
from eyas.tune.importance import Importance, importance_of
from eyas.tune.trials import Status, Trial

_MOST_DRAWN = 24
"""Dispatches whose trials are drawn; the table has those of all."""


@dataclass(frozen=True)
class Tuned:
    """A dispatch for a target, and all trials of it, in the order in which they were made."""

    dispatch: str
    target: str
    name: str
    trials: tuple[Trial, ...]

    @cached_property
    def best(self) -> Trial | None:
        """The trial with the greatest ratio whose whole interval is above 1; None where the default stays."""
        gains = [one for one in self.trials if one.status is Status.TIMED and one.ratio and one.ratio[0] > 1.0]
        return max(gains, key=lambda one: (one.ratio or (0.0, 0.0))[1], default=None)

    @property
    def gain(self) -> float:
        return self.best.ratio[1] if self.best is not None and self.best.ratio else 1.0

    @cached_property
    def before_us(self) -> float:
        """What the default takes, as measured beside the best; else the median beside all."""
        if self.best is not None and self.best.baseline_us:
            return self.best.baseline_us
        found = sorted(one.baseline_us for one in self.trials if one.baseline_us)
        return found[len(found) // 2] if found else 0.0

    @property
    def after_us(self) -> float:
        return self.before_us / self.gain

    @property
    def saved_us(self) -> float:
        return self.before_us - self.after_us


@dataclass(frozen=True)
class Report:
    sessions: tuple[SessionInfo, ...]
    tuned: tuple[Tuned, ...]
    """Those that gained the most time first."""
    importance: tuple[Importance, ...]

    @property
    def statuses(self) -> Counter[Status]:
        return Counter(one.status for tuned in self.tuned for one in tuned.trials)


def make_report(database: Database, sessions: Sequence[str] | None = None) -> Report:
    """The report on some sessions, by default on the last one; trials that these took over from earlier ones belong to
    it, where this compiler made them."""
    known = {one.id: one for one in database.sessions()}
    wanted = list(sessions) if sessions is not None else list(known)[-1:]
    for one in wanted:
        if one not in known:
            raise UsageError(
                f"the database '{database.path}' has no session '{one}'; it has: {', '.join(known) or 'none'}"
            )
    if not wanted:
        raise UsageError(f"the database '{database.path}' has no session yet; `eyas tune MODEL` makes one")
    own = [record for one in wanted for record in database.records(session=one, any_compiler=True)]
    compilers = {known[one].compiler for one in wanted}
    touched = {(one.trial.candidate.dispatch, one.trial.candidate.target) for one in own}
    records = [
        one
        for one in database.records(any_compiler=True)
        if one.session in wanted
        or (one.compiler in compilers and (one.trial.candidate.dispatch, one.trial.candidate.target) in touched)
    ]
    tuned = _grouped(records, database)
    return Report(tuple(known[one] for one in wanted), tuned, importance_of(records, database))


def _grouped(records: Sequence[Record], database: Database) -> tuple[Tuned, ...]:
    names = {key: one.name for key, one in database.described().items()}
    groups: dict[tuple[str, str], list[Trial]] = {}
    for one in records:
        groups.setdefault((one.trial.candidate.dispatch, one.trial.candidate.target), []).append(one.trial)
    found = [Tuned(*key, names.get(key) or key[0][:16], tuple(trials)) for key, trials in groups.items()]
    return tuple(sorted(found, key=lambda one: (-one.saved_us, -one.before_us, one.name)))


def write_report(database: Database, path: Path, sessions: Sequence[str] | None = None) -> Report:
    """Writes the page; returns what is on it."""
    report = make_report(database, sessions)
    try:
        path.write_text(make_page(report), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"'{path}' cannot be written: {error.strerror}") from error
    return report


def make_page(report: Report) -> str:
    """The report as HTML."""
    sessions = report.sessions
    models = ", ".join(dict.fromkeys(one.model for one in sessions if one.model)) or "trials"
    before, after = sum(one.before_us for one in report.tuned), sum(one.after_us for one in report.tuned)
    better = [one for one in report.tuned if one.best is not None]
    drawn = report.tuned[:_MOST_DRAWN]
    more = len(report.tuned) - len(drawn)
    machines = dict.fromkeys(filter(None, (_machine(one.machine) for one in sessions)))
    devices = dict.fromkeys(one.device for tuned in report.tuned for one in tuned.trials)
    values = {
        "title": escape(f"Tuning {models}"),
        "result": _result(report, better, before, after),
        "trials": escape(_statuses(report.statuses)),
        "target": escape(", ".join(dict.fromkeys(one.target for one in report.tuned)) or "none"),
        "machine": escape("; ".join(machines) or "not noted"),
        "devices": escape(", ".join(devices) or "none"),
        "compiler": escape(", ".join(dict.fromkeys(one.compiler[:16] for one in sessions))),
        "sessions": escape(", ".join(f"{one.id} ({_date(one.at)})" for one in sessions)),
        "before_after": draw_before_after(drawn),
        "convergence": "".join(draw_convergence(number, one) for number, one in enumerate(drawn)),
        "more": f"<p class='soft'>{more} more dispatches are in the table.</p>" if more else "",
        "importance": draw_importance(report.importance),
        "data": script_data(_data(report)),
    }  # fmt: skip
    return fill("eyas.tune", "report.html", values)


def _result(report: Report, better: Sequence[Tuned], before: float, after: float) -> str:
    if not better:
        return f"no schedule of {len(report.tuned)} dispatches is faster than the default beyond noise"
    return (
        f"{len(better)} of {len(report.tuned)} dispatches became faster: {before / 1e3:.3f} ms before,"
        f" <strong>{after / 1e3:.3f} ms</strong> after, {before / after:.2f}x (each once, by itself)"
    )


def _statuses(found: Mapping[Status, int]) -> str:
    return f"{sum(found.values())}: " + ", ".join(f"{found[one]} {one.value}" for one in Status if found.get(one))


def _machine(machine: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _data(report: Report) -> dict[str, Any]:
    """What the page's script shows: dispatches and all their trials."""
    return {
        "dispatches": [
            {"name": one.name, "target": one.target, "digest": one.dispatch, "before_us": one.before_us}
            | {"after_us": one.after_us, "gain": one.gain, "trials": len(one.trials)}
            | {"best": one.trials.index(one.best) if one.best is not None else -1}
            for one in report.tuned
        ],
        "trials": [
            {
                "dispatch": number, "number": index, "strategy": trial.candidate.strategy,
                "point": " ".join(f"{name}={value}" for name, value in trial.candidate.point.items()),
                "schedule": trial.candidate.schedule, "status": trial.status.value, "us": trial.us,
                "baseline_us": trial.baseline_us, "ratio": trial.ratio, "compile_s": trial.compile_s,
                "device": trial.device, "order": trial.order, "reason": trial.reason, "reproducer": trial.reproducer,
                "code": trial.code[:16],
            }
            for number, one in enumerate(report.tuned)
            for index, trial in enumerate(one.trials)
        ],
    }  # fmt: skip
