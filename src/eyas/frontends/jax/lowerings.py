"""Rules that JAX lacks for our platform: eigenvalues of symmetric matrices by Jacobi's rotations."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import mlir as jax_mlir

# Jacobi converges quadratically; sizes that models use need fewer.
_SWEEPS = 12


@functools.cache
def register() -> None:
    """Adds the rules. They are for platforms without one of their own, so that no other platform changes."""
    rule = jax_mlir.lower_fun(_eigh, multiple_results=True)
    jax_mlir.register_lowering(jax.lax.linalg.eigh_p, rule)


def _eigh(a: jax.Array, *, lower: bool, sort_eigenvalues: bool, subset_by_index: Any, **_: Any) -> list[jax.Array]:
    if subset_by_index is not None and tuple(subset_by_index) != (0, a.shape[-1]):
        raise NotImplementedError("eigh of a subset of eigenvalues")
    if jnp.issubdtype(a.dtype, jnp.complexfloating):
        raise NotImplementedError("eigh of complex matrices")
    single = functools.partial(_eigh_matrix, lower=lower, sort=sort_eigenvalues)
    for _batch in a.shape[:-2]:
        single = jax.vmap(single)
    return list(single(a))


def _eigh_matrix(a: jax.Array, lower: bool, sort: bool) -> tuple[jax.Array, jax.Array]:
    size = a.shape[-1]
    half = jnp.tril(a) if lower else jnp.triu(a)
    a = half + half.T - jnp.diag(jnp.diagonal(half))
    vectors = jnp.eye(size, dtype=a.dtype)
    pairs = jnp.array([(p, q) for p in range(size) for q in range(p + 1, size)], jnp.int32).reshape(-1, 2)

    def rotate(index: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        a, vectors = state
        p, q = pairs[index % len(pairs), 0], pairs[index % len(pairs), 1]
        off = a[p, q]
        theta = (a[q, q] - a[p, p]) / (2 * jnp.where(off == 0, 1, off))
        t = jnp.where(theta >= 0, 1.0, -1.0).astype(a.dtype) / (jnp.abs(theta) + jnp.sqrt(theta * theta + 1))
        t = jnp.where(off == 0, 0, t)
        cosine = jax.lax.rsqrt(t * t + 1)
        sine = t * cosine
        rows_p, rows_q = a[p], a[q]
        a = a.at[p].set(cosine * rows_p - sine * rows_q).at[q].set(sine * rows_p + cosine * rows_q)
        columns_p, columns_q = a[:, p], a[:, q]
        a = a.at[:, p].set(cosine * columns_p - sine * columns_q).at[:, q].set(sine * columns_p + cosine * columns_q)
        old_p, old_q = vectors[:, p], vectors[:, q]
        vectors = vectors.at[:, p].set(cosine * old_p - sine * old_q).at[:, q].set(sine * old_p + cosine * old_q)
        return a, vectors

    if size > 1:
        a, vectors = jax.lax.fori_loop(0, _SWEEPS * len(pairs), rotate, (a, vectors))
    values = jnp.diagonal(a)
    if sort:
        order = jnp.argsort(values)
        values, vectors = values[order], vectors[:, order]
    return vectors, values
