"""A trained model on real input, judged by what it says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from tests.conformance.outcome import Outcome, one_line
from tests.conformance.packages import Missing
from tests.conformance.target import compile_options

import eyas
from eyas.errors import EyasError, FrontendError, UnsupportedOpError


@dataclass(frozen=True)
class Trained:
    """`answer()` compiles the model, runs it and returns what it says, for the table; it raises `Wrong` when that is
    not right, and `Missing` when the model cannot be had here."""

    name: str
    answer: Callable[[], str]


class Wrong(Exception):
    """The compiled model's answer is not the right one, or its numbers are not the reference's."""


def check(case: Trained) -> Outcome:
    begin = time.perf_counter()
    try:
        kind, reason = "passed", case.answer()
    except Wrong as error:
        kind, reason = "wrong", one_line(error)
    except Missing as error:
        kind, reason = "skipped", one_line(error)
    except (UnsupportedOpError, FrontendError) as error:
        kind, reason = "unsupported", one_line(error)
    except EyasError as error:
        kind, reason = "crashed", f"{type(error).__name__}: {one_line(error)}"
    return Outcome(case.name, kind, reason, time.perf_counter() - begin)


class Paired:
    """An ONNX model compiled, beside onnxruntime: every call is made in both, and the results must agree.

    `rtol` is the largest difference allowed, relative to the largest magnitude of each result. `fixed` compiles for the
    shapes of these arguments; without it every size that the model leaves open is dynamic. `ties` is the share of
    integers that may differ, for models that choose between numbers which are now and then equal up to rounding.
    """

    def __init__(
        self,
        model: Path | onnx.ModelProto,
        rtol: float = 1e-4,
        fixed: Sequence[np.ndarray] | None = None,
        ties: float = 0.0,
    ):
        import onnxruntime

        source = str(model) if isinstance(model, Path) else model
        stored = source if isinstance(source, str) else source.SerializeToString()

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        self.session = onnxruntime.InferenceSession(stored, options, providers=["CPUExecutionProvider"])
        self.names = [value.name for value in self.session.get_inputs()]
        self.module = eyas.compile(source, tuple(fixed) if fixed else (), **compile_options())
        self.rtol, self.ties, self.largest, self.differing = rtol, ties, 0.0, 0

    def __call__(self, *arguments: np.ndarray) -> list[np.ndarray]:
        expected = self.session.run(None, dict(zip(self.names, arguments, strict=True)))
        results = flat(self.module(*arguments))
        self.largest = max(self.largest, agree(results, expected, self.rtol, self.ties))
        pairs = zip(results, expected, strict=True)
        self.differing += sum(int((one != other).sum()) for one, other in pairs if other.dtype.kind not in "fc")
        return results


def agree(results: Sequence[Any], expected: Sequence[Any], rtol: float, ties: float = 0.0) -> float:
    """The largest relative difference; raises `Wrong` when it is above `rtol`, when shapes or types differ, or more
    integers than `ties` of them."""
    if len(results) != len(expected):
        raise Wrong(f"{len(results)} results instead of {len(expected)}")
    largest = 0.0
    for index, (one, other) in enumerate(zip(map(np.asarray, results), map(np.asarray, expected), strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Wrong(f"result {index} is {one.dtype}{one.shape} instead of {other.dtype}{other.shape}")
        if other.dtype.kind not in "fc":
            if (differing := int((one != other).sum())) > ties * one.size:
                raise Wrong(f"result {index} differs in {differing} of {one.size}")
            continue
        scale = max(float(np.abs(other).max()), 1e-30)
        error = float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max()) / scale
        if not error <= rtol:
            raise Wrong(f"result {index} differs by {error:.1e} of its largest magnitude, more than {rtol:.0e}")
        largest = max(largest, error)
    return largest


def flat(results: Any) -> list[np.ndarray]:
    if isinstance(results, Mapping):
        results = list(results.values())
    return [np.asarray(value) for value in (results if isinstance(results, (tuple, list)) else [results])]


def require(condition: object, problem: str) -> None:
    if not condition:
        raise Wrong(problem)
