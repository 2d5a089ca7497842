"""Factors and spectra of real and complex matrices in JAX programs, against NumPy's and JAX's own.

What is unique only up to signs or order is compared by what it is made for.
"""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import eyas  # noqa: E402

KINDS = ["f32", "c64"]
TOLERANCE = 2e-5


def draw(kind: str, *shape: int) -> np.ndarray:
    generator = np.random.default_rng(len(shape) + sum(shape))
    values = generator.standard_normal(shape)
    if kind == "c64":
        return (values + 1j * generator.standard_normal(shape)).astype(np.complex64)
    return values.astype(np.float32)


def adjoint(a):
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def definite(kind: str, *shape: int) -> np.ndarray:
    a = draw(kind, *shape)
    return np.asarray(a @ adjoint(a) + 2 * np.eye(shape[-1], dtype=a.dtype))


def agree(function, *arguments) -> None:
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = jax.tree.leaves(function(*arguments))
    module = eyas.compile(function, arguments, device="local-sync")
    for got, want in zip(jax.tree.leaves(module(*arguments)), wanted, strict=True):
        got, want = np.asarray(got), np.asarray(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE * max(1.0, np.abs(want).max(initial=0)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(6, 4), (3, 5), (1, 1), (2, 3, 5, 3)])
def test_qr_is_lapacks(kind: str, shape: tuple[int, ...]) -> None:
    agree(lambda a: [jnp.linalg.qr(a), jnp.linalg.qr(a, mode="complete")], draw(kind, *shape))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky_reads_one_triangle(kind: str, lower: bool) -> None:
    a = definite(kind, 3, 5, 5)
    other = np.triu(draw(kind, 5, 5), 1)
    a = a + other if lower else a + np.swapaxes(other, -1, -2)
    agree(
        lambda a: jax.lax.linalg.cholesky(a, symmetrize_input=False) if lower else jnp.linalg.cholesky(a, upper=True), a
    )


def test_cholesky_of_what_is_not_definite_is_nan() -> None:
    a = definite("f32", 4, 4)
    got = np.asarray(eyas.compile(jnp.linalg.cholesky, (np.stack([a, -a]),))(np.stack([a, -a])))
    assert np.isfinite(got[0]).all()
    assert np.isnan(np.tril(got[1]) + np.triu(np.full_like(a, np.nan), 1)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_triangular_systems_on_both_sides(kind: str) -> None:
    ways = [
        dict(left_side=left, lower=lower, transpose_a=turned, conjugate_a=conjugate, unit_diagonal=unit)
        for left in (True, False)
        for lower in (True, False)
        for turned, conjugate in ((False, False), (True, False), (True, True))
        for unit in (True, False)
    ]

    def all_of_them(a, tall, wide):
        return [jax.lax.linalg.triangular_solve(a, tall if way["left_side"] else wide, **way) for way in ways]

    a = draw(kind, 2, 4, 4) / 4 + 2 * np.eye(4, dtype=np.float32)
    agree(all_of_them, a.astype(draw(kind, 1).dtype), draw(kind, 2, 4, 3), draw(kind, 2, 3, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_solve_and_inverse(kind: str) -> None:
    agree(
        lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a)),
        definite(kind, 5, 5),
        draw(kind, 5, 2),
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(7, 7), (2, 3, 3), (1, 1), (0, 2, 2)])
def test_eigenvectors_of_hermitian_matrices(kind: str, shape: tuple[int, ...]) -> None:
    a = draw(kind, *shape)
    a = np.asarray(a + adjoint(a))

    def rebuilt(a):
        values, vectors = jnp.linalg.eigh(a)
        return values, (vectors * values[..., None, :]) @ adjoint(vectors), adjoint(vectors) @ vectors

    agree(rebuilt, a)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_eigenvalues_out_of_the_range_of_squares(scale: float) -> None:
    a = draw("c64", 4, 4)
    a = np.asarray(a + adjoint(a)) / 8
    got = np.asarray(eyas.compile(jnp.linalg.eigvalsh, (a,))((a * scale).astype(np.complex64))) / scale
    np.testing.assert_allclose(got, np.linalg.eigvalsh(a), rtol=1e-5, atol=1e-6)


def test_repeated_eigenvalues_have_orthogonal_vectors() -> None:
    turn, _ = np.linalg.qr(draw("c64", 6, 6).astype(np.complex128))
    a = ((turn * np.array([1, 1, 1, 2, 2, -3.0])) @ turn.conj().T).astype(np.complex64)
    values, vectors = eyas.compile(jnp.linalg.eigh, (a,))(a)
    np.testing.assert_allclose(np.asarray(values), [-3, 1, 1, 1, 2, 2], atol=1e-5)
    np.testing.assert_allclose(np.conj(vectors).T @ vectors, np.eye(6), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 5), (3, 3), (4, 1)])
def test_singular_values(kind: str, shape: tuple[int, ...]) -> None:
    least = min(shape[-2:])

    def rebuilt(a):
        u, values, vh = jnp.linalg.svd(a, full_matrices=True)
        thin = jnp.linalg.svd(a, full_matrices=False)
        return (
            values,
            (u[..., :least] * values[..., None, :]) @ vh[..., :least, :],
            adjoint(u) @ u,
            vh @ adjoint(vh),
            (thin[0] * thin[1][..., None, :]) @ thin[2],
            jnp.linalg.svd(a, compute_uv=False),
        )

    agree(rebuilt, draw(kind, *shape))


def test_singular_vectors_of_a_matrix_of_rank_one() -> None:
    a = np.outer(draw("c64", 4), draw("c64", 5)[:4])
    u, values, vh = eyas.compile(lambda a: jnp.linalg.svd(a), (a,))(a)
    np.testing.assert_allclose(np.conj(u).T @ u, np.eye(4), atol=1e-5)
    np.testing.assert_allclose((u * values) @ vh, a, atol=1e-5 * np.abs(a).max())


def test_eigenvectors_of_general_matrices() -> None:
    a = draw("f32", 2, 6, 6)
    values, vectors = (np.asarray(one) for one in eyas.compile(jnp.linalg.eig, (a,))(a))
    np.testing.assert_allclose(a @ vectors, vectors * values[:, None, :], atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-5)
    np.testing.assert_allclose(np.sort_complex(values), np.sort_complex(np.linalg.eigvals(a)), atol=1e-5)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(-2)[:, None], -2)
    np.testing.assert_allclose(largest.imag, 0, atol=1e-6)


def test_the_k_largest_of_approximations_are_exact() -> None:
    x = draw("f32", 7, 40)
    agree(
        lambda x: (
            jax.lax.approx_max_k(x, 5),
            jax.lax.approx_min_k(x, 3, reduction_dimension=0),
            jax.lax.approx_max_k(x, 4, aggregate_to_topk=False)[0].max(-1),
        ),
        x,
    )
