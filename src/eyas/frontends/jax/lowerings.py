"""Rules that JAX lacks for our platform: eigenvalues and singular values, and the k largest of approximations."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import mlir as jax_mlir


@functools.cache
def register() -> None:
    """Adds the rules. They are for platforms without one of their own, so that no other platform changes."""
    rules: dict[Any, Callable[..., Any]] = {
        jax.lax.linalg.eig_p: _eig,
        jax.lax.linalg.eigh_p: _eigh,
        jax.lax.linalg.svd_p: _svd,
        jax.lax.approx_top_k_p: _approx_top_k,
    }
    for primitive, rule in rules.items():
        jax_mlir.register_lowering(primitive, jax_mlir.lower_fun(rule, multiple_results=True))


def _eigh(a: jax.Array, *, lower: bool, subset_by_index: Any, **_: Any) -> list[jax.Array]:
    batch, matrices = _flat(a if lower else _adjoint(a))
    size = a.shape[-1]
    kinds = [_like(matrices, (size,), real=True), _like(matrices, (size, size))]
    values, rows = jax.ffi.ffi_call("eyas.eigh", kinds)(matrices)
    first, stop = subset_by_index or (0, size)
    vectors = jnp.swapaxes(rows, -1, -2)[..., first:stop]
    return [_unflat(vectors, batch), _unflat(values[..., first:stop], batch)]


def _eig(
    a: jax.Array, *, compute_left_eigenvectors: bool, compute_right_eigenvectors: bool, **_: Any
) -> list[jax.Array]:
    """Vectors have length 1 and a largest component that is real, as LAPACK has them."""
    if jnp.iscomplexobj(a):
        raise NotImplementedError("eig of complex matrices")
    if compute_left_eigenvectors:
        raise NotImplementedError("left eigenvectors")
    batch, matrices = _flat(a)
    size = a.shape[-1]
    kinds = [_like(matrices, (size,)), _like(matrices, (size,)), _like(matrices, (size, size))]
    real, imaginary, packed = jax.ffi.ffi_call("eyas.eig", kinds)(matrices)
    results = [_unflat(jax.lax.complex(real, imaginary), batch)]
    if compute_right_eigenvectors:
        sign = imaginary[:, None, :]
        # The vectors of a pair are conjugate; the first column is the real part, the second the imaginary one.
        x = jnp.where(sign < 0, jnp.roll(packed, 1, -1), packed)
        y = jnp.where(sign > 0, jnp.roll(packed, -1, -1), jnp.where(sign < 0, -packed, 0))
        vectors = jax.lax.complex(x, y)
        squares = x * x + y * y
        largest = jnp.take_along_axis(vectors, jnp.argmax(squares, -2, keepdims=True), -2)
        turn = jnp.where(sign == 0, 1, jnp.conj(largest) / jnp.abs(largest))
        results.append(_unflat(vectors * turn / jnp.sqrt(squares.sum(-2, keepdims=True)), batch))
    return results


def _svd(a: jax.Array, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any, **_: Any) -> list[jax.Array]:
    batch, matrices = _flat(a)
    u, values, vh = _singular(matrices, full_matrices)
    if subset_by_index is not None:
        first, stop = subset_by_index
        u, values, vh = u[..., first:stop], values[..., first:stop], vh[:, first:stop]
    return [_unflat(one, batch) for one in ([values, u, vh] if compute_uv else [values])]


def _singular(a: jax.Array, full: bool) -> tuple[jax.Array, jax.Array, jax.Array]:
    """U, the values and V*: of the square factor that QR leaves of a tall matrix."""
    rows, columns = a.shape[-2:]
    if rows < columns:
        u, values, vh = _singular(_adjoint(a), full)
        return _adjoint(vh), values, _adjoint(u)
    if rows > columns:
        q, r = jax.lax.linalg.qr(a, full_matrices=full)
        u, values, vh = _singular(r[:, :columns], full)
        return jnp.concatenate([q[..., :columns] @ u, q[..., columns:]], -1), values, vh
    kinds = [_like(a, (rows, rows)), _like(a, (rows,), real=True), _like(a, (rows, rows))]
    u, values, vh = jax.ffi.ffi_call("eyas.svd", kinds)(a)
    return jnp.swapaxes(u, -1, -2), values, vh


def _approx_top_k(operand: jax.Array, *, reduction_dimension: int, is_max_k: bool, **others: Any) -> list[jax.Array]:
    """The exact ones, as on CPUs and GPUs; as many as are asked for where they are not to be aggregated."""
    parameters = dict(reduction_dimension=reduction_dimension, is_max_k=is_max_k, **others)
    shape = jax.eval_shape(lambda x: jax.lax.approx_top_k_p.bind(x, **parameters), operand)[0].shape
    moved = jnp.moveaxis(operand, reduction_dimension, -1)
    values, places = jax.lax.top_k(moved if is_max_k else -moved, shape[reduction_dimension])
    found = [values if is_max_k else -values, places]
    return [jnp.moveaxis(one, -1, reduction_dimension) for one in found]


def _flat(a: jax.Array) -> tuple[tuple[Any, ...], jax.Array]:
    """The sizes of the batch, and the matrices with one batch dimension."""
    batch = a.shape[:-2]
    return batch, a.reshape((math.prod(batch), *a.shape[-2:]))


def _unflat(a: jax.Array, batch: tuple[Any, ...]) -> jax.Array:
    return a.reshape((*batch, *a.shape[1:]))


def _adjoint(a: jax.Array) -> jax.Array:
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def _like(a: jax.Array, shape: tuple[Any, ...], real: bool = False) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((a.shape[0], *shape), jnp.finfo(a.dtype).dtype if real else a.dtype)
