# ruff: noqa: E501 - lines of IR are as long as they are
"""Reductions, arg-max, softmax and layer norm."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest
from kernel_texts import FOLDS, SIZES, reduction_text, softmax, softmax_text


@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)], ids=str)
def test_reduction(rng, fold, axes):
    start, body, function = FOLDS[fold]
    shape = (3, 17, 33)
    x = p.random_array(rng, shape, "f32")
    if fold == "prod":
        x = np.exp2(x / 8).astype(np.float32)  # products of many numbers stay in range
    wide = x.astype(np.float64)
    expected = function.reduce(wide, axis=axes) if function else (wide * wide).sum(axis=axes)
    tolerance = 0.0 if fold in ("max", "min") else 2e-4 if fold == "prod" else 1e-5
    p.assert_both(
        reduction_text(shape, axes, start, body),
        [x],
        np.asarray(expected, np.float32),
        rtol=tolerance,
        atol=tolerance * 10,
    )


@pytest.mark.parametrize("size", [*SIZES, 1000])
@pytest.mark.parametrize("axis", [0, 1])
def test_sum_of_odd_sizes(rng, size, axis):
    shape = (size, 5) if axis == 0 else (5, size)
    x = p.random_array(rng, shape, "f32")
    start, body, _ = FOLDS["sum"]
    expected = x.sum(axis=axis, dtype=np.float64).astype(np.float32)
    p.assert_both(reduction_text(shape, (axis,), start, body), [x], expected, rtol=1e-5, atol=1e-5 * size**0.5)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reduction_of_each_type(rng, dtype, axis):
    x = p.random_array(rng, (31, 33), dtype)
    kind = "f" if "f" in dtype else "i"
    text = reduction_text((31, 33), (axis,), p.zero(dtype), f"%r = arith.add{kind} %i0, %o : {dtype}", dtype)
    if kind == "i":
        p.assert_both(text, [x], x.sum(axis=axis, dtype=x.dtype))
        return
    tolerance = 40 * p.EPSILON[dtype]
    p.assert_both(text, [x], x.astype(np.float64).sum(axis=axis).astype(x.dtype), rtol=tolerance, atol=tolerance * 2)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("op", "start", "function"), [("ori", "false", np.any), ("andi", "true", np.all)])
def test_any_and_all(rng, axis, op, start, function):
    x = rng.random((17, 33)) < (0.05 if op == "ori" else 0.95)
    assert len(set(function(x, axis=axis))) == 2  # otherwise a constant would pass
    text = reduction_text((17, 33), (axis,), start, f"%r = arith.{op} %i0, %o : i1", "i1")
    p.assert_both(text, [x], function(x, axis=axis))


def argmax_text(shape, axis):
    kept = [loop for loop in range(len(shape)) if loop != axis]
    small = [shape[loop] for loop in kept]
    a, v, k = p.tensor_type(shape), p.tensor_type(small), p.tensor_type(small, "i64")
    maps = ", ".join([p.affine(len(shape), range(len(shape))), *[p.affine(len(shape), kept)] * 2])
    kinds = ", ".join('"reduction"' if loop == axis else '"parallel"' for loop in range(len(shape)))
    lines = p.filled("values", small, "f32", "0xFF800000") + p.filled("places", small, "i64", "0")
    lines += f"""%z:2 = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
        ins(%x : {a}) outs(%values, %places : {v}, {k}) {{
      ^bb0(%i: f32, %best: f32, %at: i64):
        %here = linalg.index {axis} : index
        %here64 = arith.index_cast %here : index to i64
        %more = arith.cmpf ogt, %i, %best : f32
        %value = arith.select %more, %i, %best : f32
        %place = arith.select %more, %here64, %at : i64
        linalg.yield %value, %place : f32, i64
      }} -> ({v}, {k})\n"""
    return p.main([("x", a)], lines, [("z#0", v), ("z#1", k)])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_argmax(rng, axis):
    x = p.random_array(rng, (5, 17, 31), "f32")
    p.assert_both(argmax_text(x.shape, axis), [x], [x.max(axis=axis), x.argmax(axis=axis)])


def test_argmax_of_ties_is_the_first(rng):
    x = rng.integers(0, 3, (7, 100)).astype(np.float32)
    p.assert_both(argmax_text(x.shape, 1), [x], [x.max(axis=1), x.argmax(axis=1)])


@pytest.mark.parametrize("columns", [1, 3, 16, 17, 33, 100, 1000])
def test_softmax(rng, columns):
    x = 3 * p.random_array(rng, (17, columns), "f32")
    module = p.assert_both(softmax_text(17, columns), [x], softmax(x), rtol=3e-6, atol=1e-7)
    assert len(module.manifest["kernels"]) == 1


def test_lanes_run_along_many_short_rows(rng):
    x = 3 * p.random_array(rng, (2001, 5), "f32")
    module = p.assert_both(softmax_text(2001, 5), [x], softmax(x), rtol=3e-6, atol=1e-7)
    assert len(module.manifest["kernels"]) > 1


def test_softmax_of_several_leading_dimensions(rng):
    x = p.random_array(rng, (2, 3, 7, 31), "f32")
    p.assert_both(softmax_text(7, 31, (2, 3)), [x], softmax(x), rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("columns", [3, 16, 33, 100])
def test_layer_norm(rng, columns):
    rows = 19
    a, s, w = p.tensor_type([rows, columns]), p.tensor_type([rows]), p.tensor_type([columns])
    whole, row, column = p.affine(2, [0, 1]), p.affine(2, [0]), p.affine(2, [1])
    lines = p.filled("zeros", [rows], "f32", "0.0") + f"%e = tensor.empty() : {a}\n%es = tensor.empty() : {s}\n"
    lines += p.generic("sum", [("x", a, whole)], ("zeros", s, row), "pr", "%r = arith.addf %i0, %o : f32", "f32")
    body = f"%n = arith.constant {columns}.0 : f32\n%r = arith.divf %i0, %n : f32"
    one = p.affine(1, [0])
    lines += p.generic("mean", [("sum", s, one)], ("es", s, one), "p", body, "f32")
    body = "%r = arith.subf %i0, %i1 : f32"
    lines += p.generic("centred", [("x", a, whole), ("mean", s, row)], ("e", a, whole), "pp", body, "f32")
    body = "%q = arith.mulf %i0, %i0 : f32\n%r = arith.addf %q, %o : f32"
    lines += p.generic("squares", [("centred", a, whole)], ("zeros", s, row), "pr", body, "f32")
    body = (
        f"%n = arith.constant {columns}.0 : f32\n%v = arith.divf %i1, %n : f32\n%eps = arith.constant 1.0e-5 : f32\n"
        "%ve = arith.addf %v, %eps : f32\n%q = math.rsqrt %ve : f32\n%c = arith.mulf %i0, %q : f32\n"
        "%s = arith.mulf %c, %i2 : f32\n%r = arith.addf %s, %i3 : f32"
    )
    inputs = [("centred", a, whole), ("squares", s, row), ("w", w, column), ("b", w, column)]
    lines += p.generic("z", inputs, ("e", a, whole), "pp", body, "f32")
    x, scale, shift = (
        p.random_array(rng, (rows, columns), "f32"),
        *(p.random_array(rng, (columns,), "f32") for _ in "wb"),
    )
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * scale + shift
    text = p.main([("x", a), ("w", w), ("b", w)], lines, [("z", a)])
    module = p.assert_both(text, [x, scale, shift], expected.astype(np.float32), rtol=1e-4, atol=1e-5)
    assert len(module.manifest["kernels"]) == 1
