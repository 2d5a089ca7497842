"""Factorisations of [batch, rows, columns] as operators of a torch program: what all of linear algebra is built on.

The importer leaves them as they are, and `convert-linear-algebra` makes loops of them. torch runs them too, for what is
constant, with its own factorisations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.fx.node import has_side_effect

from eyas.frontends.torch.linear_algebra.batches import smaller

Tensor = torch.Tensor

_LIBRARY = torch.library.Library("eyas", "DEF")


def define(
    schema: str,
    shapes: Callable[..., object],
    eager: Callable[..., object],
    key: str = "CPU",
    tags: Sequence[torch.Tag] = (),
) -> None:
    """An operator of ours: what it takes, the shapes that it gives, and what torch does when it runs it."""
    name = schema.split("(")[0]
    _LIBRARY.define(schema, tags=tuple(tags))
    _LIBRARY.impl(name, eager, key)
    torch.library.register_fake(f"eyas::{name}", shapes, lib=_LIBRARY)


def _integers(a: Tensor, *shape: int) -> Tensor:
    return a.new_empty(shape, dtype=torch.int32)


def _contiguous(a: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    return a.new_empty(a.shape if shape is None else shape)


def _eager_qr(a: Tensor) -> tuple[Tensor, Tensor]:
    packed, taus = torch.geqrf(a)
    return packed.contiguous(), taus.contiguous()


def _eager_permutation(pivots: Tensor, size: int) -> Tensor:
    zeros = pivots.new_zeros((*pivots.shape[:-1], size, pivots.shape[-1])).double()
    matrix = torch.lu_unpack(zeros, pivots, unpack_data=False)[0]
    return matrix.argmax(-2)


def _eager_svd(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    u, s, vh = torch.linalg.svd(a)
    return u.mT.contiguous(), s, vh.contiguous()


def _eager_eigh(a: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors = torch.linalg.eigh(a)
    return values, vectors.mT.contiguous()


def _eager_eig(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    values, vectors = torch.linalg.eig(a)
    packed = torch.where(values.imag.unsqueeze(-2) < 0, vectors.roll(1, -1).imag, vectors.real)
    return values.real.contiguous(), values.imag.contiguous(), packed.contiguous()


define(
    "cholesky(Tensor a) -> (Tensor, Tensor)",
    lambda a: (_contiguous(a), _integers(a, a.shape[0])),
    lambda a: tuple(one.contiguous() for one in torch.linalg.cholesky_ex(a, upper=True)),
)
define(
    "lu(Tensor a) -> (Tensor, Tensor, Tensor)",
    lambda a: (_contiguous(a), _integers(a, a.shape[0], smaller(a)), _integers(a, a.shape[0])),
    lambda a: tuple(one.contiguous() for one in torch.linalg.lu_factor_ex(a)),
)
define(
    "permutation(Tensor pivots, SymInt size) -> Tensor",
    lambda pivots, size: pivots.new_empty((pivots.shape[0], size), dtype=torch.int64),
    _eager_permutation,
)
define(
    "solve_triangular(Tensor a, Tensor b, bool upper, bool unit) -> Tensor",
    lambda a, b, upper, unit: _contiguous(b),
    lambda a, b, upper, unit: torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit).contiguous(),
)
define(
    "ldl(Tensor a) -> (Tensor, Tensor, Tensor)",
    lambda a: (_contiguous(a), _integers(a, *a.shape[:2]), _integers(a, a.shape[0])),
    lambda a: tuple(one.contiguous() for one in torch.linalg.ldl_factor_ex(a)),
)
define(
    "ldl_solve(Tensor packed, Tensor pivots, Tensor b) -> Tensor",
    lambda packed, pivots, b: _contiguous(b),
    lambda packed, pivots, b: torch.linalg.ldl_solve(packed, pivots, b).contiguous(),
)
define(
    "qr(Tensor a) -> (Tensor, Tensor)",
    lambda a: (_contiguous(a), _contiguous(a, (a.shape[0], smaller(a)))),
    _eager_qr,
)
define(
    "householder_product(Tensor a, Tensor taus) -> Tensor",
    lambda a, taus: _contiguous(a),
    lambda a, taus: torch.linalg.householder_product(a, taus).contiguous(),
)
define(
    "eigh(Tensor a) -> (Tensor, Tensor)",
    lambda a: (_contiguous(a, tuple(a.shape[:2])), _contiguous(a)),
    _eager_eigh,
)
define(
    "svd(Tensor a) -> (Tensor, Tensor, Tensor)",
    lambda a: (_contiguous(a), _contiguous(a, tuple(a.shape[:2])), _contiguous(a)),
    _eager_svd,
)

define(
    "eig(Tensor a) -> (Tensor, Tensor, Tensor)",
    lambda a: (_contiguous(a, tuple(a.shape[:2])), _contiguous(a, tuple(a.shape[:2])), _contiguous(a)),
    _eager_eig,
)
define("matrix_exp(Tensor a) -> Tensor", _contiguous, lambda a: torch.linalg.matrix_exp(a).contiguous())


def _eager_check(holds: Tensor, message: str) -> None:
    if not holds.item():
        raise RuntimeError(message)


define("check(Tensor holds, str message) -> ()", lambda holds, message: None, _eager_check)
has_side_effect(torch.ops.eyas.check.default)
