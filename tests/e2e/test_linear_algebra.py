"""Linear algebra of torch programs against torch: many functions in one program, so that a table is one compilation.

What is unique only up to signs or order is compared by what it is made for: products of factors, orthogonality,
residuals.
"""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import linalg  # noqa: E402

import eyas  # noqa: E402
from eyas.errors import CallError  # noqa: E402

Tensor = torch.Tensor
# A batch of batches, one element, and no matrix at all.
BATCHES = [(2, 1, 4, 4), (1, 1), (0, 3, 3)]
# Taller, and a batch of wider ones.
SHAPES = [(5, 3), (2, 3, 4)]


def compiled(function, *inputs, target=None):
    options = {} if target is None else {"target": target}
    return eyas.compile(function, inputs, device="local-sync", progress=False, **options)


def agree(function, *inputs, target=None) -> None:
    got, want = compiled(function, *inputs, target=target)(*inputs), function(*inputs)
    for name, one in want.items():
        for ours, theirs in zip(_flat(got[name]), _flat(one), strict=True):
            torch.testing.assert_close(
                ours, theirs, rtol=2e-4, atol=2e-4, msg=lambda text, name=name: f"{name}: {text}"
            )


def _flat(value):
    return [value] if isinstance(value, Tensor) else list(value)


def positive(shape) -> Tensor:
    a = torch.randn(shape)
    return a @ a.mT + torch.eye(shape[-1])


def systems(a: Tensor, definite: Tensor, b: Tensor) -> dict[str, object]:
    factor, info = linalg.cholesky_ex(definite)
    packed, pivots = linalg.lu_factor(a)
    ldl, exchanges = linalg.ldl_factor(definite)
    return {
        "cholesky": (factor, info, linalg.cholesky(definite, upper=True)),
        "cholesky_solve": torch.cholesky_solve(b, factor),
        "cholesky_inverse": torch.cholesky_inverse(factor),
        "lu": linalg.lu(a),
        "lu_factor": (packed, pivots),
        "lu_solve": linalg.lu_solve(packed, pivots, b),
        "lu_solve of the adjoint": linalg.lu_solve(packed, pivots, b, adjoint=True),
        "solve": linalg.solve(a, b),
        "inv": (linalg.inv(a), *linalg.inv_ex(a)),
        "det": linalg.det(a),
        "slogdet": linalg.slogdet(a),
        "logdet": torch.logdet(definite),
        "ldl_solve": linalg.ldl_solve(ldl, exchanges, b),
        "triangular": linalg.solve_triangular(factor, b, upper=False),
        "triangular from the right": linalg.solve_triangular(factor.mT, b.mT, upper=True, left=False),
        "power": linalg.matrix_power(a, -2),
    }


@pytest.mark.parametrize("shape", BATCHES, ids=str)
def test_systems(shape: tuple[int, ...]) -> None:
    torch.manual_seed(len(shape) + shape[-1])
    agree(systems, positive(shape) + 0.1 * torch.randn(shape), positive(shape), torch.randn(*shape[:-1], 2))


