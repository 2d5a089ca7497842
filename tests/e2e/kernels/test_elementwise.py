# ruff: noqa: E501 - lines of IR are as long as they are
"""Elementwise ops of each type, broadcasting, casts."""

from __future__ import annotations

import itertools

import numpy as np
import programs as p
import pytest
from kernel_texts import SIZES, binary_text


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
