"""One case through Eyas: compiled, run, and compared with the expected outputs."""

from __future__ import annotations

import enum
import time
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper
from tests.conformance.onnx.cases import Case
from tests.conformance.target import compile_options, sync_options

from eyas.errors import EyasError, FrontendError, UsageError


class Status(enum.Enum):
    """How a case ended."""

    PASSED = "passed"
    SPECIALIZED = "passed, parameters known at compile"
    UNSUPPORTED = "unsupported"
    FAILED = "failed to compile or run"
    WRONG = "wrong"
    CRASHED = "crashed"
    TIMEOUT = "timeout"


@dataclass(frozen=True)
class Outcome:
    """The status of one case, with the reason when it did not pass, and how long it took."""

    status: Status
    reason: str = ""
    seconds: float = 0.0


def check(case: Case) -> Outcome:
    """Tries the case as it is; where that is not supported, with its parameter inputs as constants."""
    start = time.perf_counter()
    status, reason = _attempt(case, case.model, [True] * len(case.model.graph.input))
    if status in (Status.UNSUPPORTED, Status.FAILED) and (special := case.specialized()):
        second, reason = _attempt(case, *special)
        status = Status.SPECIALIZED if second is Status.PASSED else second
    return Outcome(status, reason, time.perf_counter() - start)


def _attempt(case: Case, model: onnx.ModelProto, wanted: list[bool]) -> tuple[Status, str]:
    try:
        module = _compile(model)
        for inputs, expected in case.data_sets:
            given = [as_array(value) for value, want in zip(inputs, wanted, strict=False) if want]
            results = module(*given)
            results = results if isinstance(results, (tuple, list)) else (results,)
            if _draws(model):
                problem = _compare_kinds(results, expected)
            else:
                problem = compare(results, expected, case.rtol, case.atol)
            if problem:
                return Status.WRONG, problem
    except (FrontendError, UsageError) as error:
        return Status.UNSUPPORTED, _first_line(error)
    except EyasError as error:
        return Status.FAILED, f"{type(error).__name__}: {_first_line(error)}"
    except Exception as error:
        return Status.FAILED, f"{type(error).__name__}: {_first_line(error)}"
    return Status.PASSED, ""


def _draws(model: onnx.ModelProto) -> bool:
    """Whether the model draws random numbers, about whose values the standard says nothing."""
    return any(node.op_type in ("Bernoulli", "RandomUniformLike") for node in model.graph.node)


def _compare_kinds(results: object, expected: object) -> str | None:
    """Truths of the right shape and type that are not all the same: the chances of the tests are between."""
    if problem := compare(
        [np.zeros_like(one) for one in results], [np.zeros_like(as_array(one)) for one in expected], 0, 0
    ):
        return problem
    if any(not np.isin(one, (0, 1)).all() for one in results):
        return "a draw is neither 0 nor 1"
    return "all draws are equal" if any(np.ptp(one.astype(np.float32)) == 0 for one in results) else None


def _compile(model: onnx.ModelProto) -> object:
    from eyas.pipelines import driver
    from eyas.pipelines.request import Request, Services
    from eyas.targets import Target

    given = compile_options()
    request = Request(model, targets=(Target.parse(given["target"]),), disable=given["disable"])
    # One worker: this process is one of several already.
    return driver.compile(request, Services(workers=1)).load(sync_options().get("device"))


def as_array(value: object) -> np.ndarray:
    """A test's value; the package gives some types as protos."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def compare(results: object, expected: object, rtol: float, atol: float) -> str | None:
    """What differs, or None; the same rules as the package's own runner."""
    if len(results) != len(expected):
        return f"{len(results)} outputs, expected {len(expected)}"
    for index, (got, want) in enumerate(zip(results, expected, strict=True)):
        got, want = np.asarray(got), as_array(want)
        if got.shape != want.shape:
            return f"output {index} has shape {got.shape}, expected {want.shape}"
        if got.dtype != want.dtype:
            return f"output {index} has type {got.dtype}, expected {want.dtype}"
        if want.dtype.kind not in "biufc":
            got, want = got.astype(np.float32), want.astype(np.float32)
        if not np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True):
            with np.errstate(all="ignore"):
                error = np.abs(got.astype(np.complex128) - want.astype(np.complex128)).max()
            return f"output {index} differs by up to {error:.3g}"
    return None


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0][:400] if str(error).strip() else type(error).__name__
