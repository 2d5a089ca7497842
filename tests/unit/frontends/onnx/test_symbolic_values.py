"""Arrays as elements that may be expressions."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from eyas.frontends.onnx.symbolic.values import elements_of  # noqa: E402


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 4, 2), (3, 0), (2, 3)])
def test_elements_are_python_numbers_in_the_same_places(shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    elements = elements_of(array)
    assert elements.shape == shape and (elements == array).all()
    assert all(type(element) is int for element in elements.flat)
