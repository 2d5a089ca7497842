# ruff: noqa: E501 - lines of IR are as long as they are
"""Small linalg programs against NumPy, with every strategy on and with plain loops only.

Tolerances: integers and copies bit for bit; sums of n terms to a small multiple of n roundings of the element type;
transcendental functions to a few roundings more.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
import programs as p  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError  # noqa: E402

SIZES = [1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100]


@pytest.fixture
def rng(request) -> np.random.Generator:
    """Another seed for each test, the same in each run."""
    return np.random.default_rng(sum(map(ord, request.node.name)))


def multiply_add(dtype: str) -> str:
    if dtype == "i1":
        return "%m = arith.andi %i0, %i1 : i1\n%r = arith.ori %o, %m : i1"
    kind = "f" if "f" in dtype else "i"
    return f"%m = arith.mul{kind} %i0, %i1 : {dtype}\n%r = arith.add{kind} %o, %m : {dtype}"


# Contractions


def matmul_text(m: int | str, k: int | str, n: int | str, dtype: str = "f32") -> str:
    a, b, c = p.tensor_type([m, k], dtype), p.tensor_type([k, n], dtype), p.tensor_type([m, n], dtype)
    lines, sizes = "", []
    for name, source, dim, size in (("m", "x", 0, m), ("n", "y", 1, n)):
        if size == "?":
            lines += f"%{name}_i = arith.constant {dim} : index\n%{name}_d = tensor.dim %{source}, %{name}_i : {a if source == 'x' else b}\n"
            sizes.append(f"%{name}_d")
    lines += p.filled("init", [m, n], dtype, p.zero(dtype), ", ".join(sizes))
    lines += f"%z = linalg.matmul ins(%x, %y : {a}, {b}) outs(%init : {c}) -> {c}\n"
    return p.main([("x", a), ("y", b)], lines, [("z", c)])


@pytest.mark.parametrize("size", SIZES)
def test_matmul_of_odd_sizes(rng, size):
    m, k, n = size, SIZES[(SIZES.index(size) + 4) % len(SIZES)], SIZES[(SIZES.index(size) + 7) % len(SIZES)]
    x, y = p.random_array(rng, (m, k), "f32"), p.random_array(rng, (k, n), "f32")
    p.assert_both(matmul_text(m, k, n), [x, y], x @ y, rtol=1e-5, atol=1e-5 * k**0.5)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i8", "i16", "i32", "i64"])
def test_matmul_of_each_type(rng, dtype):
    x, y = p.random_array(rng, (17, 16), dtype), p.random_array(rng, (16, 33), dtype)
    if dtype.startswith("i"):
        p.assert_both(matmul_text(17, 16, 33, dtype), [x, y], x @ y)
        return
    wide = (x.astype(np.float64) @ y.astype(np.float64)).astype(p.NUMPY[dtype])
    tolerance = 32 * p.EPSILON[dtype]
    p.assert_both(matmul_text(17, 16, 33, dtype), [x, y], wide, rtol=tolerance, atol=tolerance)


def test_large_matmul_uses_register_tiles(rng):
    x, y = p.random_array(rng, (100, 64), "f32"), p.random_array(rng, (64, 100), "f32")
    p.assert_both(matmul_text(100, 64, 100), [x, y], x @ y, rtol=1e-5, atol=1e-4, strategy="contraction")


def test_accumulates_on_the_given_output(rng):
    a = p.tensor_type([7, 7])
    text = p.main(
        [("x", a), ("y", a), ("c", a)], f"%z = linalg.matmul ins(%x, %y : {a}, {a}) outs(%c : {a}) -> {a}", [("z", a)]
    )
    x, y, c = (p.random_array(rng, (7, 7), "f32") for _ in range(3))
    kept = c.copy()
    p.assert_both(text, [x, y, c], c + x @ y, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(c, kept)  # arguments are never written


CONTRACTIONS = {
    # name: (maps of a, b and c over the loops, loops, shape of each loop, einsum)
    "transposed b": ([0, 2], [1, 2], [0, 1], "ppr", (17, 33, 31), "ik,jk->ij"),
    "transposed a": ([2, 0], [2, 1], [0, 1], "ppr", (33, 17, 7), "ki,kj->ij"),
    "transposed result": ([0, 2], [2, 1], [1, 0], "ppr", (15, 33, 16), "ik,kj->ji"),
    "batch": ([0, 1, 3], [0, 3, 2], [0, 1, 2], "pppr", (3, 7, 17, 16), "bik,bkj->bij"),
    "batch, transposed b": ([0, 1, 3], [0, 2, 3], [0, 1, 2], "pppr", (2, 31, 7, 15), "bik,bjk->bij"),
    "heads innermost": ([0, 2, 1, 4], [0, 3, 1, 4], [0, 1, 2, 3], "ppppr", (2, 3, 7, 5, 16), "bihk,bjhk->bhij"),
    "matrix times vector": ([0, 1], [1], [0], "pr", (33, 100), "ik,k->i"),
    "vector times matrix": ([1], [1, 0], [0], "pr", (33, 64), "k,kj->j"),
    "dot": ([0], [0], [], "r", (100,), "k,k->"),
    "outer": ([0], [1], [0, 1], "pp", (17, 33), "i,j->ij"),
    "two sums": ([0, 2, 3], [2, 3, 1], [0, 1], "pprr", (7, 17, 3, 5), "ikl,klj->ij"),
}


@pytest.mark.parametrize("name", CONTRACTIONS)
def test_contraction(rng, name):
    *maps, loops, sizes, einsum = CONTRACTIONS[name]
    shapes = [[sizes[loop] for loop in map_] for map_ in maps]
    types = [p.tensor_type(shape) for shape in shapes]
    texts = [p.affine(len(loops), map_) for map_ in maps]
    lines = p.filled("init", shapes[2], "f32", "0.0") + p.generic(
        "z",
        [("x", types[0], texts[0]), ("y", types[1], texts[1])],
        ("init", types[2], texts[2]),
        loops,
        multiply_add("f32"),
        "f32",
    )
    x, y = p.random_array(rng, shapes[0], "f32"), p.random_array(rng, shapes[1], "f32")
    text = p.main([("x", types[0]), ("y", types[1])], lines, [("z", types[2])])
    p.assert_both(text, [x, y], np.asarray(np.einsum(einsum, x, y), np.float32), rtol=1e-5, atol=1e-4)


def test_epilogue_runs_on_the_product(rng):
    """Bias along either dimension, then a maximum with zero, in one kernel."""
    for bias_map, shape in (([1], [33]), ([0], [17])):
        c, b = p.tensor_type([17, 33]), p.tensor_type(shape)
        body = "%s = arith.addf %i0, %i1 : f32\n%q = arith.constant 0.0 : f32\n%r = arith.maximumf %s, %q : f32"
        inner = matmul_text(17, 7, 33).split("{\n", 1)[1].rsplit("return", 1)[0]
        identity = p.affine(2, [0, 1])
        lines = inner + p.generic(
            "w", [("z", c, identity), ("b", b, p.affine(2, bias_map))], ("init_e", c, identity), "pp", body, "f32"
        )
        arguments = [("x", p.tensor_type([17, 7])), ("y", p.tensor_type([7, 33])), ("b", b)]
        x, y, bias = (
            p.random_array(rng, (17, 7), "f32"),
            p.random_array(rng, (7, 33), "f32"),
            p.random_array(rng, shape, "f32"),
        )
        expected = np.maximum(x @ y + (bias if bias_map == [1] else bias[:, None]), 0)
        module = p.assert_both(p.main(arguments, lines, [("w", c)]), [x, y, bias], expected, rtol=1e-5, atol=1e-5)
        assert len(module.manifest["kernels"]) == 1


# Convolutions and pooling


def conv_nhwc(x, w, stride, dilation):
    """The plain definition, in f64."""
    (n, h, width, _), (kh, kw, _, f) = x.shape, w.shape
    oh, ow = ((size - dilation * (k - 1) - 1) // stride + 1 for size, k in ((h, kh), (width, kw)))
    out = np.zeros((n, oh, ow, f))
    for i, j in itertools.product(range(kh), range(kw)):
        part = x[:, i * dilation : i * dilation + stride * (oh - 1) + 1 : stride]
        part = part[:, :, j * dilation : j * dilation + stride * (ow - 1) + 1 : stride]
        out += np.einsum("nhwc,cf->nhwf", part.astype(np.float64), w[i, j].astype(np.float64))
    return out


@pytest.mark.parametrize(
    ("image", "filter_", "stride", "dilation"),
    [
        ((1, 7, 7, 3), (3, 3, 3, 16), 1, 1),
        ((2, 9, 11, 5), (3, 3, 5, 7), 2, 1),
        ((1, 15, 13, 4), (3, 5, 4, 33), 1, 2),
        ((1, 16, 16, 17), (1, 1, 17, 31), 1, 1),
        ((1, 17, 17, 8), (1, 1, 8, 8), 2, 1),
        ((1, 7, 33, 1), (7, 7, 1, 1), 3, 1),
        ((3, 5, 5, 2), (5, 5, 2, 64), 1, 1),
        ((1, 20, 20, 3), (4, 2, 3, 15), 3, 2),
    ],
)
def test_convolution(rng, image, filter_, stride, dilation):
    x, w = p.random_array(rng, image, "f32"), p.random_array(rng, filter_, "f32")
    expected = conv_nhwc(x, w, stride, dilation).astype(np.float32)
    a, b, c = p.tensor_type(image), p.tensor_type(filter_), p.tensor_type(expected.shape)
    attributes = f"{{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}"
    lines = p.filled("init", expected.shape, "f32", "0.0")
    lines += f"%z = linalg.conv_2d_nhwc_hwcf {attributes} ins(%x, %w : {a}, {b}) outs(%init : {c}) -> {c}\n"
    p.assert_both(p.main([("x", a), ("w", b)], lines, [("z", c)]), [x, w], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("groups", "per_group"), [(2, 5), (4, 3), (3, 16)])
def test_grouped_convolution(rng, groups, per_group):
    """Loops n, h, w, g, f and the sums kh, kw, c."""
    n, h, w, kh, kw, c = 2, 6, 9, 3, 3, 4
    image, filter_, out = (n, h + 2, w + 2, groups, c), (groups, kh, kw, c, per_group), (n, h, w, groups, per_group)
    maps = [p.affine(8, [0, "b + f", "c + g", 3, 7]), p.affine(8, [3, 5, 6, 7, 4]), p.affine(8, [0, 1, 2, 3, 4])]
    a, b, r = (p.tensor_type(shape) for shape in (image, filter_, out))
    lines = p.filled("init", out, "f32", "0.0")
    lines += p.generic(
        "z", [("x", a, maps[0]), ("w", b, maps[1])], ("init", r, maps[2]), "ppppprrr", multiply_add("f32"), "f32"
    )
    x, k = p.random_array(rng, image, "f32"), p.random_array(rng, filter_, "f32")
    parts = [conv_nhwc(x[:, :, :, g], k[g], 1, 1) for g in range(groups)]
    expected = np.stack(parts, axis=3).astype(np.float32)
    p.assert_both(p.main([("x", a), ("w", b)], lines, [("z", r)]), [x, k], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("channels", "stride"), [(1, 1), (7, 1), (16, 2), (33, 1), (64, 2)])
def test_depthwise_convolution(rng, channels, stride):
    image, filter_ = (2, 11, 9, channels), (3, 3, channels)
    x, w = p.random_array(rng, image, "f32"), p.random_array(rng, filter_, "f32")
    planes = [conv_nhwc(x[..., c : c + 1], w[:, :, c][..., None, None], stride, 1) for c in range(channels)]
    expected = np.concatenate(planes, axis=3).astype(np.float32)
    a, b, c = p.tensor_type(image), p.tensor_type(filter_), p.tensor_type(expected.shape)
    lines = p.filled("init", expected.shape, "f32", "0.0")
    lines += (
        f"%z = linalg.depthwise_conv_2d_nhwc_hwc {{strides = dense<{stride}> : tensor<2xi64>,"
        f" dilations = dense<1> : tensor<2xi64>}} ins(%x, %w : {a}, {b}) outs(%init : {c}) -> {c}\n"
    )
    p.assert_both(p.main([("x", a), ("w", b)], lines, [("z", c)]), [x, w], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "start"), [("max", "0xFF800000"), ("min", "0x7F800000"), ("sum", "0.0")])
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1), (3, 2)])
def test_pooling(rng, kind, start, window, stride):
    image = (2, 9, 7, 17)
    x = p.random_array(rng, image, "f32")
    oh, ow = ((size - window) // stride + 1 for size in image[1:3])
    parts = np.stack([
        x[:, i : i + stride * (oh - 1) + 1 : stride, j : j + stride * (ow - 1) + 1 : stride]
        for i in range(window) for j in range(window)
    ])  # fmt: skip
    expected = getattr(parts, kind)(axis=0)
    a, c = p.tensor_type(image), p.tensor_type(expected.shape)
    lines = p.filled("init", expected.shape, "f32", start)
    lines += f"%window = tensor.empty() : tensor<{window}x{window}xf32>\n"
    lines += (
        f"%z = linalg.pooling_nhwc_{kind} {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}"
        f" ins(%x, %window : {a}, tensor<{window}x{window}xf32>) outs(%init : {c}) -> {c}\n"
    )
    tolerance = 1e-5 if kind == "sum" else 0.0
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected, rtol=tolerance, atol=tolerance)


# Reductions

FOLDS = {
    "sum": ("0.0", "%r = arith.addf %i0, %o : f32", np.add),
    "prod": ("1.0", "%r = arith.mulf %i0, %o : f32", np.multiply),
    "max": ("0xFF800000", "%r = arith.maximumf %i0, %o : f32", np.maximum),
    "min": ("0x7F800000", "%r = arith.minimumf %i0, %o : f32", np.minimum),
    "squares": ("0.0", "%q = arith.mulf %i0, %i0 : f32\n%r = arith.addf %q, %o : f32", None),
}


def reduction_text(shape, axes, start, body, dtype="f32"):
    kept = [loop for loop in range(len(shape)) if loop not in axes]
    a, c = p.tensor_type(shape, dtype), p.tensor_type([shape[loop] for loop in kept], dtype)
    loops = "".join("r" if loop in axes else "p" for loop in range(len(shape)))
    lines = p.filled("init", [shape[loop] for loop in kept], dtype, start)
    lines += p.generic(
        "z",
        [("x", a, p.affine(len(shape), range(len(shape))))],
        ("init", c, p.affine(len(shape), kept)),
        loops,
        body,
        dtype,
    )
    return p.main([("x", a)], lines, [("z", c)])


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


def softmax_text(rows, columns, leading=()):
    shape = [*leading, rows, columns]
    rank = len(shape)
    a, s = p.tensor_type(shape), p.tensor_type(shape[:-1])
    whole, row = p.affine(rank, range(rank)), p.affine(rank, range(rank - 1))
    loops, folds = "p" * rank, "p" * (rank - 1) + "r"
    lines = p.filled("low", shape[:-1], "f32", "0xFF800000") + p.filled("zeros", shape[:-1], "f32", "0.0")
    lines += f"%e = tensor.empty() : {a}\n"
    lines += p.generic("max", [("x", a, whole)], ("low", s, row), folds, "%r = arith.maximumf %i0, %o : f32", "f32")
    body = "%d = arith.subf %i0, %i1 : f32\n%r = math.exp %d : f32"
    lines += p.generic("exp", [("x", a, whole), ("max", s, row)], ("e", a, whole), loops, body, "f32")
    lines += p.generic("sum", [("exp", a, whole)], ("zeros", s, row), folds, "%r = arith.addf %i0, %o : f32", "f32")
    body = "%r = arith.divf %i0, %i1 : f32"
    lines += p.generic("z", [("exp", a, whole), ("sum", s, row)], ("e", a, whole), loops, body, "f32")
    return p.main([("x", a)], lines, [("z", a)])


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("columns", [1, 3, 16, 17, 33, 100, 1000])
def test_softmax(rng, columns):
    x = 3 * p.random_array(rng, (17, columns), "f32")
    module = p.assert_both(softmax_text(17, columns), [x], softmax(x), rtol=3e-6, atol=1e-7)
    assert len(module.manifest["kernels"]) == 1


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


# Elementwise, broadcasting, layout


def binary_text(shape, dims_x, dims_y, dtype, body):
    rank = len(shape)
    a, b, c = (p.tensor_type([shape[d] for d in dims], dtype) for dims in (dims_x, dims_y, range(rank)))
    lines = f"%e = tensor.empty() : {c}\n" + p.generic(
        "z",
        [("x", a, p.affine(rank, dims_x)), ("y", b, p.affine(rank, dims_y))],
        ("e", c, p.affine(rank, range(rank))),
        "p" * rank,
        body,
        dtype,
    )
    return p.main([("x", a), ("y", b)], lines, [("z", c)])


@pytest.mark.parametrize("kept", [k for n in range(4) for k in itertools.combinations(range(3), n)], ids=str)
@pytest.mark.parametrize("shape", [(3, 7, 17), (2, 16, 5)], ids=str)
def test_broadcast_in_every_position(rng, kept, shape):
    """The second operand has only the dimensions `kept`."""
    x, y = p.random_array(rng, shape, "f32"), p.random_array(rng, [shape[d] for d in kept], "f32")
    expanded = y.reshape([size if d in kept else 1 for d, size in enumerate(shape)])
    text = binary_text(shape, range(3), kept, "f32", "%r = arith.subf %i0, %i1 : f32")
    p.assert_both(text, [x, y], x - expanded)


def test_both_operands_broadcast(rng):
    x, y = p.random_array(rng, (17,), "f32"), p.random_array(rng, (33,), "f32")
    text = binary_text((17, 33), [0], [1], "f32", "%r = arith.divf %i0, %i1 : f32")
    p.assert_both(text, [x, y], x[:, None] / y, rtol=2e-7)


@pytest.mark.parametrize("size", [*SIZES, 0, 4096, 100_003])
def test_elementwise_of_odd_sizes(rng, size):
    x, y = p.random_array(rng, (size,), "f32"), p.random_array(rng, (size,), "f32")
    p.assert_both(binary_text((size,), [0], [0], "f32", "%r = arith.addf %i0, %i1 : f32"), [x, y], x + y)


INTEGER_OPS = {
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "andi": np.bitwise_and,
    "xori": np.bitwise_xor,
}


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("op", INTEGER_OPS)
def test_integers_wrap(rng, dtype, op):
    limits = np.iinfo(p.NUMPY[dtype])
    x, y = (rng.integers(limits.min, limits.max, 33, dtype=p.NUMPY[dtype], endpoint=True) for _ in "xy")
    x[0], y[0] = limits.min, limits.max
    p.assert_both(
        binary_text((33,), [0], [0], dtype, f"%r = arith.{op} %i0, %i1 : {dtype}"), [x, y], INTEGER_OPS[op](x, y)
    )


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize(("op", "function"), [("addf", np.add), ("mulf", np.multiply), ("divf", np.divide)])
def test_floats_round_once(rng, dtype, op, function):
    x, y = p.random_array(rng, (100,), dtype), p.random_array(rng, (100,), dtype)
    text = binary_text((100,), [0], [0], dtype, f"%r = arith.{op} %i0, %i1 : {dtype}")
    p.assert_both(text, [x, y], function(x, y))


@pytest.mark.parametrize(
    ("op", "function"), [("andi", np.logical_and), ("ori", np.logical_or), ("xori", np.logical_xor)]
)
def test_booleans(rng, op, function):
    x, y = p.random_array(rng, (3, 33), "i1"), p.random_array(rng, (3, 33), "i1")
    p.assert_both(binary_text((3, 33), [0, 1], [0, 1], "i1", f"%r = arith.{op} %i0, %i1 : i1"), [x, y], function(x, y))


def test_comparison_and_select(rng):
    a, m = p.tensor_type([5, 33]), p.tensor_type([5, 33], "i1")
    identity = p.affine(2, [0, 1])
    lines = f"%em = tensor.empty() : {m}\n%e = tensor.empty() : {a}\n"
    lines += p.generic(
        "less",
        [("x", a, identity), ("y", a, identity)],
        ("em", m, identity),
        "pp",
        "%r = arith.cmpf olt, %i0, %i1 : f32",
        "i1",
    )
    body = "%r = arith.select %i0, %i1, %i2 : f32"
    lines += p.generic(
        "z", [("less", m, identity), ("x", a, identity), ("y", a, identity)], ("e", a, identity), "pp", body, "f32"
    )
    x, y = p.random_array(rng, (5, 33), "f32"), p.random_array(rng, (5, 33), "f32")
    p.assert_both(p.main([("x", a), ("y", a)], lines, [("z", a), ("less", m)]), [x, y], [np.minimum(x, y), x < y])


CASTS = [
    ("f32", "f64", "arith.extf"), ("f64", "f32", "arith.truncf"), ("f32", "f16", "arith.truncf"), ("f16", "f32", "arith.extf"),
    ("f32", "bf16", "arith.truncf"), ("bf16", "f32", "arith.extf"), ("i8", "i64", "arith.extsi"), ("i64", "i16", "arith.trunci"),
    ("i32", "f32", "arith.sitofp"), ("f32", "i32", "arith.fptosi"), ("i1", "i32", "arith.extui"), ("i1", "f32", "arith.uitofp"),
    ("i16", "f16", "arith.sitofp"), ("f64", "i64", "arith.fptosi"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "op"), CASTS)
def test_casts(rng, source, target, op):
    a, c = p.tensor_type([3, 17], source), p.tensor_type([3, 17], target)
    identity = p.affine(2, [0, 1])
    lines = f"%e = tensor.empty() : {c}\n"
    lines += p.generic(
        "z", [("x", a, identity)], ("e", c, identity), "pp", f"%r = {op} %i0 : {source} to {target}", target
    )
    x = p.random_array(rng, (3, 17), source)
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], x.astype(p.NUMPY[target]))


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_transposes(rng, rank):
    """Every permutation of rank 2 and 3, the telling ones above."""
    shape = (7, 17, 3, 5, 2)[:rank]
    every = list(itertools.permutations(range(rank)))[1:]
    for permutation in every if rank < 4 else every[:: len(every) // 7]:
        x = p.random_array(rng, shape, "f32")
        expected = np.ascontiguousarray(x.transpose(permutation))
        a, c = p.tensor_type(shape), p.tensor_type(expected.shape)
        lines = f"%e = tensor.empty() : {c}\n%z = linalg.transpose ins(%x : {a}) outs(%e : {c}) permutation = {list(permutation)}\n"
        p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected)


@pytest.mark.parametrize("shape", [(16, 16), (48, 33), (37, 64), (100, 19), (3, 20, 50)], ids=str)
def test_transpose_in_registers(rng, shape):
    """Squares of lanes, and what is left at both edges; a second operand is read as it lies."""
    x, turned = p.random_array(rng, shape, "f32"), (*shape[:-2], shape[-1], shape[-2])
    y = p.random_array(rng, turned, "f32")
    a, c = p.tensor_type(shape, "f32"), p.tensor_type(turned, "f32")
    dims = [f"d{i}" for i in range(len(shape))]
    read = ", ".join([*dims[:-2], dims[-1], dims[-2]])
    identity, swapped = f"affine_map<({', '.join(dims)}) -> ({', '.join(dims)})>", f"affine_map<({', '.join(dims)}) -> ({read})>"
    kinds = ", ".join(['"parallel"'] * len(shape))
    lines = f"""%e = tensor.empty() : {c}
