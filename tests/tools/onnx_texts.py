"""Models written as ONNX text, compiled once and compared with ONNX Runtime in every call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import parser

import eyas


def text_model(text: str, opset: int = 18) -> onnx.ModelProto:
    """The model of a graph `main (...) => (...) {...}`."""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')


def check_text(
    text: str, *calls: Sequence[Any], opset: int = 18, rtol: float = 1e-5, atol: float = 1e-6, **options: Any
) -> Any:
    """The compiled module; all results of each call must agree with ONNX Runtime's, in shape and type too. `options`
    are those of `eyas.compile`."""
    model = text_model(text, opset)
    module = eyas.compile(model, **options)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [value.name for value in model.graph.input]
    for call in calls:
        arguments = [np.asarray(argument) for argument in call]
        results = module(*arguments)
        results = results if isinstance(results, (tuple, list)) else [results]
        for got, want in zip(results, session.run(None, dict(zip(names, arguments, strict=True))), strict=True):
            got = np.asarray(got)
            assert got.shape == want.shape and got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    return module
