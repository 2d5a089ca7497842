"""Eigenvectors of a real Schur form by substitution from the last row up, and back to the original matrix."""

from __future__ import annotations

from eyas.ir.loops import Array, Loops, Number, Operand, Variable
from eyas.passes.input.factorizations.common import total

_EPSILON = 2.0**-52
Pair = tuple[Number, Number]


def substitute(loops: Loops, h: Array, v: Array, d: Array, e: Array, n: Number, small: Number) -> None:
    """Vectors of the Schur form h to its own columns, then times v. `small` stands in for a divisor of 0."""
    with loops.down(n) as column:
        with loops.when(e[column].equals(0.0)):
            _real_vector(loops, h, d, e, column, small)
        with loops.when(e[column] < 0.0):
            _complex_vector(loops, h, d, e, column, small)
    with loops.down(n) as j, loops.range(0, n) as i:
        v[i, j] = total(loops, 0, j + 1, v.element, lambda k: v[i, k] * h[k, j])


def _real_vector(loops: Loops, h: Array, d: Array, e: Array, n: Number, small: Number) -> None:
    value, element = d[n], h.element
    first = loops.variable(n)
    # Of the lower row of a block of two: its diagonal less the eigenvalue, and its right side.
    below, rest = (loops.variable(loops.float(0.0, element)) for _ in range(2))
    h[n, n] = 1.0
    with loops.down(n) as i:
        w = h[i, i] - value
        r = total(loops, first.get(), n + 1, element, lambda j: h[i, j] * h[j, n])
        with loops.when(e[i] < 0.0):
            below.set(w)
            rest.set(r)
        with loops.otherwise():
            first.set(i)
            with loops.when(e[i].equals(0.0)):
                h[i, n] = -r / w.equals(0.0).choose(small, w)
            with loops.otherwise():
                x, y = h[i, i + 1], h[i + 1, i]
                z, s = below.get(), rest.get()
                apart = d[i] - value
                t = (x * s - z * r) / (apart * apart + e[i] * e[i])
                h[i, n] = t
                h[i + 1, n] = (abs(x) > abs(z)).choose((-r - w * t) / x, (-s - y * t) / z)
            _tame(loops, h, i, n, (n,), abs(h[i, n]))


def _complex_vector(loops: Loops, h: Array, d: Array, e: Array, n: Number, small: Number) -> None:
    """Columns n - 1 and n, the two parts; the last component is imaginary, which keeps the matrix triangular."""
    p, q, element = d[n], e[n], h.element
    m = n - 1
    first = loops.variable(m)
    below, rest_real, rest_imaginary = (loops.variable(loops.float(0.0, element)) for _ in range(3))
    lower = abs(h[n, m]) > abs(h[m, n])
    divided = _divide((loops.float(0.0, element), -h[m, n]), (h[m, m] - p, q))
    start = [lower.choose(q / h[n, m], divided[0]), lower.choose(-(h[n, n] - p) / h[n, m], divided[1])]
    h[m, m] = start[0]
    h[m, n] = start[1]
    h[n, m] = 0.0
    h[n, n] = 1.0
    with loops.down(m) as i:
        w = h[i, i] - p
        ra = total(loops, first.get(), n + 1, element, lambda j: h[i, j] * h[j, m])
        sa = total(loops, first.get(), n + 1, element, lambda j: h[i, j] * h[j, n])
        with loops.when(e[i] < 0.0):
            below.set(w)
            rest_real.set(ra)
            rest_imaginary.set(sa)
        with loops.otherwise():
            first.set(i)
            with loops.when(e[i].equals(0.0)):
                h[i, m], h[i, n] = _divide((-ra, -sa), (w, q))
            with loops.otherwise():
                _solve_block(h, d, e, i, n, (w, ra, sa), (below, rest_real, rest_imaginary), small)
            most = (abs(h[i, m]) > abs(h[i, n])).choose(abs(h[i, m]), abs(h[i, n]))
            _tame(loops, h, i, n, (m, n), most)


def _solve_block(
    h: Array,
    d: Array,
    e: Array,
    i: Number,
    n: Number,
    upper: tuple[Number, Number, Number],
    lower: tuple[Variable, Variable, Variable],
    small: Number,
) -> None:
    """Two components at a block of two of the Schur form."""
    p, q, m = d[n], e[n], n - 1
    w, ra, sa = upper
    z, r, s = (one.get() for one in lower)
    x, y = h[i, i + 1], h[i + 1, i]
    apart = d[i] - p
    real = apart * apart + e[i] * e[i] - q * q
    imaginary = apart * 2.0 * q
    is_zero = real.equals(0.0) & imaginary.equals(0.0)
    real = is_zero.choose(small * (abs(w) + abs(q) + abs(x) + abs(y) + abs(z)), real)
    h[i, m], h[i, n] = _divide((x * r - z * ra + q * sa, x * s - z * sa - q * ra), (real, imaginary))
    from_upper = abs(x) > abs(z) + abs(q)
    first = ((-ra - w * h[i, m] + q * h[i, n]) / x, (-sa - w * h[i, n] - q * h[i, m]) / x)
    second = _divide((-r - y * h[i, m], -s - y * h[i, n]), (z, q))
    h[i + 1, m] = from_upper.choose(first[0], second[0])
    h[i + 1, n] = from_upper.choose(first[1], second[1])


def _divide(left: Pair, right: Pair) -> Pair:
    """A complex quotient by Smith's method, which does not square."""
    (a, b), (c, d) = left, right
    is_real = abs(c) > abs(d)
    ratio = is_real.choose(d / c, c / d)
    divisor = is_real.choose(c + ratio * d, d + ratio * c)
    real = is_real.choose(a + ratio * b, ratio * a + b)
    imaginary = is_real.choose(b - ratio * a, ratio * b - a)
    return real / divisor, imaginary / divisor


def _tame(loops: Loops, h: Array, i: Number, n: Number, columns: tuple[Operand, ...], size: Number) -> None:
    """Divides what there is of a vector by its last component before products of them overflow."""
    with loops.when(_EPSILON * size * size > 1.0), loops.range(i, n + 1) as j:
        for column in columns:
            h[j, column] = h[j, column] / size
