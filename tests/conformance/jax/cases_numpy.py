"""jax.numpy: elementwise maths, reductions, indexing, shapes, element types."""

# One case a line.
# ruff: noqa: E501

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from tests.conformance.jax.case import Case, complexes, integers, normal

X = normal(4, 8)
Y = normal(4, 8, seed=1)
POSITIVE = np.abs(X) + 0.1
UNIT = np.tanh(X) * 0.99

_UNARY = {
    "exp": X, "log": POSITIVE, "sqrt": POSITIVE, "tanh": X, "sin": X, "cos": X, "tan": UNIT, "arcsin": UNIT,
    "arccos": UNIT, "arctan": X, "sinh": X, "cosh": X, "arcsinh": X, "arccosh": POSITIVE + 1, "arctanh": UNIT,
    "expm1": X, "log1p": POSITIVE, "log2": POSITIVE, "abs": X, "sign": X, "floor": X * 3, "ceil": X * 3, "round": X * 3,
    "square": X, "reciprocal": POSITIVE, "isnan": X / np.float32(np.nan), "isfinite": X, "logical_not": X > 0,
    "invert": integers(-9, 9, 8), "cbrt": X, "exp2": X, "signbit": X, "nan_to_num": np.float32([np.nan, np.inf, -np.inf, 1]),
}  # fmt: skip

_BINARY = {
    "add": (X, Y), "subtract": (X, Y), "multiply": (X, Y), "divide": (X, POSITIVE), "maximum": (X, Y), "minimum": (X, Y),
    "power": (POSITIVE, Y), "arctan2": (X, Y), "hypot": (X, Y), "mod": (X, POSITIVE), "floor_divide": (X, POSITIVE),
    "logaddexp": (X, Y), "greater": (X, Y), "equal": (X, X), "fmod": (X, POSITIVE), "remainder": (integers(-9, 9, 8), integers(1, 5, 8)),
    "bitwise_and": (integers(-99, 99, 8), integers(-9, 9, 8)), "bitwise_xor": (integers(-99, 99, 8), integers(-9, 9, 8)),
    "left_shift": (integers(-9, 9, 8), integers(0, 9, 8)), "right_shift": (integers(-99, 99, 8), integers(0, 5, 8)),
    "nextafter": (X, Y), "copysign": (X, Y), "gcd": (integers(1, 99, 8), integers(1, 99, 8, seed=1)),
}  # fmt: skip

