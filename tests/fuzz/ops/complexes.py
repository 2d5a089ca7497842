"""Complex numbers. The bound is one of the modulus of the difference; leaves are finite."""

from __future__ import annotations

import numpy as np
from tests.fuzz.ops.base import Op, add, jax_call, jnp, lax, torch, torch_call
from tests.fuzz.ops.reductions import _axes_build, _count
from tests.fuzz.shadow import INFINITY, UNIT, Shadow, rounded

COMPLEX = ("c64",)
_UNIT = UNIT["f32"]


def _made(value, error, units: float = 4.0) -> Shadow:
    with np.errstate(all="ignore"):
        bound = error + units * _UNIT * np.abs(value) + 1e-44
        settled = np.isfinite(value.real) & np.isfinite(value.imag) & (np.abs(value) < 1e37)
        return Shadow(value, np.where(settled, bound, INFINITY), "c64")


def _binary(name, function, error, torch_name, jax_name):
    def build(b):
        first = b.value(COMPLEX)
        second = b.companion(first)
        return ((first, second) if b.boolean() else (second, first)), {}

    def evaluate(args, k):
        with np.errstate(all="ignore"):
            return _made(function(args[0].value, args[1].value), error(*args))

    add(Op(name, build, evaluate, torch_call(torch_name), jax_call(jax_name), weight=2))


def _of_sum(a: Shadow, b: Shadow):
    return a.error + b.error


def _of_product(a: Shadow, b: Shadow):
    return np.abs(a.value) * b.error + np.abs(b.value) * a.error + a.error * b.error


_binary("complex_add", np.add, _of_sum, "add", "add")
_binary("complex_sub", np.subtract, _of_sum, "sub", "subtract")
_binary("complex_mul", np.multiply, _of_product, "mul", "multiply")


def _unary(name, evaluate, torch_, jax_):
    add(Op(name, lambda b: ((b.value(COMPLEX),), {}), lambda args, k: evaluate(args[0]), torch_, jax_, weight=1))


_unary("complex_neg", lambda x: Shadow(-x.value, x.error, "c64"), torch_call("neg"), jax_call("negative"))
_unary(
    "conjugate",
    lambda x: Shadow(np.conj(x.value), x.error, "c64"),
    lambda a, k: torch.conj_physical(a[0]),
    jax_call("conj"),
)
_unary(
    "modulus",
    lambda x: rounded(np.abs(x.value), x.error, "f32", units=4.0, floor=1e-18),
    torch_call("abs"),
    jax_call("abs"),
)
_unary("real_part", lambda x: rounded(x.value.real, x.error, "f32", units=0.0), torch_call("real"), jax_call("real"))
_unary(
    "imaginary_part", lambda x: rounded(x.value.imag, x.error, "f32", units=0.0), torch_call("imag"), jax_call("imag")
)


def _build_parts(b):
    first = b.value(("f32",))
    return (first, b.operand("f32", b.type(first).shape)), {}


def _parts(args, k):
    real, imaginary = args
    value = real.value + 1j * imaginary.value
    known = np.isfinite(real.value) & np.isfinite(imaginary.value)
    return Shadow(value, np.where(known, real.error + imaginary.error, INFINITY), "c64")


add(Op("complex_of_parts", _build_parts, _parts, torch_call("complex"), lambda a, k: lax.complex(*a), weight=2))


def _sum(args, k):
    (x,) = args
    with np.errstate(all="ignore"):
        value = x.value.sum(k["axes"], keepdims=k["keep"])
        size = np.abs(x.value).sum(k["axes"], keepdims=k["keep"])
        error = x.errors().sum(k["axes"], keepdims=k["keep"]) + (_count(x, k["axes"]) + 2) * 2 * _UNIT * size
    return _made(np.asarray(value), error)


add(
    Op(
        "complex_sum",
        _axes_build(COMPLEX),
        _sum,
        lambda a, k: torch.sum(a[0], k["axes"], keepdim=k["keep"]),
        lambda a, k: jnp.sum(a[0], k["axes"], keepdims=k["keep"]),
        weight=1,
    )
)


def _build_product(b):
    first = b.value(COMPLEX, min_rank=2, max_rank=3)
    kind = b.type(first)
    return (first, b.operand("c64", (*kind.shape[:-2], kind.shape[-1], b.choose((1, 3, 8, 17))))), {}


def _product(args, k):
    one, other = args
    with np.errstate(all="ignore"):
        value = np.matmul(one.value, other.value)
        sizes, bounds = [np.abs(x.value) for x in args], [x.errors() for x in args]
        finite = [np.where(np.isfinite(x), x, 1e300) for x in bounds]
        error = np.matmul(sizes[0], finite[1]) + np.matmul(finite[0], sizes[1]) + np.matmul(*finite)
        error = error + (one.shape[-1] + 4) * 2 * _UNIT * np.matmul(*sizes)
    return _made(value, np.where(error > 1e200, INFINITY, error))


add(
    Op(
        "complex_matmul",
        _build_product,
        _product,
        torch_call("matmul"),
        lambda a, k: jnp.matmul(*a, precision="highest"),
        weight=2,
    )
)
