"""Arrays as elements that may be expressions."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from eyas.frontends.onnx.symbolic import expressions as ex  # noqa: E402
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


@pytest.mark.parametrize(
    "base, exponent",
    [([16.0, 2.0, 0.0], 0.5), ([3.0, -0.5], 2.0), ([1.5], 1.0), ([2.0, 10.0], -1.5), ([7, -3], 3), ([5], 0)],
)
def test_powers_are_those_of_numpy(base, exponent):
    """Integers of any size, floats rounded as in f32; what would be long or no integer is not followed."""
    dtype = np.float32 if isinstance(base[0], float) else np.int64
    array, kind = np.array(base, dtype), onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [Value(kind, one.shape, elements_of(one)) for one in (array, np.array(exponent, dtype))]
    (powers,) = evaluate(onnx.helper.make_node("Pow", ["x", "n"], ["y"]), inputs, 14) or ()
    assert powers is not None and np.array_equal(powers.astype(dtype), array ** np.array(exponent, dtype))


def test_powers_of_expressions():
    size = Value(onnx.TensorProto.INT64, (1,), np.array([ex.dim("n")], object))
    for exponent, known in ((2, True), (-1, False), (9, False)):
        two = Value(onnx.TensorProto.INT64, (), elements_of(np.array(exponent)))
        found = evaluate(onnx.helper.make_node("Pow", ["x", "n"], ["y"]), [size, two], 14)
        assert (found is not None and found[0] is not None) == known
        if known:
            assert str(found[0][0]) == str(ex.mul(ex.dim("n"), ex.dim("n")))
