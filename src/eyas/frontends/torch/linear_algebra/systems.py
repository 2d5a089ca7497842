"""Systems of linear equations: Cholesky, LU and LDL factors, triangular solves, inverses and determinants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from eyas.frontends.torch.linear_algebra import operators  # noqa: F401
from eyas.frontends.torch.linear_algebra.batches import common_batch, eye, flat, smaller, unflat

aten = torch.ops.aten
eyas = torch.ops.eyas
Tensor = torch.Tensor


def decompositions() -> dict[Any, Callable[..., Any]]:
    return {
        aten._cholesky_solve_helper.default: lambda b, a, upper: cholesky_solve(b, a, upper),
        aten._linalg_det.default: _det,
        aten._linalg_slogdet.default: _slogdet,
        aten._linalg_solve_ex.default: solve_ex,
        aten.cholesky.default: cholesky,
        aten.cholesky_inverse.default: cholesky_inverse,
        aten.cholesky_solve.default: cholesky_solve,
        aten.linalg_cholesky_ex.default: cholesky_ex,
        aten.linalg_det.default: lambda a: _det(a)[0],
        aten.linalg_inv_ex.default: inv_ex,
        aten.linalg_ldl_factor_ex.default: ldl_factor_ex,
        aten.linalg_ldl_solve.default: ldl_solve,
        aten.linalg_lu.default: lu,
        aten.linalg_lu_factor_ex.default: lu_factor_ex,
        aten.linalg_lu_solve.default: lu_solve,
        aten.linalg_slogdet.default: lambda a: _slogdet(a)[:2],
        aten.linalg_solve_triangular.default: solve_triangular,
        aten.logdet.default: logdet,
        aten.lu_unpack.default: lu_unpack,
        aten.triangular_solve.default: triangular_solve,
    }


def failure(api_name: str, is_matrix: bool) -> str:
    """What is said where torch raises: a factorisation could not be completed."""
    what = "positive-definite" if "cholesky" in api_name else "invertible"
    which = "the input is" if is_matrix else "a matrix of the batch is"
    return f"{api_name}: the factorization could not be completed because {which} not {what}"


def _checked(info: Tensor, api_name: str, check: bool) -> None:
    if check:
        eyas.check((info == 0).all(), failure(api_name, is_matrix=info.dim() == 0))


def cholesky_ex(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    batch, matrices = flat(a if upper else a.mT)
    factors, info = eyas.cholesky(matrices)
    info = info.reshape(batch)
    _checked(info, "linalg.cholesky_ex", check_errors)
    factors = unflat(factors, batch)
    return factors if upper else factors.mT.contiguous(), info


def cholesky(a: Tensor, upper: bool = False) -> Tensor:
    factors, info = cholesky_ex(a, upper=upper)
    _checked(info, "cholesky", True)
    return factors


def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    """X with A X = B, where A is L L' or U'U."""
    first = factor.mT if upper else factor
    half = solve_triangular(first, b, upper=False)
    return solve_triangular(first.mT, half, upper=True)


def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    return cholesky_solve(eye(factor), factor, upper)


def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with A X = B, or X A = B."""
    if not left:
        return solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    a, b, batch = common_batch(a, b)
    return unflat(eyas.solve_triangular(a, b, upper, unitriangular), batch)


def triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    sized = a.expand([*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *a.shape[-2:]])
    if transpose:
        a, upper = a.mT, not upper
    return solve_triangular(a, b, upper=upper, unitriangular=unitriangular), sized.clone()