CASES = [
    *(Case(f"numpy/{name}", getattr(jnp, name), (x,)) for name, x in _UNARY.items()),
    *(Case(f"numpy/{name}", getattr(jnp, name), pair) for name, pair in _BINARY.items()),
    Case("numpy/sum", lambda x: x.sum(0), (X,)),
    Case("numpy/mean_keepdims", lambda x: x.mean(-1, keepdims=True), (X,)),
    Case("numpy/prod", lambda x: x.prod(1), (X,)),
    Case("numpy/var_std", lambda x: (x.var(0), x.std(1)), (X,)),
    Case("numpy/max_min", lambda x: (x.max(), x.min(0)), (X,)),
    Case("numpy/argmax", lambda x: (jnp.argmax(x, 1), jnp.argmin(x)), (X,)),
    Case("numpy/any_all", lambda x: ((x > 1).any(0), (x > -3).all()), (X,)),
    Case("numpy/median", lambda x: jnp.median(x, axis=1), (X,)),
    Case("numpy/percentile", lambda x: jnp.percentile(x, 30, axis=0), (X,)),
    Case("numpy/cumsum", lambda x: jnp.cumsum(x, 1), (X,)),
    Case("numpy/cumprod", lambda x: jnp.cumprod(x, 0), (X,)),
    Case("numpy/cumsum_int", lambda x: jnp.cumsum(x), (integers(-9, 9, 300),)),
    Case("numpy/einsum_matmul", lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (normal(3, 4, 5), normal(3, 5, 6))),
    Case(
        "numpy/einsum_attention",
        lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k),
        (normal(2, 5, 3, 8), normal(2, 6, 3, 8)),
    ),
    Case("numpy/einsum_trace", lambda a: jnp.einsum("ii->i", a), (normal(6, 6),)),
    Case("numpy/tensordot", lambda a, b: jnp.tensordot(a, b, axes=2), (normal(3, 4, 5), normal(4, 5, 6))),
    Case("numpy/matmul_vector", lambda a, b: a @ b, (X, normal(8))),
    Case("numpy/outer_kron", lambda a, b: (jnp.outer(a, b), jnp.kron(a, b)), (normal(4), normal(3))),
    Case("numpy/concatenate", lambda a, b: jnp.concatenate([a, b, a], 1), (X, Y)),
    Case("numpy/stack_split", lambda a, b: jnp.split(jnp.stack([a, b]), 2, axis=2), (X, Y)),
    Case("numpy/reshape_transpose", lambda a: a.reshape(2, 2, 8).transpose(2, 0, 1), (X,)),
    Case("numpy/pad_constant", lambda a: jnp.pad(a, ((1, 2), (0, 3)), constant_values=2.0), (X,)),
    Case("numpy/pad_reflect", lambda a: jnp.pad(a, ((1, 2), (2, 3)), mode="reflect"), (X,)),
    Case("numpy/tile_repeat", lambda a: (jnp.tile(a, (2, 1)), jnp.repeat(a, 3, axis=1)), (X,)),
    Case("numpy/roll_flip", lambda a: (jnp.roll(a, 3, 1), jnp.flip(a, 0)), (X,)),
    Case("numpy/where", lambda a, b: jnp.where(a > 0, a, b), (X, Y)),
    Case("numpy/clip", lambda a: jnp.clip(a, -0.5, 0.5), (X,)),
    Case("numpy/tril_triu", lambda a: (jnp.tril(a), jnp.triu(a, 1)), (X,)),
    Case("numpy/diag", lambda a: (jnp.diag(a), jnp.diagonal(a, 1)), (normal(5, 5),)),
    Case("numpy/take", lambda a, i: jnp.take(a, i, axis=1), (X, integers(0, 8, 3))),
    Case("numpy/take_negative_clip", lambda a, i: jnp.take(a, i, axis=1, mode="clip"), (X, integers(-3, 12, 6))),
    Case("numpy/take_fill", lambda a, i: jnp.take(a, i, axis=0, mode="fill"), (X, integers(-3, 12, 6))),
    Case("numpy/take_along_axis", lambda a, i: jnp.take_along_axis(a, i, 1), (X, integers(0, 8, 4, 3))),
    Case("numpy/index_rows_columns", lambda a, i, j: a[i, j], (X, integers(0, 4, 5), integers(0, 8, 5))),
    Case("numpy/index_strided", lambda a: (a[::2, 1:7:3], a[:, ::-1]), (X,)),
    Case("numpy/index_none", lambda a: a[None, 1, :, None], (X,)),
    Case("numpy/searchsorted", lambda a, v: jnp.searchsorted(a, v), (np.sort(normal(20)), normal(7))),
    Case("numpy/bincount", lambda i: jnp.bincount(i, length=8), (integers(0, 8, 50),)),
    Case("numpy/histogram", lambda x: jnp.histogram(x, bins=5)[0], (normal(50),)),
    Case("numpy/unique_size", lambda i: jnp.unique(i, size=8, fill_value=-1), (integers(0, 8, 20),)),
    Case("numpy/nonzero_size", lambda x: jnp.nonzero(x > 0, size=40, fill_value=-1), (X,)),
    Case("numpy/interp", lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0) ** 2), (np.abs(X),)),
    Case("numpy/linspace_meshgrid", lambda x: jnp.meshgrid(jnp.linspace(0, 1, 5) * x, jnp.arange(3)), (np.float32(2),)),
    Case("numpy/polyval", lambda x: jnp.polyval(jnp.array([1.0, 2.0, 3.0]), x), (X,)),
    Case("numpy/convolve", lambda a, b: jnp.convolve(a, b, mode="same"), (normal(20), normal(5))),
    Case("numpy/broadcast", lambda a, b: a[:, None] * b[None], (normal(4), normal(5))),
    Case("numpy/zero_size", lambda a: jnp.concatenate([a[:, :0], a], 1), (X,)),
    Case("numpy/scalar", lambda a: a * 2 + 1, (np.float32(3),)),
    Case(
        "numpy/f16",
        lambda a, b: jax.nn.softmax(a @ b),
        (normal(4, 8, dtype="float16"), normal(8, 5, dtype="float16")),
        5e-3,
        5e-3,
    ),
    Case("numpy/bf16", lambda a: jnp.tanh(a.astype(jnp.bfloat16) * 2).astype(jnp.float32), (X,), 1e-2, 1e-2),
    Case(
        "numpy/bf16_matmul",
        lambda a, b: (a.astype(jnp.bfloat16) @ b.astype(jnp.bfloat16)).astype(jnp.float32),
        (X, normal(8, 4)),
        2e-2,
        2e-2,
    ),
    Case("numpy/f64", lambda a: jnp.exp(jnp.sin(a)).sum(0), (normal(4, 8, dtype="float64"),), 1e-12, 1e-12, x64=True),
    Case(
        "numpy/f64_matmul",
        lambda a, b: a @ b,
        (normal(4, 8, dtype="float64"), normal(8, 4, dtype="float64")),
        1e-12,
        1e-12,
        x64=True,
    ),
    Case("numpy/i64", lambda a: (a * a).sum(1) // 7, (integers(-99999, 99999, 4, 8, dtype="int64"),), x64=True),
    *(
        Case(
            f"numpy/{dtype}_arithmetic",
            lambda a, b: (a + b, a * b, a // (b | 1), jnp.maximum(a, b), a > b, a % (b | 1)),
            (integers(0, 100, 16, dtype=dtype), integers(0, 100, 16, dtype=dtype, seed=1)),
        )
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32")
    ),
    Case("numpy/u8_to_f32", lambda a: a.astype(jnp.float32) / 255, (integers(0, 256, 4, 8, dtype="uint8"),)),
    Case("numpy/f32_to_u8", lambda a: (a * 100).astype(jnp.uint8), (np.abs(UNIT),)),
    Case(
        "numpy/i8_matmul",
        lambda a, b: jax.lax.dot(a, b, preferred_element_type=jnp.int32),
        (integers(-128, 128, 5, 16, dtype="int8"), integers(-128, 128, 16, 7, dtype="int8")),
    ),
    Case("numpy/bool_logic", lambda a, b: (a & b, a | b, a ^ b, ~a), (X > 0, Y > 0)),
    Case("numpy/complex_arithmetic", lambda a, b: (a + b, a * b, a / b, jnp.conj(a)), (complexes(4, 5), complexes(5))),
    Case("numpy/complex_parts", lambda a: (a.real, a.imag, jnp.abs(a), jnp.angle(a)), (complexes(4, 5),)),
    Case(
        "numpy/complex_functions",
        lambda a: (jnp.exp(a), jnp.sqrt(a), jnp.log(a), jnp.tanh(a)),
        (complexes(4, 5),),
        1e-4,
    ),
    Case("numpy/complex_matmul", lambda a, b: a @ b, (complexes(4, 5), complexes(5, 6))),
    Case("numpy/complex_build", lambda a, b: jax.lax.complex(a, b).sum(0), (X, Y)),
]
