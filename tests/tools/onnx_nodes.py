"""Models of one ONNX node, compiled and compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import eyas


def node_model(
    op: str,
    inputs: Mapping[str, np.ndarray | None],
    outputs: Mapping[str, int],
    domain: str = "",
    opset: int = 18,
    version: int = 1,
    constants: Sequence[str] = (),
    dynamic: Sequence[str] = (),
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model and its inputs; None is an input that is left out, `dynamic` ones have an open first dimension."""
    given = {name: value for name, value in inputs.items() if value is not None}
    names = [name if value is not None else "" for name, value in inputs.items()]
    node = helper.make_node(op, names, list(outputs), domain=domain, **attributes)
    infos = []
    for name, value in given.items():
        if name not in constants:
            shape = [None, *value.shape[1:]] if name in dynamic else value.shape
            infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape))
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    weights = [numpy_helper.from_array(value, name) for name, value in given.items() if name in constants]
    graph = helper.make_graph([node], "graph", infos, results, weights)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, version)] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model, {name: value for name, value in given.items() if name not in constants}


def run_model(model: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    results = eyas.compile(model)(*given.values())
    return [np.asarray(result) for result in (results if isinstance(results, (tuple, list)) else [results])]


def reference(model: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, dict(given))


def check_model(
    model: onnx.ModelProto, given: Mapping[str, np.ndarray], rtol: float = 1e-4, atol: float = 1e-5, steps: int = 0
) -> None:
    """Same types, shapes and numbers; integers may be `steps` apart."""
    for got, want in zip(run_model(model, given), reference(model, given), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        if want.dtype.kind in "iu":
            assert np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0) <= steps
        else:
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def check_node(
    op: str,
    inputs: Mapping[str, np.ndarray | None],
    outputs: Mapping[str, int],
    domain: str = "",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    steps: int = 0,
    **options: Any,
) -> None:
    check_model(*node_model(op, inputs, outputs, domain, **options), rtol=rtol, atol=atol, steps=steps)
