# ruff: noqa: E501 - lines of IR are as long as they are
"""Contractions: matrix products and their like, with what runs on them."""

from __future__ import annotations

import numpy as np
import programs as p
import pytest
from kernel_texts import SIZES, matmul_text, multiply_add


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


@pytest.mark.parametrize(("rows", "columns", "depth"), [(17, 33, 64), (5, 16, 6), (9, 70, 260), (2, 20, 8)], ids=str)
@pytest.mark.parametrize(
    ("dtype", "extensions"),
    [("bf16", "ff"), ("f16", "ff"), ("i8", "ss"), ("i8", "us"), ("i8", "su"), ("i8", "uu")],
    ids=str,
)
def test_products_of_narrow_types_with_wide_sums(rng, dtype, extensions, rows, columns, depth):
    """Each factor is extended, the sum is wide: what dot-product instructions do. Integers are exact."""
    wide = "f32" if dtype != "i8" else "i32"
    shapes = [(rows, depth), (depth, columns)]
    if dtype == "i8":
        x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
    else:
        x, w = (p.random_array(rng, shape, dtype) for shape in shapes)
    exact = [
        (array.view(np.uint8) if kind == "u" else array).astype(np.float64)
        for array, kind in zip((x, w), extensions, strict=True)
    ]
    expected = (exact[0] @ exact[1]).astype(p.NUMPY[wide])
    ops = {"f": "extf", "s": "extsi", "u": "extui"}
    body = "".join(f"%e{n} = arith.{ops[kind]} %i{n} : {dtype} to {wide}\n" for n, kind in enumerate(extensions)) + (
        f"%m = arith.{'mulf' if wide == 'f32' else 'muli'} %e0, %e1 : {wide}\n"
        f"%r = arith.{'addf' if wide == 'f32' else 'addi'} %o, %m : {wide}\n"
    )
    a, b, c = p.tensor_type(x.shape, dtype), p.tensor_type(w.shape, dtype), p.tensor_type((rows, columns), wide)
    lines = p.filled("init", (rows, columns), wide, p.zero(wide))
    maps = [p.affine(3, one) for one in ([0, 2], [2, 1], [0, 1])]
    lines += p.generic("z", [("x", a, maps[0]), ("w", b, maps[1])], ("init", c, maps[2]), "ppr", body, wide)
    tolerance = 0.0 if wide == "i32" else 2e-7 * depth
    p.assert_both(p.main([("x", a), ("w", b)], lines, [("z", c)]), [x, w], expected, rtol=tolerance, atol=tolerance)
