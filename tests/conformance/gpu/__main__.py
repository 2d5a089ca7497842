"""The eight models of the GPU bars, compared with PyTorch: `python -m tests.conformance.gpu --target vulkan`."""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks.gpu_models import MODELS
from benchmarks.models import flat, relative_error
from tests.conformance.outcome import Outcome, one_line
from tests.conformance.report import print_table
from tests.conformance.target import add_arguments, compile_options, set_target
from tests.conformance.workers import run_all

TOLERANCE = 1e-4
"""The largest difference over the largest value of a result."""
TIMEOUT_S = 1200.0


def check(name: str) -> Outcome:
    """Compiles one of the models, calls it twice, and compares."""
    import eyas
    from eyas.errors import EyasError

    begin = time.perf_counter()
    one = MODELS[name.partition("/")[2]]()
    wanted = one.run()
    try:
        module = eyas.compile(one.model, one.args, kwargs=one.kwargs, progress=False, **compile_options())
        answers = [flat(module(*one.args, **one.kwargs)) for _ in range(2)]
    except EyasError as error:
        return Outcome(name, "unsupported", one_line(error), time.perf_counter() - begin)
    error = max(relative_error(answer, wanted) for answer in answers)
    kind = "passed" if error <= TOLERANCE else "wrong"
    return Outcome(name, kind, f"{error:.1e} from PyTorch", time.perf_counter() - begin)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.gpu", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="only models whose name has it")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="S", help="seconds for one model")
    add_arguments(parser)
    parser.set_defaults(target="vulkan")
    options = parser.parse_args()
    set_target(options)

    def show(outcome: Outcome) -> None:
        print(f"{outcome.kind:12} {outcome.seconds:6.1f} s {outcome.name}: {outcome.reason}", flush=True)

    names = [f"gpu/{name}" for name in MODELS if not options.only or any(text in name for text in options.only)]
    function = "tests.conformance.gpu.__main__:check"
    outcomes = run_all(function, names, show, jobs=options.jobs, timeout_s=options.timeout, lifetime=1)
    print_table(f"models for {options.target}", outcomes)
    return 0 if all(outcome.kind == "passed" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
