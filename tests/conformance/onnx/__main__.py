"""Runs the node tests of the installed `onnx` package: `python -m tests.conformance.onnx --filter reduce`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from tests.conformance.onnx import report, workers
from tests.conformance.onnx.cases import Case, collect
from tests.conformance.onnx.check import Outcome, Status
from tests.conformance.onnx.workers import run_all
from tests.conformance.target import add_arguments, set_target


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.onnx", description=__doc__)
    parser.add_argument("--filter", default="", metavar="RE", help="only tests whose name matches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--timeout", type=float, default=workers.TIMEOUT_S, metavar="S", help="seconds for one test")
    parser.add_argument("--json", metavar="OUT", help="write every outcome to a file")
    parser.add_argument("--markdown", metavar="FILE", help="write the ONNX section of this document")
    parser.add_argument("--write", action="store_true", help="the same, of docs/conformance.md")
    parser.add_argument("--numeric", action="store_true", help="only tests that the bar counts")
    parser.add_argument("--no-expanded", action="store_true", help="without the copies that have functions expanded")
    parser.add_argument("--verbose", action="store_true", help="show each test that does not pass")
    add_arguments(parser)
    options = parser.parse_args()
    set_target(options)

    cases = [case for case in collect(options.filter) if case.numeric or not options.numeric]
    cases = [case for case in cases if not (case.expanded and options.no_expanded)]
    workers.TIMEOUT_S = options.timeout
    done = 0

    def show(case: Case, outcome: Outcome) -> None:
        nonlocal done
        done += 1
        if options.verbose and outcome.status not in report.PASSED:
            print(f"{case.name}: {outcome.status.value}: {outcome.reason}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{done}/{len(cases)} {case.name:60.60}", end="", file=sys.stderr, flush=True)

    start = time.perf_counter()
    outcomes = run_all(cases, options.jobs, show)
    seconds = time.perf_counter() - start
    pairs = list(zip(cases, outcomes, strict=True))
    print(report.reasons(pairs), report.counts(pairs), sep="\n\n")
    print(f"\n{len(pairs)} tests in {seconds:.0f} s with {options.jobs} workers")
    if options.json:
        rows = [
            {"name": c.name, "op": c.op, "numeric": c.numeric, "expanded": c.expanded}
            | {"status": o.status.name.lower(), "reason": o.reason, "seconds": round(o.seconds, 3)}
            for c, o in pairs
        ]
        Path(options.json).write_text(json.dumps(rows, indent=1))
    if options.markdown or options.write:
        path = Path(options.markdown or "docs/conformance.md")
        text = path.read_text() if path.exists() else ""
        path.write_text(report.replace_section(text, report.section(pairs, seconds, options.jobs)))
    bad = (Status.WRONG, Status.CRASHED, Status.TIMEOUT)
    return int(any(outcome.status in bad for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
