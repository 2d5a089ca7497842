"""`convert-stablehlo-linear-algebra`: factors and spectra of matrices become loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import tensor

from eyas.ir import Pass, mlir
from eyas.ir.walk import find_ops
from eyas.passes.input.factorizations.common import turned
from eyas.passes.input.factorizations.general import eig
from eyas.passes.input.factorizations.hermitian import eigh_complex
from eyas.passes.input.factorizations.householder import householder_product, qr
from eyas.passes.input.factorizations.singular import svd
from eyas.passes.input.factorizations.symmetric import eigh
from eyas.passes.input.factorizations.triangular import cholesky, nothing_where, solve_triangular
from eyas.passes.input.stablehlo_scalars import Values, size_of, sizes_of


@dataclass(frozen=True)
class ConvertStablehloLinearAlgebra(Pass):
    """Turns `stablehlo.cholesky`, `stablehlo.triangular_solve` and calls of factorisations into loops on matrices.

    `Qr` and `ProductOfElementaryHouseholderReflectors` are JAX's names, with factors as LAPACK packs them; our rules
    for JAX call `eyas.eigh`, `eyas.eig` and `eyas.svd`, which are computed in f64 and rounded at the end.

        %a, %taus = stablehlo.custom_call @Qr(%x) : (tensor<6x4xf32>) -> ...
    becomes
        %m = tensor.expand_shape %x : tensor<6x4xf32> into tensor<1x6x4xf32>
        %f:2 = scf.for %j ... { %beta = -sign(%m[0, %j, %j]) * norm(%m[0, %j:, %j]); ... }
    """

    name: ClassVar[str] = "convert-stablehlo-linear-algebra"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "stablehlo.cholesky", "stablehlo.triangular_solve", "stablehlo.custom_call"):
            op = view.operation
            name = op.name
            if name == "stablehlo.custom_call":
                name = mlir.StringAttr(op.attributes["call_target_name"]).value
            if (convert := _CONVERSIONS.get(name)) is None:
                continue
            with mlir.InsertionPoint(op), op.location:
                batch = sizes_of(op.operands[0])[:-2]
                operands = list(op.operands)[: _OPERANDS.get(name, 1)]
                made = convert(op, *(_with_one_batch(value, len(batch)) for value in operands))
                for old, new in zip(op.results, made, strict=True):
                    old.replace_all_uses_with(_with_batch(new, batch, mlir.RankedTensorType(old.type)))
            op.erase()


def _cholesky(op: mlir.Operation, a: mlir.Value) -> Values:
    lower = "lower" in op.attributes and mlir.BoolAttr(op.attributes["lower"]).value
    factor, failed = cholesky(turned(a, conjugate=True) if lower else a)
    factor = nothing_where(failed, factor)
    return [turned(factor, conjugate=True) if lower else factor]


def _triangular_solve(op: mlir.Operation, a: mlir.Value, b: mlir.Value) -> Values:
    left, lower, unit = (
        name in op.attributes and mlir.BoolAttr(op.attributes[name]).value
        for name in ("left_side", "lower", "unit_diagonal")
    )
    given = str(op.attributes["transpose_a"])
    is_turned, conjugate = "NO_TRANSPOSE" not in given, "ADJOINT" in given
    # X A = B is A' X' = B'.
    flips = is_turned == bool(left)
    if flips:
        a = turned(a, conjugate)
    elif conjugate:
        a = turned(turned(a, conjugate=True), conjugate=False)
    (x,) = solve_triangular(a, b if left else turned(b, conjugate=False), upper=bool(lower) == flips, unit=bool(unit))
    return [x if left else turned(x, conjugate=False)]


def _qr(op: mlir.Operation, a: mlir.Value) -> Values:
    return qr(a)


def _householder_product(op: mlir.Operation, a: mlir.Value, taus: mlir.Value) -> Values:
    return householder_product(a, taus)


def _eigh(op: mlir.Operation, a: mlir.Value) -> Values:
    return _rounded(op, (eigh_complex if _is_complex(a) else eigh)(_wide(a)))


def _eig(op: mlir.Operation, a: mlir.Value) -> Values:
    return _rounded(op, eig(_wide(a)))


def _svd(op: mlir.Operation, a: mlir.Value) -> Values:
    return _rounded(op, svd(_wide(a)))


_CONVERSIONS = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.triangular_solve": _triangular_solve,
    "Qr": _qr,
    "ProductOfElementaryHouseholderReflectors": _householder_product,
    "eyas.eigh": _eigh,
    "eyas.eig": _eig,
    "eyas.svd": _svd,
}
# Calls have the sizes of their results as further operands where they are open.
_OPERANDS = {"stablehlo.triangular_solve": 2, "ProductOfElementaryHouseholderReflectors": 2}


def _is_complex(value: mlir.Value) -> bool:
    return isinstance(mlir.RankedTensorType(value.type).element_type, mlir.ComplexType)


def _wide(value: mlir.Value) -> mlir.Value:
    """In f64, or as complex numbers of it."""
    wide = mlir.F64Type.get()
    return _converted(value, mlir.ComplexType.get(wide) if _is_complex(value) else wide)


def _rounded(op: mlir.Operation, made: Sequence[mlir.Value]) -> Values:
    types = [mlir.RankedTensorType(result.type).element_type for result in op.results]
    return [_converted(value, type_) for value, type_ in zip(made, types, strict=True)]


def _converted(value: mlir.Value, element: mlir.Type) -> mlir.Value:
    type_ = mlir.RankedTensorType(value.type)
    if type_.element_type == element:
        return value
    result = mlir.RankedTensorType.get(type_.shape, element)
    return mlir.Operation.create("stablehlo.convert", results=[result], operands=[value]).result


def _with_one_batch(value: mlir.Value, batch: int) -> mlir.Value:
    """With one dimension in the place of the first `batch` ones."""
    type_ = mlir.RankedTensorType(value.type)
    groups = _groups(batch, type_.rank - batch)
    if batch == 1:
        return value
    if batch == 0:
        shape = [1, *type_.shape]
        return tensor.expand_shape(_typed(type_, shape), value, groups, _open_sizes(value), shape)
    dynamic = mlir.ShapedType.get_dynamic_size()
    before = list(type_.shape)[:batch]
    shape = [dynamic if dynamic in before else math.prod(before), *list(type_.shape)[batch:]]
    return tensor.collapse_shape(_typed(type_, shape), value, groups)


def _with_batch(value: mlir.Value, batch: Values, wanted: mlir.RankedTensorType) -> mlir.Value:
    """With the dimensions that were there before in the place of the first one."""
    type_ = mlir.RankedTensorType(value.type)
    groups = _groups(len(batch), type_.rank - 1)
    if not batch:
        value = tensor.collapse_shape(_typed(type_, list(type_.shape)[1:]), value, groups)
    elif len(batch) > 1:
        shape = [*list(wanted.shape)[: len(batch)], *list(type_.shape)[1:]]
        opened = [size for size, known in zip(batch, wanted.shape, strict=False) if known < 0]
        sizes = [*opened, *_open_sizes(value, 1)]
        value = tensor.expand_shape(_typed(type_, shape), value, groups, sizes, shape)
    return value if value.type == wanted else tensor.cast(wanted, value)


def _groups(batch: int, rest: int) -> list[list[int]]:
    """Which dimensions of the larger rank become one of the smaller, where a batch is one dimension."""
    if batch == 0:
        return [[0, 1], *([dim] for dim in range(2, rest + 1))] if rest else []
    return [list(range(batch)), *([dim] for dim in range(batch, batch + rest))]


def _typed(type_: mlir.RankedTensorType, shape: Sequence[int]) -> mlir.RankedTensorType:
    return mlir.RankedTensorType.get(shape, type_.element_type)


def _open_sizes(value: mlir.Value, first: int = 0) -> Values:
    type_ = mlir.RankedTensorType(value.type)
    return [size_of(value, dim) for dim in range(first, type_.rank) if type_.is_dynamic_dim(dim)]