%z = linalg.generic {{indexing_maps = [{swapped}, {identity}, {identity}], iterator_types = [{kinds}]}} ins(%x, %y : {a}, {c}) outs(%e : {c}) {{
^bb0(%i: f32, %j: f32, %o: f32):
  %r = arith.subf %i, %j : f32
  linalg.yield %r : f32
}} -> {c}
"""
    p.assert_both(p.main([("x", a), ("y", c)], lines, [("z", c)]), [x, y], np.swapaxes(x, -1, -2) - y)


@pytest.mark.parametrize("dtype", ["f64", "f16", "i8", "i64", "i1"])
def test_transpose_of_each_type(rng, dtype):
    x = p.random_array(rng, (33, 17), dtype)
    a, c = p.tensor_type([33, 17], dtype), p.tensor_type([17, 33], dtype)
    lines = f"%e = tensor.empty() : {c}\n%z = linalg.transpose ins(%x : {a}) outs(%e : {c}) permutation = [1, 0]\n"
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], np.ascontiguousarray(x.T))


@pytest.mark.parametrize(("low", "high"), [((0, 1), (2, 0)), ((3, 3), (3, 3)), ((0, 0), (0, 5)), ((1, 0), (0, 0))])
def test_pad(rng, low, high):
    x = p.random_array(rng, (5, 17), "f32")
    expected = np.pad(x, list(zip(low, high, strict=True)), constant_values=-2.5)
    a, c = p.tensor_type([5, 17]), p.tensor_type(expected.shape)
    lines = f"""%v = arith.constant -2.5 : f32
      %z = tensor.pad %x low[{low[0]}, {low[1]}] high[{high[0]}, {high[1]}] {{
      ^bb0(%i: index, %j: index): tensor.yield %v : f32 }} : {a} to {c}\n"""
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected)


@pytest.mark.parametrize(
    ("offsets", "sizes", "strides"), [((1, 2), (3, 9), (1, 1)), ((0, 0), (3, 6), (2, 3)), ((4, 16), (1, 1), (1, 1))]
)
def test_slice(rng, offsets, sizes, strides):
    x = p.random_array(rng, (5, 17), "f32")
    ends = [o + (n - 1) * s + 1 for o, n, s in zip(offsets, sizes, strides, strict=True)]
    expected = np.ascontiguousarray(x[offsets[0] : ends[0] : strides[0], offsets[1] : ends[1] : strides[1]])
    a, c = p.tensor_type([5, 17]), p.tensor_type(sizes)
    lines = f"%z = tensor.extract_slice %x{list(offsets)} {list(sizes)} {list(strides)} : {a} to {c}\n"
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected)


@pytest.mark.parametrize(
    ("offsets", "sizes"), [((1, 2), (3, 9)), ((0, 0), (5, 1)), ((4, 0), (1, 17)), ((0, 0), (5, 17))]
)
def test_insert(rng, offsets, sizes):
    x, y = p.random_array(rng, (5, 17), "f32"), p.random_array(rng, sizes, "f32")
    expected = x.copy()
    expected[offsets[0] : offsets[0] + sizes[0], offsets[1] : offsets[1] + sizes[1]] = y
    a, b = p.tensor_type([5, 17]), p.tensor_type(sizes)
    lines = f"%z = tensor.insert_slice %y into %x{list(offsets)} {list(sizes)} [1, 1] : {b} into {a}\n"
    p.assert_both(p.main([("x", a), ("y", b)], lines, [("z", a)]), [x, y], expected)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("parts", [(1, 2), (3, 1, 4)], ids=str)
def test_concat(rng, dim, parts):
    shapes = [tuple(n if d == dim else size for d, size in enumerate((3, 5, 7))) for n in parts]
    arrays = [p.random_array(rng, shape, "f32") for shape in shapes]
    types = [p.tensor_type(shape) for shape in shapes]
    expected = np.concatenate(arrays, axis=dim)
    names = [f"x{n}" for n in range(len(parts))]
    c = p.tensor_type(expected.shape)
    lines = f"%z = tensor.concat dim({dim}) {', '.join('%' + n for n in names)} : ({', '.join(types)}) -> {c}\n"
    p.assert_both(p.main(list(zip(names, types, strict=True)), lines, [("z", c)]), arrays, expected)


def test_elementwise_of_a_padded_slice(rng):
    """Guards and windows inside a fused nest."""
    a, b, c = p.tensor_type([6, 17]), p.tensor_type([4, 15]), p.tensor_type([6, 18])
    identity = p.affine(2, [0, 1])
    lines = f"""%v = arith.constant 1.5 : f32
      %s = tensor.extract_slice %x[1, 2] [4, 15] [1, 1] : {a} to {b}
      %q = tensor.pad %s low[2, 0] high[0, 3] {{
      ^bb0(%i: index, %j: index): tensor.yield %v : f32 }} : {b} to {c}
      %e = tensor.empty() : {c}\n"""
    lines += p.generic("z", [("q", c, identity)], ("e", c, identity), "pp", "%r = arith.mulf %i0, %i0 : f32", "f32")
    x = p.random_array(rng, (6, 17), "f32")
    expected = np.pad(x[1:5, 2:], [(2, 0), (0, 3)], constant_values=1.5) ** 2
    p.assert_both(p.main([("x", a)], lines, [("z", c)]), [x], expected)


# Special values


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


# Empty tensors, scalars, dynamic sizes


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
    modules = [eyas.compile(matmul_text("?", 33, "?"), disable=disable) for disable in ((), p.LOOPS)]
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
    modules = [eyas.compile(text, disable=disable) for disable in ((), p.LOOPS)]
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
    modules = [eyas.compile(head + "{\n" + dynamic_text(2, body), disable=disable) for disable in ((), p.LOOPS)]
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


# Reads at computed positions


def gather_text(rows: int | str, columns: int, count: int, checked: bool, index: str = "i64") -> str:
    """Row %i[n] of a table, with the check that importers add when `checked`."""
    t, i, c = p.tensor_type([rows, columns]), p.tensor_type([count], index), p.tensor_type([count, columns])
    bound = "%c0 = arith.constant 0 : index\n%bound = tensor.dim %t, %c0 : " + t
    check = (
        f"%size = arith.index_cast %bound : index to {index}\n%ok = arith.cmpi ult, %i0, %size : {index}\n"
        'cf.assert %ok, "out of range"\n'
    )
    body = (check if checked else "") + (
        f"%row = arith.index_cast %i0 : {index} to index\n%column = linalg.index 1 : index\n"
        f"%r = tensor.extract %t[%row, %column] : {t}"
    )
    lines = bound + f"\n%e = tensor.empty() : {c}\n"
    lines += p.generic("z", [("i", i, p.affine(2, [0]))], ("e", c, p.affine(2, [0, 1])), "pp", body, "f32")
    return p.main([("t", t), ("i", i)], lines, [("z", c)])


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (7, 3), (17, 16), (5, 33)])
@pytest.mark.parametrize("index", ["i32", "i64"])
def test_gather(rng, count, columns, index):
    table, rows = p.random_array(rng, (11, columns), "f32"), rng.integers(0, 11, count).astype(p.NUMPY[index])
    for checked in (False, True):
        p.assert_both(gather_text(11, columns, count, checked, index), [table, rows], table[rows])


def test_dynamic_gather(rng):
    module = eyas.compile(gather_text("?", 5, 3, True))
    for rows in (1, 4, 100):
        table, at = p.random_array(rng, (rows, 5), "f32"), rng.integers(0, rows, 3)
        np.testing.assert_array_equal(module(table, at), table[at])


BAD_ROWS = [11, -1, 1 << 40, -(1 << 62)]


@pytest.mark.parametrize("row", BAD_ROWS)
@pytest.mark.parametrize("columns", [1, 3, 33])
def test_gather_out_of_range_fails_the_call(rng, row, columns):
    table = p.random_array(rng, (11, columns), "f32")
    module = eyas.compile(gather_text(11, columns, 4, True))
    with pytest.raises(CallError):
        module(table, np.array([0, 1, row, 2]))
    good = np.array([3, 1, 10, 0])
    np.testing.assert_array_equal(module(table, good), table[good])  # the module still works


@pytest.mark.parametrize("row", BAD_ROWS)
def test_unchecked_gather_stays_inside_the_table(rng, row):
    table = p.random_array(rng, (11, 33), "f32")
    given = eyas.compile(gather_text(11, 33, 2, False))(table, np.array([row, 5]))
    assert (given[0] == table[0 if row < 0 else 10]).all() and (given[1] == table[5]).all()


def test_plain_loops_stay_inside_the_table():
    """In a process of its own: a read outside may end it."""
    text = gather_text(11, 33, 2, False)
    for row in BAD_ROWS:
        program = (
            f"import numpy as np, eyas\nmodule = eyas.compile({text!r}, disable={p.LOOPS!r})\n"
            "table = np.arange(363, dtype=np.float32).reshape(11, 33)\n"
            f"given = module(table, np.array([{row}, 5]))\n"
            "assert np.isin(given, table).all() and (given[1] == table[5]).all()"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (row, done.returncode, done.stderr[-500:])


def mismatched_add() -> str:
    a, identity = "tensor<?xf32>", p.affine(1, [0])
    lines = f"%c0 = arith.constant 0 : index\n%d = tensor.dim %x, %c0 : {a}\n%e = tensor.empty(%d) : {a}\n"
    lines += p.generic(
        "z", [("x", a, identity), ("y", a, identity)], ("e", a, identity), "p", "%r = arith.addf %i0, %i1 : f32", "f32"
    )
    return p.main([("x", a), ("y", a)], lines, [("z", a)])


def test_sizes_that_disagree_never_read_outside():
    """Two dynamic sizes that the program takes to be equal: the call fails, in a process of its own in case it crashes."""
    program = (
        f"import numpy as np, eyas\nmodule = eyas.compile({mismatched_add()!r})\n"
        "try:\n    module(np.ones(1 << 22, np.float32), np.ones(3, np.float32))\n"
        "except eyas.EyasError as error:\n    print('refused:', error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("refused:"), (
        done.returncode,
        done.stdout,
        done.stderr[-500:],
    )
