"""Errors are measured on the layer's scale, and what no tolerance covers is found."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from eyas.verification.compare import Tolerance, compare

DEFAULT = Tolerance()


def test_error_is_relative_to_the_largest_magnitude():
    expected = np.array([1000.0, 0.001], np.float32)
    difference = compare(expected + np.float32([0, 0.05]), expected, DEFAULT)
    assert difference.ok and difference.error == pytest.approx(5e-5, rel=1e-2)
    assert difference.at == (1,)


@pytest.mark.parametrize(
    ("dtype", "error", "ok"),
    [
        (np.float64, 1e-10, True),
        (np.float64, 1e-7, False),
        (np.float32, 1e-5, True),
        (np.float32, 1e-3, False),
        (np.float16, 5e-3, True),
        (np.float16, 5e-2, False),
        (ml_dtypes.bfloat16, 2e-2, True),
        (ml_dtypes.bfloat16, 2e-1, False),
        (np.complex64, 1e-5, True),
        (np.complex64, 1e-3, False),
    ],
)
def test_tolerance_follows_the_type(dtype, error, ok):
    expected = np.ones(4, dtype)
    actual = (expected.astype(np.complex128) + [0, 0, error, 0]).astype(np.complex128)
    actual = actual if np.dtype(dtype).kind == "c" else actual.real
    assert compare(actual, expected, DEFAULT).ok is ok


def test_tolerances_can_be_given():
    expected = np.ones(3, np.float32)
    assert compare(expected * 1.05, expected, Tolerance(rtol=0.1)).ok
    assert compare(expected + 0.05, expected, Tolerance(rtol=0, atol=0.1)).ok
    assert not compare(expected * 1.00001, expected, Tolerance(rtol=0, atol=0)).ok


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.bool_])
def test_integers_are_exact(dtype):
    expected = np.array([1, 0, 1, 1], dtype)
    assert compare(expected.copy(), expected, DEFAULT).ok
    actual = np.array([1, 1, 1, 1], dtype)
    difference = compare(actual, expected, DEFAULT)
    assert not difference.ok and difference.at == (1,) and "1 of 4 differ" in difference.reason
    assert compare(actual, expected, Tolerance(atol=1)).ok


def test_large_integers_do_not_pass_through_floats():
    expected = np.array([2**60], np.int64)
    assert not compare(expected + 1, expected, DEFAULT).ok


@pytest.mark.parametrize(
    ("actual", "expected", "ok"),
    [
        ([np.nan, 1], [np.nan, 1], True),
        ([np.inf, 1], [np.inf, 1], True),
        ([np.nan, 1], [0, 1], False),
        ([0, 1], [np.nan, 1], False),
        ([np.inf, 1], [-np.inf, 1], False),
        ([1e30, 1], [np.inf, 1], False),
        ([np.inf, 1], [5, 1], False),
    ],
)
def test_non_finite_values_must_be_where_they_are_expected(actual, expected, ok):
    difference = compare(np.array(actual, np.float32), np.array(expected, np.float32), DEFAULT)
    assert difference.ok is ok
    assert (difference.to_json()["error"] is None) is not ok


def test_shapes_and_empty_arrays():
    assert not compare(np.zeros((2, 3)), np.zeros((3, 2)), DEFAULT).ok
    assert compare(np.zeros((0, 3)), np.zeros((0, 3)), DEFAULT).ok
    assert compare(np.float32(1.0), np.array(1.0, np.float32), DEFAULT).ok
    difference = compare(np.array([0.5], np.float32), np.zeros(1, np.float32), DEFAULT)
    assert not difference.ok and np.isinf(difference.error)
