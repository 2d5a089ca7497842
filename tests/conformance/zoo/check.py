"""Runs one program of the zoo here and in its own framework, and says how it went."""

from __future__ import annotations

import copy
import functools
import importlib
import logging
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from benchmarks.models import flat
from tests.conformance.outcome import Outcome, one_line
from tests.conformance.target import compile_options
from tests.conformance.zoo.case import Case, Program
from torch._dynamo.utils import counters

import eyas
from eyas.errors import EyasError, FrontendError, UnsupportedOpError

# Each has a tuple CASES; a group is split where a file would get long.
FILES = (
    "cases_timm",
    "cases_encoders",
    "cases_decoders",
    "cases_vision",
    "cases_torchvision",
    "cases_torch",
)
# A program whose answer hardly depends on its input would agree with anything.
SENSITIVITY = 1e-3
# Where a network magnifies rounding errors: how much larger than PyTorch's ours may be, and what is too much for both.
FACTOR_OF_EAGER = 4
LARGEST_ERROR = 0.1


@functools.cache
def all_cases() -> dict[str, Case]:
    cases = [case for file in FILES for case in importlib.import_module(f"tests.conformance.zoo.{file}").CASES]
    table = {case.name: case for case in cases}
    assert len(table) == len(cases), "two cases have one name"
    return table


def check_compile(name: str) -> Outcome:
    """Through `eyas.compile`."""
    return _check(all_cases()[name], _compiled)


def check_torch_compile(name: str) -> Outcome:
    """Through `torch.compile(model, backend="eyas")`, and again with a batch that it has not seen."""
    counters.clear()
    outcome = _check(all_cases()[name], _torch_compiled)
    graphs = counters["stats"]["unique_graphs"]
    if outcome.kind != "passed":
        return outcome
    # What Dynamo does not trace runs in PyTorch, and would agree with itself.
    if not graphs:
        return replace(outcome, kind="unsupported", reason="Dynamo hands over no graph")
    return replace(outcome, reason="; ".join(filter(None, [f"{graphs} graphs", outcome.reason])))


def _check(case: Case, compiler: Callable[[Program, tuple], Callable[..., Any]]) -> Outcome:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    torch.manual_seed(0)
    program = case.make()
    calls = []
    for sample in (0, 1):
        torch.manual_seed(sample + 1)
        calls.append(program.inputs(sample))
    if compiler is _torch_compiled and case.batched:
        calls.append(_joined(*calls))
    with torch.no_grad():
        reference = program.reference or program.model
        expected = [flat(reference(*call)) for call in calls]
        if program.judge is None:
            assert _distance(expected[0], expected[1]) > SENSITIVITY, "the answer hardly depends on the input"
        kind, reason = _compare(case, program, compiler, calls, expected)
    return Outcome(case.name, kind, reason, time.perf_counter() - begin)


def _compare(case: Case, program: Program, compiler: Callable, calls: list[tuple], expected: list[list]) -> tuple:
    notes = []
    try:
        run = compiler(program, calls[0])
        for sample, (call, want) in enumerate(zip(calls, expected, strict=True)):
            got = flat(run(*call))
            if problem := difference(got, want, case.rtol):
                if not (excuse := _as_near_as_eager(program, call, got, want)):
                    return "wrong", f"sample {sample}: {problem}"
                notes.append(f"sample {sample}: {excuse}")
        if program.judge is not None and (problem := program.judge(run)):
            return "wrong", problem
    except (UnsupportedOpError, FrontendError) as error:
        return "unsupported", one_line(error)
    except EyasError as error:
        return "crashed", f"{type(error).__name__}: {one_line(error)}"
    return "passed", "; ".join(notes)


def _as_near_as_eager(program: Program, call: tuple[Any, ...], ours: list, theirs: list) -> str:
    """Deep networks with random weights can magnify rounding errors a thousandfold, PyTorch's own too.

    Then both are measured against the same model in f64. Says how far both are when ours is not much farther.
    """
    if not isinstance(program.model, torch.nn.Module) or [a.shape for a in ours] != [b.shape for b in theirs]:
        return ""
    wide = tuple(value.double() if value.is_floating_point() else value for value in call)
    try:
        exact = flat(copy.deepcopy(program.model).double()(*wide))
    except RuntimeError:  # a type written into the model
        return ""
    floats = [index for index, value in enumerate(theirs) if value.dtype.kind == "f"]
    if any(not np.array_equal(a, b) for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if i not in floats):
        return ""
    error = max(_relative(ours[index], exact[index]) for index in floats)
    eager = max(_relative(theirs[index], exact[index]) for index in floats)
    said = f"a relative error of {error:.1e} against f64, where eager PyTorch has {eager:.1e}"
    return said if error <= FACTOR_OF_EAGER * eager < LARGEST_ERROR else ""


def _compiled(program: Program, call: tuple[Any, ...]) -> Callable[..., Any]:
    return eyas.compile(program.model, call, **compile_options())


def _torch_compiled(program: Program, call: tuple[Any, ...]) -> Callable[..., Any]:
    torch._dynamo.reset()
    # By default these are left to PyTorch: recurrent layers, and what has results of a size that the data says.
    torch._dynamo.config.allow_rnn = True
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    return torch.compile(program.model, backend="eyas")


def _joined(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(torch.cat(pair) for pair in zip(one, other, strict=True))


def difference(ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], rtol: float) -> str:
    """What is wrong with our results, or ""."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results instead of {len(theirs)}"
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"result {index} is {one.dtype}{list(one.shape)} instead of {other.dtype}{list(other.shape)}"
        if other.dtype.kind not in "fc":
            if count := int((one != other).sum()):
                return f"result {index} differs in {count} of {one.size}"
            continue
        # Where the reference has an infinity or no number, so must we.
        odd = ~np.isfinite(other)
        if not np.array_equal(one[odd], other[odd], equal_nan=True) or not np.isfinite(one[~odd]).all():
            return f"result {index} has other infinities or NaNs"
        if (error := _relative(one[~odd], other[~odd])) > rtol:
            return f"result {index} has a relative error of {error:.1e}, more than {rtol:.0e}"
    return ""


def _distance(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> float:
    """How much results differ; those of other shapes differ."""
    pairs = zip(one, other, strict=True)
    return max(_relative(a, b) if a.shape == b.shape else 1.0 for a, b in pairs)


def _relative(one: np.ndarray, other: np.ndarray) -> float:
    if one.size == 0:
        return 0.0
    wide = np.complex128 if other.dtype.kind == "c" else np.float64
    largest = max(float(np.abs(other.astype(wide)).max()), 1e-30)
    return float(np.abs(one.astype(wide) - other.astype(wide)).max()) / largest
