"""`python -m tests.tools.tune_session DATABASE RESULT`: a session of the tuner whose times are made up.

Times follow from schedules alone, and nothing is compiled, so that what a session finds does not depend on the machine:
it can be killed at any moment, go on, and must end with the same.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path

from tests.tools import tuning

from eyas.tune.database import Database, SessionInfo
from eyas.tune.making import Made
from eyas.tune.order import make_order
from eyas.tune.session import Plan, Session

BASELINE_US = 100.0


def us_of(schedule: str | None) -> float:
    """50 to 400 us."""
    if schedule is None:
        return BASELINE_US
    return 50 + int(hashlib.sha256(schedule.encode()).hexdigest()[:6], 16) % 350


class Compilers:
    """What is compiled is the schedule itself."""

    def compile(self, small, schedules):
        for number, schedule in enumerate(schedules):
            yield number, self.compile_one(small, schedule)

    def compile_one(self, small, schedule=None):
        text = schedule or "default"
        return Made(text.encode(), hashlib.sha256(text.encode()).hexdigest(), "", "", {}, us_of(schedule))


class Runner:
    """Modules that take as long as their schedule says; each trial takes a few milliseconds."""

    label = device = "made up"

    def __init__(self) -> None:
        self.us: dict[str, float] = {}

    def open(self, operands, plain) -> None:
        self.us = {}

    def load(self, name, made, stays=False) -> None:
        self.us[name] = made.seconds

    def drop(self, name) -> None:
        del self.us[name]

    def check(self, name, most_us=float("inf")):
        return None

    def sample(self, names, turns, seconds=0.0):
        time.sleep(0.005)
        return {name: [self.us[name]] * turns for name in names}

    def others(self) -> float:
        return 0.0


def run(database: Database, dispatches, trials: int = 24, listener=None):
    """The states of a session that ends when each dispatch had so many trials."""
    database.begin(SessionInfo("killed", "product", "llvm-cpu"))
    plan = Plan(3600.0, 7, trials)
    order = make_order("random", database, 7, "killed")
    return Session(
        "killed", dispatches, plan, database, Compilers(), [Runner()], order, tuning.drawn, listener,
        lambda one: {"matmul": 2.0}.get(one.name.split("_")[3], 1.0),
    ).run()  # fmt: skip


def result_of(states) -> list:
    """What a session ended with, without times of the machine."""
    return [
        [one.dispatch.name, one.winner.candidate.schedule if one.winner else None, one.winner and one.winner.ratio[1]]
        + [[trial.candidate.schedule, trial.status.value, trial.ratio] for trial in one.tried]
        for one in states
    ]


def main() -> None:
    database, result = Path(sys.argv[1]), Path(sys.argv[2])
    model = tuning.opened(tuning.product())
    print("ready", flush=True)
    with Database(database, compiler="a test") as opened:
        states = run(opened, model.dispatches)
    result.write_text(json.dumps(result_of(states)))


if __name__ == "__main__":
    main()
