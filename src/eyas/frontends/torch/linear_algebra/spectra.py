"""Orthogonal factors and spectra: QR, eigenvalues, singular values, and what is computed from them.

Values that are found by iteration are computed in f64 and rounded at the end: what converges is then well below the
precision of f32, and squares do not overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

from eyas.frontends.torch.linear_algebra import operators  # noqa: F401
from eyas.frontends.torch.linear_algebra.batches import flat, larger, smaller, unflat

aten = torch.ops.aten
eyas = torch.ops.eyas
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        aten._linalg_eigh.default: eigh,
        aten._linalg_svd.default: svd,
        aten._linalg_eigvals.default: lambda a: eig(a)[0],
        aten.geqrf.default: geqrf,
        aten.linalg_eig.default: eig,
        aten.linalg_eigvals.default: lambda a: eig(a)[0],
        aten.linalg_householder_product.default: householder_product,
        aten.linalg_matrix_exp.default: matrix_exp,
        aten.linalg_pinv.atol_rtol_tensor: pinv,
        aten.linalg_qr.default: qr,
        aten.orgqr.default: householder_product,
        aten.ormqr.default: ormqr,
    }


def geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    """R and the reflectors in one matrix, and their factors."""
    batch, matrices = flat(a)
    packed, taus = eyas.qr(matrices)
    return unflat(packed, batch), taus.reshape([*batch, taus.shape[-1]])


def householder_product(vectors: Tensor, taus: Tensor) -> Tensor:
    batch, matrices = flat(vectors)
    return unflat(eyas.householder_product(matrices, flat(taus.unsqueeze(-1))[1].squeeze(-1)), batch)


def _square_product(vectors: Tensor, taus: Tensor) -> Tensor:
    """All columns of the product of reflectors."""
    rows, columns = vectors.shape[-2:]
    if statically_known_true(columns > rows):
        vectors = vectors[..., :rows]
    elif not statically_known_true(columns == rows):
        vectors = torch.cat([vectors, vectors.new_zeros([*vectors.shape[:-1], rows - columns])], -1)
    return householder_product(vectors, taus)


def ormqr(vectors: Tensor, taus: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    product = _square_product(vectors, taus)
    product = product.mT if transpose else product
    return product @ other if left else other @ product


def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Q and R; Q is empty in mode r, square in mode complete."""
    packed, taus = geqrf(a)
    if mode == "complete":
        return _square_product(packed, taus), packed.triu()
    least = smaller(a)
    r = packed[..., :least, :].triu()
    return a.new_empty([0]) if mode == "r" else householder_product(packed[..., :least], taus), r


def eigh(a: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:  # noqa: N803
    """Eigenvalues, ascending, and vectors in columns; of one triangle."""
    batch, matrices = flat(a if UPLO.upper() == "L" else a.mT)
    values, vectors = eyas.eigh(matrices.to(torch.float64))
    values = values.to(a.dtype).reshape([*batch, values.shape[-1]])
    if not compute_v:
        return values, a.new_empty([0])
    return values, unflat(vectors.to(a.dtype), batch).mT


def eig(a: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, and vectors of length 1 whose largest component is real, as LAPACK has them."""
    if a.is_complex():
        raise NotImplementedError("eigenvalues of complex matrices that are not Hermitian")
    batch, matrices = flat(a)
    real, imaginary, packed = eyas.eig(matrices.to(torch.float64))
    sign = imaginary.unsqueeze(-2)
    # The vectors of a pair are conjugate.
    x = torch.where(sign < 0, packed.roll(1, -1), packed)
    y = torch.where(sign > 0, packed.roll(-1, -1), torch.where(sign < 0, -packed, 0.0))
    squares = x * x + y * y
    length = squares.sum(-2, keepdim=True).sqrt()
    largest = squares.argmax(-2, keepdim=True)
    size = torch.where(sign != 0, squares.amax(-2, keepdim=True).sqrt(), 1.0)
    cosine = torch.where(sign != 0, x.gather(-2, largest), 1.0) / size
    sine = torch.where(sign != 0, y.gather(-2, largest), 0.0) / size
    vectors = [(x * cosine + y * sine) / length, (y * cosine - x * sine) / length]
    value = torch.complex(*(one.to(a.dtype).reshape([*batch, one.shape[-1]]) for one in (real, imaginary)))
    return value, torch.complex(*(unflat(one.to(a.dtype), batch) for one in vectors))


def matrix_exp(a: Tensor) -> Tensor:
    batch, matrices = flat(a)
    return unflat(eyas.matrix_exp(matrices.to(torch.float64)).to(a.dtype), batch)


def svd(
    a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, the singular values, descending, and V'."""
    batch, matrices = flat(a.to(torch.float64))
    u, s, vh = _svd(matrices, full_matrices)
    s = s.to(a.dtype).reshape([*batch, s.shape[-1]])
    if not compute_uv:
        return a.new_empty([0]), s, a.new_empty([0])
    return unflat(u.to(a.dtype), batch), s, unflat(vh.to(a.dtype), batch)


def _svd(a: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = a.shape[-2:]
    if statically_known_true(rows < columns):
        u, s, vh = _svd(a.mT, full)
        return vh.mT, s, u.mT
    if statically_known_true(rows == columns):
        u, s, vh = eyas.svd(a)
        return u.mT, s, vh
    if not statically_known_true(rows >= columns):
        raise NotImplementedError("singular values of matrices of which it is open whether they are wide or tall")
    # Q R first: the rest is square.
    q, r = qr(a, "complete" if full else "reduced")
    u, s, vh = eyas.svd(r[:, :columns])
    turned = q[:, :, :columns] @ u.mT
    return torch.cat([turned, q[:, :, columns:]], -1) if full else turned, s, vh


def pinv(a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False) -> Tensor:
    """V S^-1 U' without the singular values below max(atol, rtol * the largest)."""
    if not a.numel():
        return a.new_empty([*a.shape[:-2], a.shape[-1], a.shape[-2]])
    zero = torch.zeros([], dtype=a.dtype, device=a.device)
    if rtol is None:
        default: Any = larger(a) * torch.finfo(a.dtype).eps
        rtol = torch.where(atol > 0.0, 0.0, default) if atol is not None else zero + default
    assert rtol is not None
    rtol, atol = rtol.to(a.dtype), zero if atol is None else atol.to(a.dtype)
    if hermitian:
        values, vectors = eigh(a)
        sizes, left, right = values.abs(), vectors, vectors.mT
    else:
        left, values, right = svd(a)
        sizes = values
    bound = torch.maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * sizes.amax(-1, keepdim=True))
    kept = torch.where(sizes > bound, 1.0 / values, 0.0)
    return (right.mT * kept.unsqueeze(-2)) @ left.mT
