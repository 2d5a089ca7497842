"""Singular values and vectors of square matrices by one-sided Jacobi rotations.

They converge for any matrix, and small singular values come out as accurate as large ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from eyas.ir import mlir
from eyas.ir.loops import Array, Loops, Number
from eyas.passes.input.factorizations.common import each, real_of, scale_of, swap_rows, total

_MOST_SWEEPS = 60


def svd(a: mlir.Value) -> list[mlir.Value]:
    """U transposed, the singular values, descending, and V's adjoint."""
    loops = Loops()
    source = loops.array(a)
    batch, n, element = source.size(0), source.size(1), source.element
    left, right = (loops.new([batch, n, n], element) for _ in range(2))
    values = loops.new([batch, n], real_of(element))
    with each(loops, source) as b:
        u, v, s = left.at(b), right.at(b), values.at(b)
        scale = scale_of(loops, (n, n), lambda i, j: source[b, i, j], element)
        with loops.range(0, n) as i, loops.range(0, n) as j:
            u[j, i] = source[b, i, j] * scale
            v[i, j] = i.equals(j).choose(loops.float(1.0, element), 0.0)
        _orthogonalise(loops, u, v, s, n)
        if isinstance(element, mlir.ComplexType):
            with loops.range(0, n) as i, loops.range(0, n) as j:
                v[i, j] = v[i, j].conjugate()
        with loops.range(0, n) as i:
            with loops.when(s[i] > 0.0), loops.range(0, n) as j:
                u[i, j] = u[i, j] / s[i]
        with loops.range(0, n) as i, loops.when(~(s[i] > 0.0)):
            _complete(loops, u, i, n)
        with loops.range(0, n) as i:
            s[i] = s[i] / scale
    return [left.place.value, values.place.value, right.place.value]


def _orthogonalise(loops: Loops, u: Array, v: Array, s: Array, n: Number) -> None:
    """Rotates pairs of columns of A, which are rows of u, until all are orthogonal; s gets lengths, descending."""
    element = real_of(u.element)
    epsilon = 2.0**-51 if str(element) == "f64" else 2.0**-22
    sweeps, rotated = loops.variable(loops.index(0)), loops.variable(n > 1)
    with loops.repeat(lambda: rotated.get() & (sweeps.get() < _MOST_SWEEPS)):
        rotated.set(n < 0)
        sweeps.set(sweeps.get() + 1)
        with loops.range(0, n) as p:
            s[p] = total(loops, 0, n, element, lambda k: u[p, k].square())
        with loops.range(0, n) as p:
            # The longest of the rest first: fewer sweeps, and the values come out in order.
            _bring_longest(loops, u, v, s, p, n)
            with loops.range(p + 1, n) as q:
                alpha, beta = s[p], s[q]
                gamma = total(loops, 0, n, u.element, lambda k: u[p, k].conjugate() * u[q, k])
                with loops.when(abs(gamma) > epsilon * (alpha.sqrt() * beta.sqrt())):
                    rotated.set(n > 0)
                    if gamma.is_complex:
                        size = abs(gamma)
                        _turn(loops, (u, v), q, gamma.conjugate() / size, n)
                        gamma = size
                    zeta = (beta - alpha) / (2.0 * gamma)
                    far = abs(zeta) > 1e150 if str(element) == "f64" else abs(zeta) > 1e18
                    near = far.choose(loops.float(1.0, element), zeta)
                    tangent = 1.0 / (near + (1.0 + near * near).sqrt().with_sign_of(near))
                    tangent = far.choose(0.5 / zeta, tangent)
                    cosine = 1.0 / (1.0 + tangent * tangent).sqrt()
                    sine = cosine * tangent
                    _rotate(loops, u, p, q, cosine, sine, n)
                    _rotate(loops, v, p, q, cosine, sine, n)
                    s[p] = alpha - tangent * gamma
                    # What is left of the shorter one is too little for a difference.
                    s[q] = total(loops, 0, n, element, lambda k: u[q, k].square())
    with loops.range(0, n) as p:
        s[p] = total(loops, 0, n, element, lambda k: u[p, k].square()).sqrt()
    with loops.range(0, n) as p:
        _bring_longest(loops, u, v, s, p, n)


def _bring_longest(loops: Loops, u: Array, v: Array, s: Array, p: Number, n: Number) -> None:
    """Exchanges row p with the longest of those from it on."""
    place = loops.variable(p)
    with loops.range(p + 1, n) as q, loops.when(s[q] > s[place.get()]):
        place.set(q)
    longest = place.get()
    with loops.when(longest.differs(p)):
        swap_rows(loops, u, p, longest)
        swap_rows(loops, v, p, longest)
        own, other = s[p], s[longest]
        s[p] = other
        s[longest] = own


def _rotate(loops: Loops, a: Array, p: Number, q: Number, cosine: Number, sine: Number, n: Number) -> None:
    with loops.range(0, n) as k:
        left, right = a[p, k], a[q, k]
        a[p, k] = cosine * left - sine * right
        a[q, k] = sine * left + cosine * right


def _turn(loops: Loops, arrays: Sequence[Array], row: Number, by: Number, n: Number) -> None:
    """Turns a row by a number of magnitude 1, so that its product with another is real."""
    for a in arrays:
        with loops.range(0, n) as k:
            a[row, k] = a[row, k] * by


def _complete(loops: Loops, u: Array, row: Number, n: Number) -> None:
    """A unit vector that is orthogonal to all rows before: what is left of the axis that they cover least."""
    element = real_of(u.element)
    axis, most = loops.variable(loops.index(0)), loops.variable(loops.float(-1.0, element))
    with loops.range(0, n) as k:
        left = 1.0 - total(loops, 0, row, element, lambda i: u[i, k].square())
        with loops.when(left > most.get()):
            axis.set(k)
            most.set(left)
    with loops.range(0, n) as k:
        u[row, k] = k.equals(axis.get()).choose(loops.float(1.0, element), 0.0)
    # Twice is enough (Kahan and Parlett).
    with loops.range(0, 2):
        with loops.range(0, row) as i:
            share = total(loops, 0, n, u.element, lambda k: u[i, k].conjugate() * u[row, k])
            with loops.range(0, n) as k:
                u[row, k] = u[row, k] - share * u[i, k]
        length = total(loops, 0, n, element, lambda k: u[row, k].square()).sqrt()
        with loops.range(0, n) as k:
            u[row, k] = u[row, k] / length
