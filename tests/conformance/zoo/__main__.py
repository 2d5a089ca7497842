"""The PyTorch zoo and the trained models.

python -m tests.conformance.zoo [--only TEXT] [--torch-compile] [--write docs/conformance.md]
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from tests.conformance.outcome import Outcome
from tests.conformance.report import print_table, table, write_section
from tests.conformance.target import add_arguments, set_target
from tests.conformance.workers import run_all
from tests.conformance.zoo.trained import table as trained

CHECKS = {
    "PyTorch zoo": "tests.conformance.zoo.check:check_compile",
    "PyTorch zoo through torch.compile": "tests.conformance.zoo.check:check_torch_compile",
}
PACKAGES = ("torch", "timm", "transformers", "torchvision", "eyas")
TIMEOUT_S = 300
# Models leave memory behind in the frameworks' caches.
CASES_PER_CHILD = 25
TRAINED_PER_CHILD = 4


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.zoo", description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="programs whose name holds this text")
    parser.add_argument("--torch-compile", action="store_true", help="through torch.compile(model, backend='eyas')")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds for one program")
    parser.add_argument("--write", type=Path, help="Markdown file whose section is replaced")
    parser.add_argument("--verbose", action="store_true", help="show programs that pass, too")
    add_arguments(parser)
    options = parser.parse_args()
    set_target(options)
    # Imported here, in the parent, for the names alone: building a model is left to the children.
    from tests.conformance.zoo.check import all_cases

    def wanted(table: Iterable[str]) -> list[str]:
        return [name for name in table if not options.only or any(text in name for text in options.only)]

    heading, check = list(CHECKS.items())[options.torch_compile]

    def show(outcome: Outcome) -> None:
        if options.verbose or outcome.kind != "passed":
            print(f"{outcome.kind:12} {outcome.seconds:5.1f} s {outcome.name}: {outcome.reason}", flush=True)

    outcomes: list[Outcome] = []
    if names := wanted(all_cases()):
        begin = time.perf_counter()
        outcomes = run_all(check, names, show, jobs=options.jobs, timeout_s=options.timeout, lifetime=CASES_PER_CHILD)
        minutes = (time.perf_counter() - begin) / 60
        print_table(heading, outcomes)
        if options.write:
            write_section(options.write, heading, _section(options, outcomes, minutes))
    if not options.torch_compile and (names := wanted(trained.all_trained())):
        limits = {"jobs": options.jobs, "timeout_s": max(options.timeout, trained.TIMEOUT_S)}
        answers = run_all(trained.CHECK, names, show, **limits, lifetime=TRAINED_PER_CHILD)
        print_table(trained.HEADING, answers)
        if options.write:
            write_section(options.write, trained.HEADING, [_how(options), "", *trained.answers(answers)])
        outcomes = [*outcomes, *answers]
    return 0 if all(outcome.kind in ("passed", "skipped") for outcome in outcomes) else 1


def _how(options: argparse.Namespace) -> str:
    arguments = " ARGS=--torch-compile" if options.torch_compile else ""
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    where = f"Python {platform.python_version()} on {platform.machine()}"
    return f"`make conformance-zoo{arguments}`, {datetime.date.today().isoformat()}, {versions}, {where}."


def _section(options: argparse.Namespace, outcomes: list[Outcome], minutes: float) -> list[str]:
    what = (
        'Each program runs through `torch.compile(model, backend="eyas")`, then once more with a larger batch.'
        if options.torch_compile
        else "Programs of `tests/conformance/zoo` with seeded weights, compared with eager PyTorch on two inputs: the "
        "largest difference is at most 1e-4 of the result's largest magnitude. Networks whose random weights magnify "
        "rounding errors more than that must be as near to the same model in f64 as eager PyTorch is, within a factor "
        "of four."
    )
    return [
        f"{_how(options)} {minutes:.0f} minutes with {options.jobs} workers. {what}",
        "",
        *table(outcomes),
    ]


if __name__ == "__main__":
    sys.exit(main())
