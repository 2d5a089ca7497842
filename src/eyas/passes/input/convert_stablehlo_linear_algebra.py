"""`convert-stablehlo-linear-algebra`: Cholesky factors and triangular systems become loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, linalg, math, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import Values, loop, nest, sizes_of


@dataclass(frozen=True)
class ConvertStablehloLinearAlgebra(Pass):
    """Turns `stablehlo.cholesky` and `stablehlo.triangular_solve` on real numbers into scalar loops, per batch member.

        %l = stablehlo.cholesky %a, lower = true
    becomes
        scf.for %j ... { scf.for %i = %j ... {
          %s = %a[%i, %j] - sum over k < j of %l[%i, %k] * %l[%j, %k]
          %l[%i, %j] = %i == %j ? sqrt(%s) : %s / %l[%j, %j]
        } }
    """

    name: ClassVar[str] = "convert-stablehlo-linear-algebra"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, *_CONVERSIONS):
            type_ = mlir.RankedTensorType(op.operation.results[0].type)
            if isinstance(type_.element_type, mlir.ComplexType):
                continue
            with mlir.InsertionPoint(op), op.location:
                op.operation.results[0].replace_all_uses_with(_CONVERSIONS[op.operation.name](op.operation))
            op.operation.erase()


def _convert_cholesky(op: mlir.Operation) -> mlir.Value:
    a = op.operands[0]
    lower = "lower" in op.attributes and mlir.BoolAttr(op.attributes["lower"]).value
    type_ = mlir.RankedTensorType(a.type)
    element, sizes = type_.element_type, sizes_of(a)
    nothing = arith.constant(element, 0.0)
    dynamic = mlir.ShapedType.get_dynamic_size()
    shape = [sizes[dim] if size == dynamic else size for dim, size in enumerate(type_.shape)]
    zeros = linalg.fill(nothing, outs=[tensor.empty(shape, element)])
    zero, end = index_constant(0), sizes[-1]

    def factor(batch: Values, carried: Values) -> Values:
        def at(row: mlir.Value, column: mlir.Value) -> Values:
            return [*batch, row, column] if lower else [*batch, column, row]

        def column(j: mlir.Value, outer: Values) -> Values:
            def row(i: mlir.Value, inner: Values) -> Values:
                factors = inner[0]

                def subtract(k: mlir.Value, total: Values) -> Values:
                    product = arith.mulf(tensor.extract(factors, at(i, k)), tensor.extract(factors, at(j, k)))
                    return [arith.subf(total[0], product)]

                total = loop(zero, j, [tensor.extract(a, at(i, j))], subtract)[0]
                on_diagonal = arith.cmpi(arith.CmpIPredicate.eq, i, j)
                below = arith.divf(total, tensor.extract(factors, at(j, j)))
                return [tensor.insert(arith.select(on_diagonal, math.sqrt(total), below), factors, at(i, j))]

            return loop(j, end, outer, row)

        return loop(zero, end, carried, column)

    return nest(sizes[:-2], [zeros], factor)[0]


def _convert_triangular_solve(op: mlir.Operation) -> mlir.Value:
    a, b = op.operands
    left, lower, unit = (
        name in op.attributes and mlir.BoolAttr(op.attributes[name]).value
        for name in ("left_side", "lower", "unit_diagonal")
    )
    # X A = B is A' X' = B'; real matrices have no adjoint of their own.
    transposed = ("NO_TRANSPOSE" in str(op.attributes["transpose_a"])) != bool(left)
    forward = bool(lower) != transposed
    sizes, order = sizes_of(b), sizes_of(a)[-1]
    zero, one = index_constant(0), index_constant(1)

    def solve(position: Values, carried: Values) -> Values:
        *batch, line = position

        def coefficient(row: mlir.Value, column: mlir.Value) -> mlir.Value:
            return tensor.extract(a, [*batch, column, row] if transposed else [*batch, row, column])

        def at(index: mlir.Value) -> Values:
            return [*batch, index, line] if left else [*batch, line, index]

        def unknown(step: mlir.Value, inner: Values) -> Values:
            i = step if forward else arith.subi(arith.subi(order, one), step)

            def subtract(k: mlir.Value, total: Values) -> Values:
                return [arith.subf(total[0], arith.mulf(coefficient(i, k), tensor.extract(inner[0], at(k))))]

            bounds = (zero, i) if forward else (arith.addi(i, one), order)
            total = loop(*bounds, [tensor.extract(inner[0], at(i))], subtract)[0]
            value = total if unit else arith.divf(total, coefficient(i, i))
            return [tensor.insert(value, inner[0], at(i))]

        return loop(zero, order, carried, unknown)

    lines = sizes[-1] if left else sizes[-2]
    return nest([*sizes[:-2], lines], [b], solve)[0]


_CONVERSIONS = {
    "stablehlo.cholesky": _convert_cholesky,
    "stablehlo.triangular_solve": _convert_triangular_solve,
}
