"""Tries random graphs: `python -m tests.fuzz --graphs 1000 --seed 7 --jobs 2`."""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path

from tests.fuzz import report
from tests.fuzz.bundles import MOST
from tests.fuzz.share import work
from tests.fuzz.strategies import FRONTENDS, random_graph


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--graphs", type=int, default=200, metavar="N", help="how many to try")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first graph's seed; the next is one more")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="processes")
    parser.add_argument("--minutes", type=float, metavar="M", help="stop after this time")
    parser.add_argument("--frontend", choices=FRONTENDS)
    parser.add_argument("--target", default="llvm-cpu", help="what to compile for")
    parser.add_argument(
        "--together", type=int, default=MOST, metavar="K", help="graphs in a program, if they are alike"
    )
    parser.add_argument("--shrink-seconds", type=float, default=60.0, metavar="T", help="time for each failure")
    parser.add_argument("--log", type=Path, metavar="FILE", help="append each failure to a file, as a line of JSON")
    parser.add_argument("--show", type=int, metavar="SEED", help="print one graph and its reproducer, and check it")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the section of this document")
    given = parser.parse_args()
    if given.show is not None:
        return show(given.show, given.frontend, given.target)

    begin = time.monotonic()
    if given.jobs <= 1:
        tally = work(given, 0)
    else:
        with multiprocessing.get_context("spawn").Pool(given.jobs) as pool:
            parts = pool.starmap(work, [(given, job) for job in range(given.jobs)])
        tally = parts[0]
        for part in parts[1:]:
            tally.merge(part)
    tally.seconds = time.monotonic() - begin
    if tally.failures:
        print(report.failures(tally), end="\n\n")
    print(report.counts(tally))
    if given.write:
        text = given.write.read_text() if given.write.exists() else ""
        given.write.write_text(report.replace_section(text, report.section(tally, given.seed, given.jobs)))
    return 1 if tally.bad else 0


def show(seed: int, frontend: str | None, target: str) -> int:
    from tests.fuzz.check import check

    graph, _ = random_graph(seed, frontend, target)
    if graph is None:
        print(f"seed {seed} makes no graph")
        return 0
    print(graph.source(), graph, sep="\n\n")
    outcome = check(graph)
    print(f"\n{outcome.kind} {outcome.detail}")
    return 1 if outcome.is_bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
