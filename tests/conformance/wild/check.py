"""Compiles one file as it is, runs it, compares it with the engine that it was made for, and takes both times."""

from __future__ import annotations

import functools
import importlib
import json
import logging
import math
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.timing import interleave
from tests.conformance.outcome import Outcome, one_line
from tests.conformance.packages import Missing
from tests.conformance.target import compile_options
from tests.conformance.wild.case import Call, Wild
from tests.conformance.wild.engines import arrays, reference

import eyas
from eyas.errors import EyasError, FrontendError, UnsupportedOpError

FILES = (
    "cases_audio",
    "cases_vision",
    "cases_images",
    "cases_text",
    "cases_tflite",
    "cases_tfjs",
    "cases_torch",
    "cases_classical",
    "cases_more",
    "cases_npm",
    "cases_science",
    "cases_letters",
)
# Blocks that take turns; long models are timed less often.
_TURNS, _SECONDS = 7, 4.0


class Wrong(Exception):
    """Results that are not the reference's."""


@functools.cache
def all_cases() -> dict[str, Wild]:
    cases = [case for name in FILES for case in importlib.import_module(f"tests.conformance.wild.{name}").CASES]
    table = {case.name: case for case in cases}
    assert len(table) == len(cases), "two cases have one name"
    return table


def check(name: str) -> Outcome:
    """The reason of one that passed is JSON: seconds to compile, milliseconds of both, the largest difference, and that
    of the engine where both are judged by doubles."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    begin = time.perf_counter()
    try:
        kind, reason = "passed", json.dumps(_measured(all_cases()[name]))
    except Wrong as error:
        kind, reason = "wrong", one_line(error)
    except Missing as error:
        kind, reason = "skipped", one_line(error)
    except (UnsupportedOpError, FrontendError) as error:
        kind, reason = "unsupported", one_line(error, 400)
    except EyasError as error:
        kind, reason = "crashed", f"{type(error).__name__}: {one_line(error, 400)}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        kind, reason = (
            "crashed",
            f"{type(error).__name__}: {one_line(error)} ({Path(where.filename).name}:{where.lineno})",
        )
    return Outcome(name, kind, reason, time.perf_counter() - begin)


def _measured(case: Wild) -> dict[str, Any]:
    paths = [file.path() for file in case.files]
    source: Any = case.build(*paths) if case.build else paths[0]
    calls = case.calls()
    theirs = reference(case, source)
    expected = [theirs(call) for call in calls]
    also = {}
    if case.exact:
        answers, expected = expected, [_exact(paths[0], call, like) for call, like in zip(calls, expected, strict=True)]
        lax = replace(case, rtol=math.inf, steps=255)
        also["engine_error"] = max(difference(lax, *both) for both in zip(answers, expected, strict=True))
    begin = time.perf_counter()
    module = compiled(case, source, calls)
    compile_s = time.perf_counter() - begin
    error = 0.0
    for call, want in zip(calls, expected, strict=True):
        error = max(error, difference(case, _run(module, case, call), want))
    call = calls[0]
    once = time.perf_counter()
    theirs(call), _run(module, case, call)
    once = time.perf_counter() - once
    turns = max(2, min(_TURNS, int(_SECONDS / (5 * once + 1e-6))))
    times = interleave({"eyas": lambda: _run(module, case, call), "theirs": lambda: theirs(call)}, turns)
    ours_ms, theirs_ms = times["eyas"].min_ms, times["theirs"].min_ms
    return {"compile_s": round(compile_s, 1), "eyas_ms": ours_ms, "theirs_ms": theirs_ms, "error": error, **also}


def _exact(path: Path, call: Call, like: Sequence[np.ndarray]) -> list[np.ndarray]:
    from tests.conformance.wild import doubles

    return [one.astype(other.dtype) for one, other in zip(doubles.run(path, call), like, strict=True)]


def compiled(case: Wild, source: Any, calls: Sequence[Call]) -> Any:
    """As a user would: the file and nothing else; PyTorch needs an example."""
    options = {**compile_options()}
    if case.engine == "torch":
        import torch

        return eyas.compile(source, tuple(map(torch.from_numpy, calls[0].values())), **options)
    return eyas.compile(str(source) if isinstance(source, Path) else source, **options)


def _run(module: Any, case: Wild, call: Call) -> list[np.ndarray]:
    if case.engine == "onnxruntime":
        return arrays(module(**call))
    return arrays(module(*call.values()))


def difference(case: Wild, results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """The largest difference relative to the largest magnitude of a result; raises `Wrong` when it is too large."""
    if len(results) != len(expected):
        raise Wrong(f"{len(results)} results instead of {len(expected)}")
    largest = 0.0
    for index, (one, other) in enumerate(zip(results, expected, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Wrong(f"result {index} is {one.dtype}{one.shape} instead of {other.dtype}{other.shape}")
        if other.dtype.kind not in "fc":
            apart = np.abs(one.astype(np.int64) - other.astype(np.int64)) > case.steps
            if apart.sum() > case.ties * one.size:
                raise Wrong(f"result {index} differs in {apart.sum()} of {one.size}")
            continue
        both = np.isfinite(other)
        if not np.array_equal(np.isfinite(one), both):
            raise Wrong(f"result {index} is not finite where it should be")
        if not both.any():
            continue
        scale = max(float(np.abs(other[both]).max()), case.scale)
        error = float(np.abs(one[both].astype(np.float64) - other[both].astype(np.float64)).max()) / scale
        if error > case.rtol:
            raise Wrong(f"result {index} differs by {error:.1e} of its largest magnitude, more than {case.rtol:.0e}")
        largest = max(largest, error)
    return largest
