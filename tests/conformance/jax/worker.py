"""Checks cases named on standard input, one line of JSON for each: a crash or a hang costs one case, not the run."""

from __future__ import annotations

import dataclasses
import json
import sys


def main() -> None:
    import os

    # What native code prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    from tests.conformance.jax.check import Outcome, all_cases, check

    cases = all_cases()
    answers.write("ready\n")
    for line in sys.stdin:
        name = line.strip()
        try:
            outcome = check(cases[name])
        except Exception as error:
            outcome = Outcome(name, "crashed", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
        answers.write(json.dumps(dataclasses.asdict(outcome)) + "\n")


if __name__ == "__main__":
    main()
