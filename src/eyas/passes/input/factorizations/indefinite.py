"""LDL factors of symmetric matrices that need not be definite, by Bunch and Kaufman's pivoting."""

from __future__ import annotations

import math

from eyas.ir import mlir
from eyas.ir.loops import Array, Loops, Number, Variable
from eyas.passes.input.factorizations.common import (
    copy_of,
    each,
    int32,
    largest,
    like,
    subtract_multiple,
    swap_rows,
    total,
)

# Bounds how much elements grow.
_ALPHA = (1 + math.sqrt(17)) / 8


def ldl(a: mlir.Value) -> list[mlir.Value]:
    """L and D in the lower triangle as LAPACK's sytrf has them; exchanges of rows, from 1 and negative in blocks of
    two; and the first block of D that is singular (from 1; 0 if none)."""
    loops = Loops()
    source = loops.array(a)
    n = source.size(1)
    packed = loops.new([source.size(0), n, n], source.element)
    pivots = loops.new([source.size(0), n], int32())
    info = loops.new([source.size(0)], int32())
    with each(loops, source) as b:
        with loops.range(0, n) as i, loops.range(0, i + 1) as j:
            packed[b, i, j] = source[b, i, j]
        k, failed = loops.variable(loops.index(0)), loops.variable(loops.index(0))
        with loops.repeat(lambda: k.get() < n):
            _step(loops, packed.at(b), pivots.at(b), n, k, failed)
        info[b] = failed.get()
    return [packed.place.value, pivots.place.value, info.place.value]


def _step(loops: Loops, a: Array, pivots: Array, n: Number, at: Variable, failed: Variable) -> None:
    """Eliminates one column, or two if their pivot is a block."""
    k = at.get()
    chosen, width = _choose_pivot(loops, a, n, k, failed)
    last = k + width - 1
    with loops.when(chosen.differs(last)):
        with loops.range(chosen + 1, n) as i:
            _swap(a, (i, last), (i, chosen))
        with loops.range(last + 1, chosen) as i:
            _swap(a, (i, last), (chosen, i))
        _swap(a, (last, last), (chosen, chosen))
        with loops.when(width.equals(2)):
            _swap(a, (k + 1, k), (chosen, k))
    with loops.when(width.equals(1)):
        pivots[k] = chosen + 1
        with loops.when(a[k, k].differs(0.0)):
            scale = 1.0 / a[k, k]
            with loops.range(k + 1, n) as i:
                value = a[i, k]
                a[i, k] = value * scale
                # Rows up to this one have been divided.
                with loops.range(k + 1, i + 1) as j:
                    a[i, j] = a[i, j] - value * a[j, k]
    with loops.otherwise():
        pivots[k] = -1 - chosen
        pivots[k + 1] = -1 - chosen
        _eliminate_two(loops, a, n, k)
    at.set(k + width)


def _choose_pivot(loops: Loops, a: Array, n: Number, k: Number, failed: Variable) -> tuple[Number, Number]:
    """The row to exchange with, and whether the pivot is one element or a block of two."""
    own = abs(a[k, k])
    below, most = largest(loops, n, k + 1, a.element, lambda i: a[i, k])
    chosen, width = loops.variable(k), loops.variable(loops.index(1))
    nothing = ~((own > 0.0) | (most > 0.0))
    with loops.when(nothing & failed.get().equals(0)):
        failed.set(k + 1)
    with loops.when(~nothing & (own < _ALPHA * most)):
        _, left = largest(loops, below, k, a.element, lambda j: a[below, j])
        _, under = largest(loops, n, below + 1, a.element, lambda i: a[i, below])
        around = (left > under).choose(left, under)
        with loops.when(own < _ALPHA * most * (most / around)):
            chosen.set(below)
            width.set((abs(a[below, below]) >= _ALPHA * around).choose(loops.index(1), loops.index(2)))
    return chosen.get(), width.get()


def _eliminate_two(loops: Loops, a: Array, n: Number, k: Number) -> None:
    off = a[k + 1, k]
    first, second = a[k + 1, k + 1] / off, a[k, k] / off
    scale = 1.0 / (first * second - 1.0) / off
    with loops.range(k + 2, n) as j:
        left = scale * (first * a[j, k] - a[j, k + 1])
        right = scale * (second * a[j, k + 1] - a[j, k])
        with loops.range(j, n) as i:
            a[i, j] = a[i, j] - a[i, k] * left - a[i, k + 1] * right
        a[j, k] = left
        a[j, k + 1] = right


def _swap(a: Array, first: tuple[Number, Number], second: tuple[Number, Number]) -> None:
    left, right = a[first], a[second]
    a[first] = right
    a[second] = left


def ldl_solve(packed: mlir.Value, pivots: mlir.Value, b: mlir.Value) -> list[mlir.Value]:
    """X with A X = B from the factors of A."""
    loops = Loops()
    factors, exchanged, given = loops.array(packed), loops.array(pivots), loops.array(b)
    solution = like(loops, given)
    n = solution.size(1)
    with each(loops, solution) as index:
        copy_of(loops, given, index, solution)
        a, order, x = factors.at(index), exchanged.at(index), solution.at(index)
        k = loops.variable(loops.index(0))
        with loops.repeat(lambda: k.get() < n):
            _forward(loops, a, loops.as_index(order[k.get()]), x, n, k)
        k.set(n - 1)
        with loops.repeat(lambda: k.get() >= 0):
            _backward(loops, a, loops.as_index(order[k.get()]), x, n, k)
    return [solution.place.value]


def _forward(loops: Loops, a: Array, exchange: Number, x: Array, n: Number, at: Variable) -> None:
    """Divides by L and D."""
    k, columns = at.get(), x.size(1)
    with loops.when(exchange > 0):
        swap_rows(loops, x, k, exchange - 1)
        with loops.range(k + 1, n) as i:
            subtract_multiple(loops, x, i, a[i, k], x, k, (0, columns))
        pivot = a[k, k]
        with loops.range(0, columns) as j:
            x[k, j] = x[k, j] / pivot
        at.set(k + 1)
    with loops.otherwise():
        swap_rows(loops, x, k + 1, -1 - exchange)
        with loops.range(k + 2, n) as i:
            subtract_multiple(loops, x, i, a[i, k], x, k, (0, columns))
            subtract_multiple(loops, x, i, a[i, k + 1], x, k + 1, (0, columns))
        off = a[k + 1, k]
        first, second = a[k, k] / off, a[k + 1, k + 1] / off
        determinant = first * second - 1.0
        with loops.range(0, columns) as j:
            upper, lower = x[k, j] / off, x[k + 1, j] / off
            x[k, j] = (second * upper - lower) / determinant
            x[k + 1, j] = (first * lower - upper) / determinant
        at.set(k + 2)


def _backward(loops: Loops, a: Array, exchange: Number, x: Array, n: Number, at: Variable) -> None:
    """Divides by L'."""
    k = at.get()
    is_block = exchange < 0
    with loops.range(0, x.size(1)) as j:
        x[k, j] = x[k, j] - total(loops, k + 1, n, a.element, lambda i: a[i, k] * x[i, j])
        with loops.when(is_block):
            x[k - 1, j] = x[k - 1, j] - total(loops, k + 1, n, a.element, lambda i: a[i, k - 1] * x[i, j])
    row = is_block.choose(-1 - exchange, exchange - 1)
    swap_rows(loops, x, k, row)
    at.set(k - is_block.choose(loops.index(2), 1))
