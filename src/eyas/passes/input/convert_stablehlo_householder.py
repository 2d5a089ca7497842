"""`convert-stablehlo-householder`: QR factors become loops of Householder reflections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, linalg, math, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import Values, loop, nest, sizes_of


@dataclass(frozen=True)
class ConvertStablehloHouseholder(Pass):
    """Turns the calls `Qr` and `ProductOfElementaryHouseholderReflectors` on real matrices into scalar loops.

    The factors are LAPACK's (geqrf, orgqr): R above the diagonal, reflectors below it with an implied leading 1.

        %a, %taus = stablehlo.custom_call @Qr(%x)
    becomes
        scf.for %j ... {
          %beta = -sign(%a[%j, %j]) * norm(%a[%j:, %j]); %tau = (%beta - %a[%j, %j]) / %beta
          scf.for %c = %j + 1 ... { reflect column %c }
        }
    """

    name: ClassVar[str] = "convert-stablehlo-householder"

    def run(self, module: mlir.Module) -> None:
        for view in find_ops(module, "stablehlo.custom_call"):
            op = view.operation
            convert = _CONVERSIONS.get(mlir.StringAttr(op.attributes["call_target_name"]).value)
            if convert is None or not isinstance(
                mlir.RankedTensorType(op.results[0].type).element_type, mlir.FloatType
            ):
                continue
            with mlir.InsertionPoint(op), op.location:
                for old, new in zip(op.results, convert(op), strict=True):
                    old.replace_all_uses_with(new)
            op.erase()


def _factor(op: mlir.Operation) -> Values:
    a, taus_type = op.operands[0], mlir.RankedTensorType(op.results[1].type)
    element = mlir.RankedTensorType(a.type).element_type
    zero_value, zero, one = arith.constant(element, 0.0), index_constant(0), index_constant(1)
    taus = linalg.fill(zero_value, outs=[tensor.empty(list(taus_type.shape), element)])
    *batches, rows, columns = sizes_of(a)
    count = index_constant(taus_type.shape[-1])

    def one_matrix(batch: Values, carried: Values) -> Values:
        def reflector(j: mlir.Value, inner: Values) -> Values:
            matrix, found = inner
            below = arith.addi(j, one)
            alpha = tensor.extract(matrix, [*batch, j, j])

            def add_square(i: mlir.Value, total: Values) -> Values:
                value = tensor.extract(matrix, [*batch, i, j])
                return [arith.addf(total[0], arith.mulf(value, value))]

            square = loop(below, rows, [zero_value], add_square)[0]
            norm = math.sqrt(arith.addf(arith.mulf(alpha, alpha), square))
            beta = arith.negf(math.copysign(norm, alpha))
            nothing = arith.cmpf(arith.CmpFPredicate.OEQ, square, zero_value)
            tau = arith.select(nothing, zero_value, arith.divf(arith.subf(beta, alpha), beta))
            scale = arith.select(nothing, arith.constant(element, 1.0), arith.subf(alpha, beta))

            def divide(i: mlir.Value, values: Values) -> Values:
                value = arith.divf(tensor.extract(values[0], [*batch, i, j]), scale)
                return [tensor.insert(value, values[0], [*batch, i, j])]

            diagonal = arith.select(nothing, alpha, beta)
            matrix = tensor.insert(diagonal, loop(below, rows, [matrix], divide)[0], [*batch, j, j])

            def entry(values: Values, i: mlir.Value) -> mlir.Value:
                return tensor.extract(values[0], [*batch, i, j])

            matrix = loop(
                below,
                columns,
                [matrix],
                lambda c, values: _reflect(values, batch, j, c, rows, tau, lambda i, now: entry(now, i)),
            )[0]
            return [matrix, tensor.insert(tau, found, [*batch, j])]

        return loop(zero, count, carried, reflector)

    return nest(batches, [a, taus], one_matrix)


def _multiply_out(op: mlir.Operation) -> Values:
    a, taus = op.operands
    type_ = mlir.RankedTensorType(a.type)
    element = type_.element_type
    zero, one = index_constant(0), index_constant(1)
    zeros = linalg.fill(arith.constant(element, 0.0), outs=[tensor.empty(list(type_.shape), element)])
    *batches, rows, columns = sizes_of(a)
    count = sizes_of(taus)[-1]

    def one_matrix(batch: Values, carried: Values) -> Values:
        unit = arith.constant(element, 1.0)
        eye = loop(zero, columns, carried, lambda i, now: [tensor.insert(unit, now[0], [*batch, i, i])])

        def reflector(step: mlir.Value, inner: Values) -> Values:
            j = arith.subi(arith.subi(count, one), step)
            tau = tensor.extract(taus, [*batch, j])
            return loop(
                j,
                columns,
                inner,
                lambda c, now: _reflect(now, batch, j, c, rows, tau, lambda i, _: tensor.extract(a, [*batch, i, j])),
            )

        return loop(zero, count, eye, reflector)

    return nest(batches, [zeros], one_matrix)


def _reflect(now: Values, batch: Values, j, column, rows, tau, entry) -> Values:  # noqa: ANN001
    """One column of (I - tau v v') times a matrix; v is 1 at j and `entry(i, matrix)` below it."""
    below = arith.addi(j, index_constant(1))

    def add(i: mlir.Value, total: Values) -> Values:
        return [arith.addf(total[0], arith.mulf(entry(i, now), tensor.extract(now[0], [*batch, i, column])))]

    head = tensor.extract(now[0], [*batch, j, column])
    weight = arith.mulf(tau, loop(below, rows, [head], add)[0])
    start = tensor.insert(arith.subf(head, weight), now[0], [*batch, j, column])

    def subtract(i: mlir.Value, values: Values) -> Values:
        old = tensor.extract(values[0], [*batch, i, column])
        new = arith.subf(old, arith.mulf(weight, entry(i, values)))
        return [tensor.insert(new, values[0], [*batch, i, column])]

    return loop(below, rows, [start], subtract)


_CONVERSIONS = {"Qr": _factor, "ProductOfElementaryHouseholderReflectors": _multiply_out}
