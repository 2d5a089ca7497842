# ruff: noqa: E501 - lines of IR are as long as they are
"""NaN, infinities, no elements, no dimensions, dynamic sizes, many workgroups."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest
from kernel_texts import FOLDS, binary_text, matmul_text, reduction_text, softmax, softmax_text


def test_nan_and_infinity_pass_through(rng):
    x = np.array([1.0, np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38] * 5, np.float32)
    y = np.roll(x, 3)
    for op, function in (("addf", np.add), ("mulf", np.multiply), ("maximumf", np.maximum), ("minimumf", np.minimum)):
        with np.errstate(all="ignore"):
            expected = function(x, y)
        p.assert_both(binary_text((35,), [0], [0], "f32", f"%r = arith.{op} %i0, %i1 : f32"), [x, y], expected)


@pytest.mark.parametrize("function", ["exp", "log", "tanh", "sqrt", "rsqrt", "erf", "sin"])
def test_functions_of_special_values(function):
    from math import erf

    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 1e-40, 88.0, -104.0, 3e38] * 3, np.float32)
    numpy = {"rsqrt": lambda v: 1 / np.sqrt(v), "erf": np.vectorize(erf)}.get(function) or getattr(np, function)
    with np.errstate(all="ignore"):
        expected = np.asarray(numpy(x.astype(np.float64))).astype(np.float32)
    if function == "sin":
        x, expected = x[:8], expected[:8]
    a, identity = p.tensor_type(x.shape), p.affine(1, [0])
    lines = f"%e = tensor.empty() : {a}\n"
    lines += p.generic("z", [("x", a, identity)], ("e", a, identity), "p", f"%r = math.{function} %i0 : f32", "f32")
    p.assert_both(p.main([("x", a)], lines, [("z", a)]), [x], expected, rtol=2e-6, atol=1e-44)


@pytest.mark.parametrize("fold", ["max", "min", "sum"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_see_nan_and_infinity(rng, fold, axis):
    start, body, function = FOLDS[fold]
    x = p.random_array(rng, (17, 33), "f32")
    x[3, 5], x[7, 20], x[9, 9] = np.nan, np.inf, -np.inf
    expected = function.reduce(x.astype(np.float64), axis=axis).astype(np.float32)
    p.assert_both(reduction_text((17, 33), (axis,), start, body), [x], expected, rtol=1e-5, atol=1e-4)


def test_softmax_of_masked_rows(rng):
    x = p.random_array(rng, (17, 33), "f32")
    x[:, 20:] = -np.inf
    p.assert_both(softmax_text(17, 33), [x], softmax(x), rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 5)], ids=str)
def test_elementwise_of_nothing(shape):
    x = np.zeros(shape, np.float32)
    dims = range(len(shape))
    p.assert_both(binary_text(shape, dims, dims, "f32", "%r = arith.addf %i0, %i1 : f32"), [x, x], x)


@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_matmul_of_nothing(m, k, n):
    x, y = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    p.assert_both(matmul_text(m, k, n), [x, y], x @ y)


@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 0), ((3, 0), 1), ((0, 3), 1)])
def test_sum_of_nothing_is_its_start(shape, axis):
    x = np.zeros(shape, np.float32)
    p.assert_both(reduction_text(shape, (axis,), "7.0", FOLDS["sum"][1]), [x], np.float32(7) + x.sum(axis=axis))


def test_rank_zero(rng):
    a, identity = p.tensor_type([]), "affine_map<() -> ()>"
    lines = f"%e = tensor.empty() : {a}\n"
    lines += p.generic(
        "z", [("x", a, identity), ("y", a, identity)], ("e", a, identity), "", "%r = arith.mulf %i0, %i1 : f32", "f32"
    )
    text = p.main([("x", a), ("y", a)], lines, [("z", a)])
    p.assert_both(text, [np.float32(3).reshape(()), np.float32(-2.5).reshape(())], np.array(-7.5, np.float32))


def test_dynamic_matmul_at_several_sizes(rng):
    modules = p.compiled(matmul_text("?", 33, "?"))
    for m, n in [(1, 1), (2, 17), (17, 2), (7, 100), (100, 33), (64, 64), (0, 5), (5, 0)]:
        x, y = p.random_array(rng, (m, 33), "f32"), p.random_array(rng, (33, n), "f32")
        for module in modules:
            np.testing.assert_allclose(module(x, y), x @ y, rtol=1e-5, atol=1e-4)


def dynamic_text(rank, lines, a="tensor<?x?xf32>"):
    dims = "".join(f"%c{d} = arith.constant {d} : index\n%d{d} = tensor.dim %x, %c{d} : {a}\n" for d in range(rank))
    return dims + lines


def test_dynamic_elementwise_transpose_and_reduction(rng):
    a, identity = "tensor<?x?xf32>", p.affine(2, [0, 1])
    lines = f"%e = tensor.empty(%d0, %d1) : {a}\n%t = tensor.empty(%d1, %d0) : {a}\n"
    lines += "%zero = arith.constant 0.0 : f32\n%se = tensor.empty(%d0) : tensor<?xf32>\n"
    lines += "%s = linalg.fill ins(%zero : f32) outs(%se : tensor<?xf32>) -> tensor<?xf32>\n"
    lines += p.generic("y", [("x", a, identity)], ("e", a, identity), "pp", "%r = arith.addf %i0, %i0 : f32", "f32")
    lines += f"%z = linalg.transpose ins(%y : {a}) outs(%t : {a}) permutation = [1, 0]\n"
    lines += p.generic(
        "w", [("y", a, identity)], ("s", "tensor<?xf32>", p.affine(2, [0])), "pr", FOLDS["sum"][1], "f32"
    )
    text = p.main([("x", a)], dynamic_text(2, lines), [("z", a), ("w", "tensor<?xf32>")])
    modules = p.compiled(text)
    for m, n in [(1, 1), (3, 7), (16, 16), (17, 33), (100, 2), (2, 100), (0, 4), (4, 0)]:
        x = p.random_array(rng, (m, n), "f32")
        for module in modules:
            z, w = module(x)
            np.testing.assert_array_equal(z, 2 * x.T)
            np.testing.assert_allclose(w, 2 * x.sum(1, dtype=np.float64), rtol=1e-5, atol=1e-4)


def test_dynamic_softmax_keeps_rows_apart(rng):
    static = softmax_text(3, 4)
    text = (
        static.replace("3x4", "?x?")
        .replace("tensor<3x", "tensor<?x")
        .replace("tensor.empty() : tensor<?xf32>", "tensor.empty(%d0) : tensor<?xf32>")
    )
    text = text.replace("tensor.empty() : tensor<?x?xf32>", "tensor.empty(%d0, %d1) : tensor<?x?xf32>")
    head, body = text.split("{\n", 1)
    modules = p.compiled(head + "{\n" + dynamic_text(2, body))
    for m, n in [(1, 1), (3, 7), (17, 33), (2, 1000)]:
        x = p.random_array(rng, (m, n), "f32")
        for module in modules:
            np.testing.assert_allclose(module(x), softmax(x), rtol=3e-6, atol=1e-7)


def test_many_workgroups_cover_everything(rng):
    """Large enough to be split among threads."""
    x, y = p.random_array(rng, (257, 509), "f32"), p.random_array(rng, (509,), "f32")
    p.assert_both(binary_text((257, 509), [0, 1], [1], "f32", "%r = arith.mulf %i0, %i1 : f32"), [x, y], x * y)
    x, y = p.random_array(rng, (131, 77), "f32"), p.random_array(rng, (77, 259), "f32")
    p.assert_both(matmul_text(131, 77, 259), [x, y], x @ y, rtol=1e-5, atol=1e-4)
