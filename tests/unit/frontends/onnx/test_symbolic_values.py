"""Arrays as elements that may be expressions."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from eyas.frontends.onnx.symbolic.values import Value, elements_of, evaluate  # noqa: E402


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 4, 2), (3, 0), (2, 3)])
def test_elements_are_python_numbers_in_the_same_places(shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    elements = elements_of(array)
    assert elements.shape == shape and (elements == array).all()
    assert all(type(element) is int for element in elements.flat)


@pytest.mark.parametrize("shape", [(1,), (4,), (3, 2)])
def test_running_sums_are_python_numbers(shape):
    """Also those that are larger than any of the type: who looks at them finds that they do not fit."""
    array = np.full(shape, 2**62)
    int64 = onnx.TensorProto.INT64
    inputs = [Value(int64, one.shape, elements_of(one)) for one in (array, np.array(0))]
    (sums,) = evaluate(onnx.helper.make_node("CumSum", ["x", "axis"], ["y"]), inputs, 14) or ()
    assert sums is not None and all(type(element) is int for element in sums.flat)
    assert sums.reshape(-1)[-1] == 2**62 * shape[0]
