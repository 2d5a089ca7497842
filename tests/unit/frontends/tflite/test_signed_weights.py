"""Weights beside real inputs are signed, whatever an old converter called them."""

from __future__ import annotations

import numpy as np
import pytest

from eyas.frontends.tflite.file import OperatorRecord, Quantization, TensorRecord, _signed_weights

BYTES = np.array([[1, 255, 128]], np.uint8)


def record(kind: str, zero: int | None) -> TensorRecord:
    found = None if zero is None else Quantization(np.float32([0.5]), np.array([zero]), 0)
    return TensorRecord("tensor", kind, (1, 3), (1, 3), found, False, lambda: BYTES)


@pytest.mark.parametrize(
    ("given", "zero", "kind"), [("FLOAT32", 0, "INT8"), ("FLOAT32", 7, "UINT8"), ("UINT8", 0, "UINT8")]
)
def test_weights(given, zero, kind):
    tensors = (record(given, None), record("UINT8", zero))
    _, weights = _signed_weights(tensors, (OperatorRecord(0, "FULLY_CONNECTED", (0, 1, -1), (0,)),))
    assert weights.kind == kind
    assert weights.read is not None
    assert weights.read().tolist() == ([[1, -1, -128]] if kind == "INT8" else [[1, 255, 128]])
