"""Cholesky factors, LU factors with partial pivoting, and what is solved with them."""

from __future__ import annotations

from eyas.ir import mlir
from eyas.ir.loops import Loops, Operand
from eyas.passes.input.factorizations.common import (
    copy_of,
    each,
    int32,
    largest,
    like,
    subtract_multiple,
    swap_rows,
)


def cholesky(a: mlir.Value) -> list[mlir.Value]:
    """U with U*U = A from the upper triangle of A, and for each matrix the order of the first minor that is not
    positive (0 if all are). The factor of such a matrix is not complete."""
    loops = Loops()
    source = loops.array(a)
    n, element = source.size(1), source.element
    factors = loops.new([source.size(0), n, n], element)
    info = loops.new([source.size(0)], int32())
    with each(loops, source) as b:
        u, given = factors.at(b), source.at(b)
        with loops.range(0, n) as i, loops.range(i, n) as j:
            u[i, j] = given[i, j]
        failed = loops.variable(loops.index(0))
        with loops.range(0, n) as j, loops.when(failed.get().equals(0)):
            pivot = u[j, j].real()
            with loops.when(~(pivot > 0.0)):
                failed.set(j + 1)
            root = pivot.sqrt()
            u[j, j] = root
            with loops.range(j + 1, n) as k:
                u[j, k] = u[j, k] / root
            with loops.range(j + 1, n) as i:
                subtract_multiple(loops, u, i, u[j, i].conjugate(), u, j, (i, n))
        info[b] = failed.get()
    return [factors.place.value, info.place.value]


def nothing_where(failed: mlir.Value, a: mlir.Value) -> mlir.Value:
    """NaN in all of each matrix whose entry in `failed` is not 0."""
    loops = Loops()
    made, info = loops.array(a), loops.array(failed)
    with each(loops, made) as b, loops.when(loops.as_index(info[b]).differs(0)):
        with loops.range(0, made.size(1)) as i, loops.range(0, made.size(2)) as j:
            made[b, i, j] = float("nan")
    return made.place.value


def lu(a: mlir.Value) -> list[mlir.Value]:
    """L and U in one matrix, the exchanged rows (from 1), and the first pivot that is 0 (from 1; 0 if none)."""
    loops = Loops()
    source = loops.array(a)
    packed = like(loops, source)
    m, n, element = packed.size(1), packed.size(2), packed.element
    shape = mlir.RankedTensorType(a.type).shape
    dynamic = mlir.ShapedType.get_dynamic_size()
    steps = (m < n).choose(m, n) if dynamic in shape[1:] else loops.index(min(shape[1:]))
    pivots = loops.new([packed.size(0), steps], int32())
    info = loops.new([packed.size(0)], int32())
    with each(loops, packed) as b:
        copy_of(loops, source, b, packed)
        lu = packed.at(b)
        zero_at = loops.variable(loops.index(0))
        with loops.range(0, steps) as j:
            chosen, _ = largest(loops, m, j, element, lambda i: lu[i, j])
            pivots[b, j] = chosen + 1
            with loops.when(chosen.differs(j)):
                swap_rows(loops, lu, chosen, j)
            pivot = lu[j, j]
            with loops.when(pivot.equals(0.0) & zero_at.get().equals(0)):
                zero_at.set(j + 1)
            with loops.when(pivot.differs(0.0)), loops.range(j + 1, m) as i:
                factor = lu[i, j] / pivot
                lu[i, j] = factor
                subtract_multiple(loops, lu, i, factor, lu, j, (j + 1, n))
        info[b] = zero_at.get()
    return [packed.place.value, pivots.place.value, info.place.value]


def permutation(pivots: mlir.Value, size: Operand) -> list[mlir.Value]:
    """Where each row comes from after exchanges of rows that are given one after the other, from 1."""
    loops = Loops()
    exchanged = loops.array(pivots)
    order = loops.new([exchanged.size(0), size], mlir.IntegerType.get_signless(64))
    with each(loops, exchanged) as b:
        with loops.range(0, size) as i:
            order[b, i] = i
        with loops.range(0, exchanged.size(1)) as i:
            other = loops.as_index(exchanged[b, i]) - 1
            left, right = order[b, i], order[b, other]
            order[b, i] = right
            order[b, other] = left
    return [order.place.value]


def solve_triangular(a: mlir.Value, b: mlir.Value, upper: bool, unit: bool) -> list[mlir.Value]:
    """X with A X = B; what A has on the other side of its diagonal is not read."""
    loops = Loops()
    coefficients, given = loops.array(a), loops.array(b)
    solution = like(loops, given)
    n, columns = solution.size(1), solution.size(2)
    with each(loops, solution) as index:
        copy_of(loops, given, index, solution)
        left, x = coefficients.at(index), solution.at(index)
        with loops.down(n) if upper else loops.range(0, n) as i:
            with loops.range(*((i + 1, n) if upper else (0, i))) as k:
                subtract_multiple(loops, x, i, left[i, k], x, k, (0, columns))
            if not unit:
                pivot = left[i, i]
                with loops.range(0, columns) as j:
                    x[i, j] = x[i, j] / pivot
    return [solution.place.value]
