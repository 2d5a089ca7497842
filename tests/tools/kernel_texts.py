# ruff: noqa: E501 - lines of IR are as long as they are
"""Texts of small linalg programs that tests of several kinds of kernels share."""

from __future__ import annotations

import numpy as np
import programs as p

SIZES = [1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100]


FOLDS = {
    "sum": ("0.0", "%r = arith.addf %i0, %o : f32", np.add),
    "prod": ("1.0", "%r = arith.mulf %i0, %o : f32", np.multiply),
    "max": ("0xFF800000", "%r = arith.maximumf %i0, %o : f32", np.maximum),
    "min": ("0x7F800000", "%r = arith.minimumf %i0, %o : f32", np.minimum),
    "squares": ("0.0", "%q = arith.mulf %i0, %i0 : f32\n%r = arith.addf %q, %o : f32", None),
}


def multiply_add(dtype: str) -> str:
    if dtype == "i1":
        return "%m = arith.andi %i0, %i1 : i1\n%r = arith.ori %o, %m : i1"
    kind = "f" if "f" in dtype else "i"
    return f"%m = arith.mul{kind} %i0, %i1 : {dtype}\n%r = arith.add{kind} %o, %m : {dtype}"


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
