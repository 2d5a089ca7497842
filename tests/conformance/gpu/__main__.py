"""The eight models of the GPU bars, compared with PyTorch: `python -m tests.conformance.gpu --target vulkan`.

GPT-2 also runs with its cache as state of the module: each call is a token, and sees what the calls before have
written. With `--precision f16` answers are compared: what the largest of the last axis is, or of an image's classes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from benchmarks.gpu_models import MODELS
from benchmarks.models import Case, flat, relative_error
from tests.conformance.outcome import Outcome, one_line
from tests.conformance.report import print_table
from tests.conformance.target import add_arguments, compile_options, set_target
from tests.conformance.workers import run_all

TOLERANCE = 1e-4
"""The largest difference over the largest value of a result."""
HALF_TOLERANCE, SAME_ANSWERS = 3e-2, 0.98
"""The same for f16, and which share of the answers must be the same: weights are random, and there are near ties."""
TIMEOUT_S = 1200.0
PRECISION = "EYAS_TEST_PRECISION"
STEPS = 3


def gpt2_state() -> Case:
    """GPT-2, a token a call, with the keys and values of the tokens before in buffers of the module."""
    import torch
    from benchmarks import models

    inner = models.gpt2().model
    from transformers import GenerationConfig
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    settings = {"batch_size": 1, "max_cache_len": 64}
    inner.generation_config = GenerationConfig(
        use_cache=True, cache_implementation="static", max_length=64, cache_config=settings
    )
    kept = TorchExportableModuleWithStaticCache(inner, **settings)

    class Step(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept = kept

        def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
            return self.kept(input_ids=token, cache_position=position)

    return Case("GPT-2 with its cache as state", Step().eval(), (torch.tensor([[464]]), torch.tensor([0])))


ALL: dict[str, Callable[[], Case]] = {**MODELS, "gpt2_state": gpt2_state}


def calls_of(name: str, one: Case) -> list[tuple[Any, ...]]:
    """What a model is called with, one after the other: the same twice, or the tokens of a sentence."""
    if name != "gpt2_state":
        return [one.args, one.args]
    import torch

    return [(torch.tensor([[464 + 1000 * step]]), torch.tensor([step])) for step in range(STEPS)]


def check(name: str) -> Outcome:
    """Compiles one of the models, calls it some times, and compares."""
    import torch

    import eyas
    from eyas.errors import EyasError

    begin, name_here = time.perf_counter(), name.partition("/")[2]
    one, precision = ALL[name_here](), os.environ.get(PRECISION) or None
    calls = calls_of(name_here, one)
    try:
        # Before PyTorch runs it, which writes to its state.
        module = eyas.compile(
            one.model, one.args, kwargs=one.kwargs, precision=precision, progress=False, **compile_options()
        )
        answers = [flat(module(*call, **one.kwargs)) for call in calls]
    except EyasError as error:
        return Outcome(name, "unsupported", one_line(error), time.perf_counter() - begin)
    with torch.no_grad():
        wanted = [flat(one.model(*call, **one.kwargs)) for call in calls]
    error = max(relative_error(answer, want) for answer, want in zip(answers, wanted, strict=True))
    same = min(same_answers(answer, want) for answer, want in zip(answers, wanted, strict=True))
    right = error <= TOLERANCE if precision is None else error <= HALF_TOLERANCE and same >= SAME_ANSWERS
    reason = f"{error:.1e} from PyTorch, {same:.1%} of the answers the same"
    return Outcome(name, "passed" if right else "wrong", reason, time.perf_counter() - begin)


def same_answers(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> float:
    """How much of the first result has its largest where PyTorch has it: along the classes of an image (1, classes,
    height, width), else along the last axis."""
    one, other = ours[0], theirs[0]
    axis = 1 if other.ndim == 4 else -1
    return float((one.argmax(axis) == other.argmax(axis)).mean())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.gpu", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="only models whose name has it")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, metavar="S", help="seconds for one model")
    parser.add_argument("--precision", choices=["f16", "bf16"], help="compute in this type")
    add_arguments(parser)
    parser.set_defaults(target="vulkan")
    options = parser.parse_args()
    set_target(options)
    os.environ[PRECISION] = options.precision or ""

    def show(outcome: Outcome) -> None:
        print(f"{outcome.kind:12} {outcome.seconds:6.1f} s {outcome.name}: {outcome.reason}", flush=True)

    names = [f"gpu/{name}" for name in ALL if not options.only or any(text in name for text in options.only)]
    function = "tests.conformance.gpu.__main__:check"
    outcomes = run_all(function, names, show, jobs=options.jobs, timeout_s=options.timeout, lifetime=1)
    print_table(f"models for {options.target}{' in ' + options.precision if options.precision else ''}", outcomes)
    return 0 if all(outcome.kind == "passed" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