def spectra(a: Tensor) -> dict[str, object]:
    square = a @ a.mT
    symmetric = square - 0.5
    q, r = linalg.qr(a)
    whole, _ = linalg.qr(a, "complete")
    u, s, vh = linalg.svd(a, full_matrices=False)
    wide_u, _, wide_vh = linalg.svd(a)
    w, v = linalg.eigh(symmetric)
    reflectors, taus = torch.geqrf(a)
    return {
        "qr": (q @ r, q.mT @ q, whole.mT @ whole, r.tril(-1)),
        "geqrf": torch.ormqr(
            reflectors, taus, r if a.shape[-2] <= a.shape[-1] else whole @ whole.mT[..., : r.shape[-2]] @ r
        ),
        "householder_product": linalg.householder_product(reflectors[..., : taus.shape[-1]], taus) @ r,
        "svd": ((u * s.unsqueeze(-2)) @ vh, s, wide_u.mT @ wide_u, wide_vh @ wide_vh.mT),
        "svdvals": linalg.svdvals(a),
        "eigh": (w, (v * w.unsqueeze(-2)) @ v.mT, v.mT @ v),
        "eigvalsh": linalg.eigvalsh(symmetric),
        "eigvals": torch.sort(linalg.eigvals(symmetric).real)[0],
        "pinv": linalg.pinv(a),
        "matrix_rank": (linalg.matrix_rank(a), linalg.matrix_rank(square, hermitian=True)),
        "norms": (linalg.matrix_norm(a, 2), linalg.matrix_norm(a, "nuc"), linalg.norm(a, "fro", (-2, -1))),
        "cond": linalg.cond(symmetric + 3 * torch.eye(a.shape[-2])),
        "matrix_exp": linalg.matrix_exp(symmetric / 4),
    }


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_spectra(shape: tuple[int, ...]) -> None:
    torch.manual_seed(sum(shape))
    agree(spectra, torch.randn(shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_least_squares(shape: tuple[int, ...]) -> None:
    torch.manual_seed(sum(shape))

    def solve(a, b):
        return {driver: linalg.lstsq(a, b, driver=driver) for driver in ("gels", "gelsy", "gelsd", "gelss")}

    agree(solve, torch.randn(shape), torch.randn(*shape[:-1], 2))


def test_no_residuals_of_dependent_columns() -> None:
    a = torch.randn(5, 2)
    module = compiled(lambda a, b: linalg.lstsq(a, b, driver="gelsd").residuals, a, torch.randn(5, 1))
    with pytest.raises(CallError, match="lstsq: there are no residuals"):
        module(torch.ones(5, 2), torch.randn(5, 1))


def test_bytecode() -> None:
    torch.manual_seed(0)
    a = torch.randn(2, 4, 4)

    def few(a, b):
        u, s, vh = linalg.svd(a)
        return {
            "solve": linalg.solve(a, b),
            "cholesky": linalg.cholesky(a @ a.mT + 1),
            "svd": (u * s.unsqueeze(-2)) @ vh,
        }

    agree(few, a, torch.randn(2, 4, 3), target="vmvx")


def test_a_factor_that_is_not_there_fails_the_call() -> None:
    both = compiled(lambda a: (linalg.cholesky_ex(a), linalg.inv_ex(a).info), torch.eye(3))
    (factor, info), singular = both(torch.diag(torch.tensor([1.0, -1.0, 0.0])))
    assert int(info) == 2 and int(singular) == 3
    module = compiled(linalg.cholesky, torch.eye(3))
    with pytest.raises(CallError, match="positive-definite"):
        module(-torch.eye(3))


def complex_systems(a: Tensor, b: Tensor, vector: Tensor) -> dict[str, object]:
    return {
        "solve": linalg.solve(a, b),
        "solve from the right": linalg.solve(a, b.mT, left=False),
        "solve for a vector": linalg.solve(a[0], vector),
        "inv": linalg.inv(a),
        "inv in c128": linalg.inv(a.to(torch.complex128)),
        "singular": linalg.inv_ex(a * 0)[1],
    }


def test_complex_systems():
    torch.manual_seed(0)
    shapes = (2, 4, 4), (2, 4, 3), (4,)
    agree(complex_systems, *(torch.randn(shape, dtype=torch.complex64) for shape in shapes))


def test_gradients_of_eigenvalues():
    """They solve a system of complex numbers."""
    torch.manual_seed(0)

    def function(x: Tensor) -> Tensor:
        values, vectors = linalg.eig(x)
        return (values.abs() ** 2).sum() + (vectors.abs() ** 3).sum()

    x = torch.randn(3, 3, requires_grad=True)
    made = torch.compile(function, backend="eyas", fullgraph=True)(x)
    torch.testing.assert_close(*(torch.autograd.grad(one, x)[0] for one in (made, function(x))), rtol=1e-4, atol=1e-4)
