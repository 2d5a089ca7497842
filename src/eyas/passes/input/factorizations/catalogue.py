"""Factorisations by the names that frontends call them."""

from __future__ import annotations

from collections.abc import Callable

from eyas.ir import mlir
from eyas.passes.input.factorizations.exponential import matrix_exp
from eyas.passes.input.factorizations.general import eig
from eyas.passes.input.factorizations.householder import householder_product, qr
from eyas.passes.input.factorizations.indefinite import ldl, ldl_solve
from eyas.passes.input.factorizations.singular import svd
from eyas.passes.input.factorizations.symmetric import eigh
from eyas.passes.input.factorizations.triangular import cholesky, lu, permutation, solve_triangular

FACTORIZATIONS: dict[str, Callable[..., list[mlir.Value]]] = {
    "cholesky": cholesky,
    "eig": eig,
    "eigh": eigh,
    "householder_product": householder_product,
    "ldl": ldl,
    "ldl_solve": ldl_solve,
    "lu": lu,
    "matrix_exp": matrix_exp,
    "permutation": permutation,
    "qr": qr,
    "solve_triangular": solve_triangular,
    "svd": svd,
}
