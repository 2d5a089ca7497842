"""Attention of the ONNX standard: masks of truths and of numbers, rows that may see nothing, and the scores on the way,
against the standard's own evaluator.

Every mask lets some columns through and others not: one that is all true cannot tell a truth from an addend.
"""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402
from tests.tools.onnx_nodes import node_model, run_model  # noqa: E402

BATCH, HEADS, ROWS, COLUMNS, DEPTH = 2, 3, 5, 7, 8
FLOATS = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}
EMPTY_ROW = 2


def keep(*shape: int) -> np.ndarray:
    """Truths, with one row that sees nothing."""
    mask = np.random.default_rng(3).random(shape) < 0.6
    mask[..., 0] = True
    mask[..., EMPTY_ROW, :] = False
    return mask


def addend(*shape: int) -> np.ndarray:
    return np.where(keep(*shape), np.random.default_rng(4).standard_normal(shape), -np.inf).astype(np.float32)


MASKS = {
    "truths": keep(ROWS, COLUMNS),
    "truths of heads": keep(BATCH, HEADS, ROWS, COLUMNS),
    "numbers": addend(ROWS, COLUMNS),
    "numbers of a batch": addend(BATCH, 1, ROWS, COLUMNS),
}


def check(mask: np.ndarray, opset: int, dtype: type = np.float32, scores: bool = False, **attributes: int) -> None:
    rng = np.random.default_rng(0)
    shapes = {"q": (ROWS, DEPTH), "k": (COLUMNS, DEPTH), "v": (COLUMNS, DEPTH)}
    inputs = {name: rng.standard_normal((BATCH, HEADS, *shape)).astype(dtype) for name, shape in shapes.items()}
    inputs["mask"] = mask if mask.dtype == bool else mask.astype(dtype)
    outputs = {"y": FLOATS[dtype]}
    model, given = node_model("Attention", inputs, outputs, opset=opset, **attributes)
    if scores:
        model.graph.node[0].output.extend(["", "", "scores"])
        model.graph.output.append(onnx.helper.make_tensor_value_info("scores", FLOATS[dtype], None))
    expected = ReferenceEvaluator(model).run(None, given)
    tolerance = 2e-3 if dtype == np.float16 else 1e-5
    for got, want in zip(run_model(model, given), expected, strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, tolerance, tolerance)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("mask", MASKS)
def test_masks(mask, opset, causal):
    check(MASKS[mask], opset, is_causal=causal)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("mask", ["truths", "numbers"])
def test_scores(mask, mode):
    check(MASKS[mask], 24, scores=True, qk_matmul_output_mode=mode)


def test_scores_of_halves_with_a_softmax_in_f32():
    check(MASKS["truths"], 24, np.float16, scores=True, qk_matmul_output_mode=3, softmax_precision=TensorProto.FLOAT)
