"""The JAX list: `python -m tests.conformance.jax [--only TEXT] [--write docs/conformance.md]`."""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from tests.conformance.jax.check import Outcome, all_cases
from tests.conformance.jax.report import print_table, write_section

TIMEOUT_S = 120


class Worker:
    """A child process that checks cases; restarted when it dies or is late."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def check(self, name: str, timeout_s: float) -> Outcome:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.conformance.jax.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=os.environ | {"JAX_PLATFORMS": "cpu"},
            )
            self._answer(TIMEOUT_S)
        begin = time.perf_counter()
        try:
            self.process.stdin.write(name + "\n")
            self.process.stdin.flush()
            answer = self._answer(timeout_s)
        except BrokenPipeError:
            answer = ""
        seconds = time.perf_counter() - begin
        if answer:
            return Outcome(**json.loads(answer))
        if answer is None:
            self.process.kill()
            code = f"no answer after {timeout_s:.0f} s"
        else:
            code = f"the worker ended with status {self.process.wait()}"
        self.close()
        return Outcome(name, "crashed", code, seconds)

    def _answer(self, timeout_s: float) -> str | None:
        ready, _, _ = select.select([self.process.stdout], [], [], timeout_s)
        return self.process.stdout.readline() if ready else None

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="cases whose name holds this text")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds for one case")
    parser.add_argument("--write", type=Path, help="Markdown file whose section 'JAX' is replaced")
    arguments = parser.parse_args()
    names = [name for name in all_cases() if not arguments.only or any(text in name for text in arguments.only)]
    worker, outcomes = Worker(), []
    for name in names:
        outcomes.append(worker.check(name, arguments.timeout))
        if outcomes[-1].kind != "passed":
            print(f"{outcomes[-1].kind:12} {name}: {outcomes[-1].reason}", flush=True)
    worker.close()
    print_table(outcomes)
    if arguments.write:
        write_section(arguments.write, outcomes)
    return 0 if all(outcome.kind == "passed" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
