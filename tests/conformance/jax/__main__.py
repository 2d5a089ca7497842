"""The JAX list: `python -m tests.conformance.jax [--only TEXT] [--write docs/conformance.md]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.conformance.jax.check import all_cases
from tests.conformance.jax.report import HEADING, section
from tests.conformance.outcome import Outcome
from tests.conformance.report import print_table, write_section
from tests.conformance.target import add_arguments, set_target
from tests.conformance.workers import run_all

TIMEOUT_S = 120


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="cases whose name holds this text")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds for one case")
    parser.add_argument("--write", type=Path, help="Markdown file whose section 'JAX' is replaced")
    add_arguments(parser)
    options = parser.parse_args()
    set_target(options)
    names = [name for name in all_cases() if not options.only or any(text in name for text in options.only)]

    def show(outcome: Outcome) -> None:
        if outcome.kind != "passed":
            print(f"{outcome.kind:12} {outcome.name}: {outcome.reason}", flush=True)

    outcomes = run_all(
        "tests.conformance.jax.check:check_named",
        names,
        show,
        jobs=options.jobs,
        timeout_s=options.timeout,
        environment={"JAX_PLATFORMS": "cpu"},
    )
    print_table(HEADING, outcomes)
    if options.write:
        write_section(options.write, HEADING, section(outcomes))
    return 0 if all(outcome.kind == "passed" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