def lu_factor_ex(a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    if not pivot:
        raise NotImplementedError("LU factors without pivoting; torch has them on GPUs only")
    batch, matrices = flat(a)
    packed, pivots, info = eyas.lu(matrices)
    info = info.reshape(batch)
    _checked(info, "linalg.lu_factor_ex", check_errors)
    return unflat(packed, batch), pivots.reshape([*batch, pivots.shape[-1]]), info


def lu_unpack(
    packed: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U; those that are not wanted are empty."""
    rows, least = packed.shape[-2], smaller(packed)
    p = lower = upper = packed.new_empty([0])
    if unpack_pivots:
        order = _order(pivots, rows)
        p = (order.unsqueeze(-2) == torch.arange(rows, device=packed.device).unsqueeze(-1)).to(packed.dtype)
    if unpack_data:
        lower = packed[..., :least].tril(-1) + torch.eye(rows, least, dtype=packed.dtype, device=packed.device)
        upper = packed[..., :least, :].triu()
    return p, lower, upper


def lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    packed, pivots, _ = lu_factor_ex(a, pivot=pivot)
    return lu_unpack(packed, pivots)


def lu_solve(packed: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with A X = B from the factors of A; A' for the adjoint, X A = B from the right."""
    if not left:
        return lu_solve(packed, pivots, b.mT, adjoint=not adjoint).mT
    order = _order(pivots, packed.shape[-1])
    batch = torch.broadcast_shapes(packed.shape[:-2], b.shape[:-2])
    if adjoint:
        b = solve_triangular(packed.mT, b, upper=False)
        b = solve_triangular(packed.mT, b, upper=True, unitriangular=True)
        return _take_rows(b, order.argsort(-1), batch)
    b = _take_rows(b, order, batch)
    b = solve_triangular(packed, b, upper=False, unitriangular=True)
    return solve_triangular(packed, b, upper=True)


def _order(pivots: Tensor, size: int) -> Tensor:
    """Which row of the matrix each row of its factors is."""
    batch = pivots.shape[:-1]
    count = 1
    for extent in batch:
        count *= extent
    return eyas.permutation(pivots.reshape(count, pivots.shape[-1]), size).reshape([*batch, size])


def _take_rows(b: Tensor, order: Tensor, batch: Sequence[int]) -> Tensor:
    shape = [*batch, *b.shape[-2:]]
    return b.expand(shape).gather(-2, order.unsqueeze(-1).expand(shape))


def solve_ex(
    a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    is_vector = b.dim() == 1 or (a.dim() - 1 == b.dim() and b.shape == a.shape[:-1])
    packed, pivots, info = lu_factor_ex(a)
    if a.is_complex():
        is_left = left or is_vector
        right = b.unsqueeze(-1) if is_vector else b if is_left else b.mT
        x, info = _solve_complex(a if is_left else a.mT, right.real, right.imag)
        _checked(info, "linalg.solve_ex", check_errors)
        return x.squeeze(-1) if is_vector else x if is_left else x.mT, packed, pivots, info
    _checked(info, "linalg.solve_ex", check_errors)
    right = b.unsqueeze(-1) if is_vector else b
    x = lu_solve(packed, pivots, right, left=left if not is_vector else True)
    return x.squeeze(-1) if is_vector else x, packed, pivots, info


def _solve_complex(a: Tensor, real: Tensor, imaginary: Tensor) -> tuple[Tensor, Tensor]:
    """As a system of real numbers that is twice as large: (A + iB)(x + iy) is Ax - By and Bx + Ay. Of where a matrix is
    singular, only whether it is one."""
    re, im, size = a.real, a.imag, a.shape[-1]
    whole = torch.cat([torch.cat([re, -im], -1), torch.cat([im, re], -1)], -2)
    x, _, _, info = solve_ex(whole, torch.cat([real, imaginary], -2))
    return torch.complex(x[..., :size, :], x[..., size:, :]), (info > 0).to(info.dtype)


def inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    if a.is_complex():
        ones = eye(a.real)
        inverse, info = _solve_complex(a, ones, torch.zeros_like(ones))
        _checked(info, "linalg.inv_ex", check_errors)
        return inverse, info
    packed, pivots, info = lu_factor_ex(a)
    _checked(info, "linalg.inv_ex", check_errors)
    return lu_solve(packed, pivots, eye(a)), info


def _factors_of_det(a: Tensor) -> tuple[Tensor, Tensor]:
    """LU factors as the formula of the gradient takes them: of the transpose, where a matrix lies in rows."""
    packed, pivots, _ = lu_factor_ex(a.mT if a.is_contiguous() else a)
    return packed, pivots


def _det(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    packed, pivots = _factors_of_det(a)
    return _sign(pivots, a.dtype) * _diagonal(packed).prod(-1), packed, pivots


def _slogdet(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    packed, pivots = _factors_of_det(a)
    diagonal = _diagonal(packed)
    sign = _sign(pivots, a.dtype) * diagonal.sign().prod(-1)
    return sign, diagonal.abs().log().sum(-1), packed, pivots


def logdet(a: Tensor) -> Tensor:
    sign, logarithm, *_ = _slogdet(a)
    return sign.log() + logarithm


def _sign(pivots: Tensor, dtype: torch.dtype) -> Tensor:
    """-1 for an odd number of exchanges."""
    own = torch.arange(1, pivots.shape[-1] + 1, device=pivots.device, dtype=pivots.dtype)
    exchanges = (pivots != own).to(torch.int64).sum(-1)
    return (1 - 2 * (exchanges % 2)).to(dtype)


def _diagonal(a: Tensor) -> Tensor:
    """Copied: what follows reduces over it."""
    at = torch.arange(a.shape[-1], device=a.device)
    return torch.where(at.unsqueeze(-1) == at, a, 0.0).sum(-1)


def ldl_factor_ex(a: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    batch, matrices = flat(a)
    packed, pivots, info = eyas.ldl(matrices)
    info = info.reshape(batch)
    _checked(info, "linalg.ldl_factor_ex", check_errors)
    return unflat(packed, batch), pivots.reshape([*batch, pivots.shape[-1]]), info


def ldl_solve(packed: Tensor, pivots: Tensor, b: Tensor, *, hermitian: bool = False) -> Tensor:
    exchanges = pivots.unsqueeze(-1)
    a, right, batch = common_batch(packed, b)
    exchanges = flat(exchanges.expand([*batch, *exchanges.shape[-2:]]))[1].squeeze(-1)
    return unflat(eyas.ldl_solve(a, exchanges, right), batch)
