"""One process's share of a campaign. In a module of its own: children cannot import what `__main__` defines."""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz import report
from tests.fuzz.campaign import Failure, Tally, run


def work(given: argparse.Namespace, job: int) -> Tally:
    share = given.graphs // given.jobs + (job < given.graphs % given.jobs)
    last = [time.monotonic()]

    def progress(tally: Tally) -> None:
        if time.monotonic() - last[0] > 60:
            last[0] = time.monotonic()
            print(f"[{job}] {report.counts(tally)}", file=sys.stderr, flush=True)

    def failed(failure: Failure) -> None:
        head = f"[{job}] seed {failure.seed}: {failure.group}\n{failure.outcome.detail}"
        print(f"{head}\n{failure.graph}\n", file=sys.stderr, flush=True)

    return run(
        share,
        given.seed + job,
        given.jobs,
        given.minutes,
        given.frontend,
        given.shrink_seconds,
        given.log,
        progress,
        failed,
        given.target,
        given.together,
    )
