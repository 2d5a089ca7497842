"""Outputs against the source framework: at most 1e-4 relative in f32, and the same for an ONNX file of each model."""

from __future__ import annotations

from collections.abc import Iterator

import eyas
from benchmarks import models
from benchmarks.report import Row, failure

BAR = 1e-4
LEAST_SENSITIVITY = 0.05  # of a model that can show anything


def rows(only: str = "") -> Iterator[Row]:
    for name in [*models.TORCH, *models.JAX]:
        if only and only != name:
            continue
        one = models.case(name)
        framework = "PyTorch" if name in models.TORCH else "JAX"
        reaction = models.sensitivity(one)
        if not reaction > LEAST_SENSITIVITY:
            yield failure(one.name, "relative", BAR, f"other inputs change its results by {reaction:.1e} only")
            continue
        yield _row(one.name, framework, lambda name=name, one=one: _source_error(name, one))
        if name in models.TORCH:
            yield _row(f"{one.name}, ONNX file", "PyTorch", lambda name=name, one=one: _onnx_error(name, one))


def _row(what: str, framework: str, measure) -> Row:
    try:
        return Row(what, measure(), "relative", BAR, f"against {framework}")
    except eyas.EyasError as error:
        return failure(what, "relative", BAR, error)


def _source_error(name: str, one: models.Case) -> float:
    return models.relative_error(models.flat(models.compiled(name)(*one.args, **one.kwargs)), one.run())


def _onnx_error(name: str, one: models.Case) -> float:
    module = eyas.compile(str(models.onnx_file(name)))
    return models.relative_error(models.flat(module(*models.onnx_inputs(one))), one.run())
