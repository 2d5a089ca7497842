"""Samples of one op through Eyas, many in one module: what dominates is tracing and starting code generation, which
cost little more for thirty samples than for one. A module that fails is halved until the samples that it is about are
alone."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from tests.conformance.outcome import Outcome, one_line
from tests.conformance.torch_ops import compare
from tests.conformance.torch_ops.ops import Sample, copies, samples_of
from tests.conformance.torch_ops.runners import Refusal, run_dynamic, run_forward, run_gradients, skip_reason

SEED, SAMPLES = "EYAS_TEST_SEED", "EYAS_TEST_SAMPLES"
Verdict = tuple[str, str]


def seed() -> int:
    return int(os.environ.get(SEED, "0"))


def count_samples(case: str) -> Outcome:
    """A case such as `f32/nn.functional.pad`: how many samples there are is the reason of its outcome."""
    pass_, _, name = case.partition("/")
    return Outcome(case, "passed", str(len(samples_of(name, pass_, seed()))))


def chosen(name: str, total: int) -> list[int]:
    """Which of an op's samples are tried: all, or as many as the environment says."""
    limit = os.environ.get(SAMPLES, "all")
    if limit == "all" or int(limit) >= total:
        return list(range(total))
    return sorted(random.Random(f"{seed()} {name}").sample(range(total), int(limit)))


def check_range(case: str) -> Outcome:
    """A case such as `f32/nn.functional.pad@0:32`: positions among the chosen samples."""
    begin = time.perf_counter()
    torch.set_num_threads(1)
    name, pass_, start, stop = parse_case(case)
    indices = chosen(name, len(samples_of(name, pass_, seed())))[start:stop]
    verdicts = check_samples(name, pass_, indices)
    parts = [[index, *verdict] for index, verdict in zip(indices, verdicts, strict=True)]
    return Outcome(case, "passed", "", time.perf_counter() - begin, parts)


def parse_case(case: str) -> tuple[str, str, int, int]:
    pass_, _, rest = case.partition("/")
    name, _, places = rest.rpartition("@")
    start, _, stop = places.partition(":")
    return name, pass_, int(start), int(stop)


def check_samples(name: str, pass_: str, indices: Sequence[int]) -> list[Verdict]:
    """How each of these samples went: a kind and a reason."""
    samples = samples_of(name, pass_, seed())
    run = {"dynamic": run_dynamic, "gradients": run_gradients}.get(pass_, run_forward)
    verdicts: dict[int, Verdict] = {}
    tried = []
    for index in indices:
        if why := skip_reason(samples[index], pass_):
            verdicts[index] = ("skipped", why)
        else:
            tried.append(index)
    pending = [tried] if tried else []
    while pending:
        group = pending.pop()
        try:
            # Samples with gradients have results that are unique, made of those that are not.
            results = _attempt("" if pass_ == "gradients" else name, run, [samples[index] for index in group])
        except Refusal as refusal:
            if len(group) == 1:
                verdicts[group[0]] = (refusal.kind, one_line(str(refusal)))
            else:
                pending += [group[len(group) // 2 :], group[: len(group) // 2]]
            continue
        for index, problem in zip(group, results, strict=True):
            if problem and len(group) > 1:
                pending.append([index])
                verdicts[index] = ("wrong", f"beside other samples: {problem}")
            elif problem:
                verdicts[index] = ("wrong", one_line(problem))
            else:
                verdicts.setdefault(index, ("passed", ""))
    return [verdicts[index] for index in indices]


def _attempt(name: str, run: Callable[..., Any], samples: list[Sample]) -> list[str]:
    """What is wrong with each, or ''."""
    problems = []
    for sample, calls in zip(samples, run(samples), strict=True):
        problems.append(next(filter(None, (_problem(name, sample, *call) for call in calls)), ""))
    return problems


def _problem(name: str, sample: Sample, tensors: Sequence[Any], got: Any, want: Any, function: Any) -> str:
    arguments = sample.others()
    ours, theirs = (compare.unique(name, values, tensors, arguments) for values in (got, want))
    problem = compare.difference(ours, theirs)
    if not problem:
        return ""
    precise = compare.exact(function, copies(tuple(tensors)))
    near = precise is not None and compare.near_exact(ours, theirs, compare.unique(name, precise, tensors, arguments))
    return "" if near else problem
