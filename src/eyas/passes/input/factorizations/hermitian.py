"""Eigenvalues and vectors of complex Hermitian matrices by Jacobi's rotations.

A rotation of two columns, after a turn of the second that makes the element in question real, leaves it 0. The matrix
of vectors is kept transposed, as for symmetric matrices.
"""

from __future__ import annotations

from eyas.ir import mlir
from eyas.ir.loops import Array, Loops, Number
from eyas.passes.input.factorizations.common import each, like, real_of, scale_of
from eyas.passes.input.factorizations.symmetric import sort_ascending

# Jacobi converges quadratically; a dozen is much.
_MOST_SWEEPS = 60


def eigh_complex(a: mlir.Value) -> list[mlir.Value]:
    """Eigenvalues, ascending, and vectors in rows, of matrices whose lower triangle is read."""
    loops = Loops()
    source = loops.array(a)
    n, element = source.size(1), source.element
    work, vectors = like(loops, source), like(loops, source)
    values = loops.new([source.size(0), n], real_of(element))
    with each(loops, source) as b:
        h, v, d = work.at(b), vectors.at(b), values.at(b)
        zero = loops.float(0.0, element)
        scale = scale_of(loops, (n, n), lambda i, j: (j <= i).choose(source[b, i, j], zero), element)
        with loops.range(0, n) as i:
            with loops.range(0, i) as j:
                value = source[b, i, j] * scale
                h[i, j] = value
                h[j, i] = value.conjugate()
            h[i, i] = source[b, i, i].real() * scale
            v[i, i] = 1.0
        _rotate_all(loops, h, v, n)
        with loops.range(0, n) as i:
            d[i] = h[i, i].real()
        sort_ascending(loops, v, d, n)
        with loops.range(0, n) as i:
            d[i] = d[i] / scale
    return [values.place.value, vectors.place.value]


def _rotate_all(loops: Loops, h: Array, v: Array, n: Number) -> None:
    """Sweeps over all elements above the diagonal until none is more than a rounding."""
    element = real_of(h.element)
    most = loops.variable(loops.float(0.0, element))
    with loops.range(0, n) as i, loops.range(0, n) as j:
        size = abs(h[i, j])
        most.set((size > most.get()).choose(size, most.get()))
    least = most.get() * (2.0**-53 if str(element) == "f64" else 2.0**-24)
    sweeps, rotated = loops.variable(loops.index(0)), loops.variable(n > 1)
    with loops.repeat(lambda: rotated.get() & (sweeps.get() < _MOST_SWEEPS)):
        rotated.set(n < 0)
        sweeps.set(sweeps.get() + 1)
        with loops.range(0, n) as p, loops.range(p + 1, n) as q:
            with loops.when(abs(h[p, q]) > least):
                rotated.set(n > 0)
                _rotate(loops, h, v, p, q, n)


def _rotate(loops: Loops, h: Array, v: Array, p: Number, q: Number, n: Number) -> None:
    """h becomes J* h J and v, which is transposed, J' v, where J makes h[p, q] nothing."""
    one = loops.float(1.0, real_of(h.element))
    beside = h[p, q]
    size = abs(beside)
    turn = beside / size
    theta = (h[q, q].real() - h[p, p].real()) / (2.0 * size)
    tangent = one.with_sign_of(theta) / (abs(theta) + (theta * theta + 1.0).sqrt())
    cosine = 1.0 / (tangent * tangent + 1.0).sqrt()
    sine = tangent * cosine
    back = turn.conjugate()
    with loops.range(0, n) as k:
        left, right = h[k, p], h[k, q] * back
        h[k, p] = left * cosine - right * sine
        h[k, q] = left * sine + right * cosine
    with loops.range(0, n) as k:
        left, right = h[p, k], h[q, k] * turn
        h[p, k] = left * cosine - right * sine
        h[q, k] = left * sine + right * cosine
    with loops.range(0, n) as k:
        left, right = v[p, k], v[q, k] * back
        v[p, k] = left * cosine - right * sine
        v[q, k] = left * sine + right * cosine
    # What is known exactly.
    h[p, q] = 0.0
    h[q, p] = 0.0
    h[p, p] = h[p, p].real()
    h[q, q] = h[q, q].real()
