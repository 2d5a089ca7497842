"""Runs one case here and in JAX, and says how it went."""

from __future__ import annotations

import contextlib
import functools
import time
from typing import Any

import jax
import numpy as np
from tests.conformance.jax.case import Case
from tests.conformance.outcome import Outcome, one_line
from tests.conformance.target import compile_options

import eyas
from eyas.errors import EyasError, TargetError, UnsupportedOpError


@functools.cache
def all_cases() -> dict[str, Case]:
    from tests.conformance.jax import cases_lax, cases_numpy, cases_training

    cases = [*cases_numpy.CASES, *cases_lax.CASES, *cases_training.CASES]
    table = {case.name: case for case in cases}
    assert len(table) == len(cases), "two cases have one name"
    return table


def check_named(name: str) -> Outcome:
    return check(all_cases()[name])


def check(case: Case) -> Outcome:
    begin = time.perf_counter()
    with jax.enable_x64(True) if case.x64 else contextlib.nullcontext():
        kind, reason = _compare(case)
    return Outcome(case.name, kind, reason, time.perf_counter() - begin)


def _compare(case: Case) -> tuple[str, str]:
    expected, state = [], case.args
    reference = jax.jit(case.function)
    for _ in range(case.steps):
        results = reference(*state)
        expected.append(results)
        state = _advance(case, state, results)
    try:
        module = eyas.compile(jax.jit(case.function), case.args, **compile_options())
        state = case.args
        for step, want in enumerate(expected):
            got = module(*state)
            if problem := _difference(got, want, case):
                return "wrong", f"step {step}: {problem}" if case.steps > 1 else problem
            state = _advance(case, state, got)
    except (UnsupportedOpError, TargetError) as error:
        return "unsupported", one_line(error)
    except EyasError as error:
        return "crashed", f"{type(error).__name__}: {one_line(error)}"
    return "passed", ""


def _advance(case: Case, state: tuple[Any, ...], results: Any) -> tuple[Any, ...]:
    """Parameters and optimiser state come back first, the loss last; the batch stays."""
    if case.steps == 1:
        return state
    return (*results[:-1], *state[len(results) - 1 :])


def _difference(got: Any, want: Any, case: Case) -> str:
    ours, theirs = jax.tree.leaves(got), jax.tree.leaves(want)
    if len(ours) != len(theirs):
        return f"{len(ours)} results instead of {len(theirs)}"
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"result {index} is {one.dtype}{list(one.shape)} instead of {other.dtype}{list(other.shape)}"
        if other.dtype.kind not in "fc":
            different = one != other
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                near = np.isclose(one, other, case.rtol, case.atol, equal_nan=True)
            different = ~near
        if different.any():
            where = tuple(int(axis[0]) for axis in np.nonzero(different)) if one.ndim else ()
            count = f"result {index} differs in {int(different.sum())} of {one.size}"
            return f"{count}, at {where}: {one[where]} instead of {other[where]}"
    return ""
