"""Eigenvalues and vectors of symmetric matrices: Householder's tridiagonal form, then QL steps with implicit shifts.

The matrix of vectors is kept transposed, so that a rotation of two of them runs along rows.
"""

from __future__ import annotations

from eyas.ir import mlir
from eyas.ir.loops import Array, Loops, Number, Variable
from eyas.passes.input.factorizations.common import each, scale_of, swap_rows, total

# LAPACK gives up at 30 for each eigenvalue; a step more costs little.
_MOST_STEPS = 60


def eigh(a: mlir.Value) -> list[mlir.Value]:
    """Eigenvalues, ascending, and vectors in rows, of matrices whose lower triangle is read."""
    loops = Loops()
    source = loops.array(a)
    batch, n, element = source.size(0), source.size(1), source.element
    vectors = loops.new([batch, n, n], element)
    values = loops.new([batch, n], element)
    # Of the tridiagonal form, what is beside the diagonal; the last is 0.
    beside = loops.new([n + 1], element)
    with each(loops, source) as b:
        v, d = vectors.at(b), values.at(b)
        scale = scale_of(loops, (n, n), lambda i, j: (j <= i).choose(source[b, i, j], 0.0), element)
        with loops.range(0, n) as i, loops.range(0, i + 1) as j:
            value = source[b, i, j] * scale
            v[i, j] = value
            v[j, i] = value
        with loops.when(n > 0):
            _tridiagonalise(loops, v, d, beside, n)
            _iterate(loops, v, d, beside, n)
            sort_ascending(loops, v, d, n)
        with loops.range(0, n) as i:
            d[i] = d[i] / scale
    return [values.place.value, vectors.place.value]


def _tridiagonalise(loops: Loops, v: Array, d: Array, e: Array, n: Number) -> None:
    """EISPACK's tred2: the diagonal to d, what is beside it to e[1:], the orthogonal matrix to v."""
    with loops.range(0, n) as j:
        d[j] = v[j, n - 1]
    with loops.down(n, 1) as i:
        scale = total(loops, 0, i, v.element, lambda k: abs(d[k]))
        square = loops.variable(loops.float(0.0, v.element))
        with loops.when(scale.equals(0.0)):
            e[i] = d[i - 1]
            with loops.range(0, i) as j:
                d[j] = v[j, i - 1]
                v[j, i] = 0.0
                v[i, j] = 0.0
        with loops.otherwise():
            _reflect(loops, v, d, e, i, scale, square)
        d[i] = square.get()
    with loops.range(0, n - 1) as i:
        v[i, n - 1] = v[i, i]
        v[i, i] = 1.0
        square = d[i + 1]
        with loops.when(square.differs(0.0)):
            with loops.range(0, i + 1) as k:
                d[k] = v[i + 1, k] / square
            with loops.range(0, i + 1) as j:
                weight = total(loops, 0, i + 1, v.element, lambda k: v[i + 1, k] * v[j, k])
                with loops.range(0, i + 1) as k:
                    v[j, k] = v[j, k] - weight * d[k]
        with loops.range(0, i + 1) as k:
            v[i + 1, k] = 0.0
    with loops.range(0, n) as j:
        d[j] = v[j, n - 1]
        v[j, n - 1] = 0.0
    v[n - 1, n - 1] = 1.0
    e[0] = 0.0


def _reflect(loops: Loops, v: Array, d: Array, e: Array, i: Number, scale: Number, square: Variable) -> None:
    """One reflection, of row i; `square` becomes half the square of its vector, which d holds."""
    with loops.range(0, i) as k:
        value = d[k] / scale
        d[k] = value
        square.set(square.get() + value * value)
    last = d[i - 1]
    root = -(square.get().sqrt().with_sign_of(last))
    e[i] = scale * root
    square.set(square.get() - last * root)
    d[i - 1] = last - root
    with loops.range(0, i) as j:
        e[j] = 0.0
    with loops.range(0, i) as j:
        own = d[j]
        v[i, j] = own
        found = loops.variable(e[j] + v[j, j] * own)
        with loops.range(j + 1, i) as k:
            found.set(found.get() + v[j, k] * d[k])
            e[k] = e[k] + v[j, k] * own
        e[j] = found.get()
    share = loops.variable(loops.float(0.0, v.element))
    with loops.range(0, i) as j:
        value = e[j] / square.get()
        e[j] = value
        share.set(share.get() + value * d[j])
    half = share.get() / (square.get() + square.get())
    with loops.range(0, i) as j:
        e[j] = e[j] - half * d[j]
    with loops.range(0, i) as j:
        left, right = d[j], e[j]
        with loops.range(j, i) as k:
            v[j, k] = v[j, k] - (left * e[k] + right * d[k])
        d[j] = v[j, i - 1]
        v[j, i] = 0.0


def _iterate(loops: Loops, v: Array, d: Array, e: Array, n: Number) -> None:
    """QL steps until what is beside the diagonal is nothing beside it."""
    element = v.element
    with loops.range(1, n) as i:
        e[i - 1] = e[i]
    e[n - 1] = 0.0
    norm = total(loops, 0, n, element, lambda i: abs(d[i]) + abs(e[i]))
    epsilon = 2.0**-52 if str(element) == "f64" else 2.0**-23

    def is_split(at: Number) -> Number:
        near = abs(d[at]) + abs(d[at + 1])
        return ~(abs(e[at]) > epsilon * near) | ~(abs(e[at]) > epsilon * epsilon * norm)

    with loops.range(0, n) as low:
        steps, goes_on = loops.variable(loops.index(0)), loops.variable(low >= 0)
        with loops.repeat(lambda: goes_on.get()):
            high, looking = loops.variable(low), loops.variable(low < n - 1)
            with loops.repeat(lambda: looking.get()):
                split = is_split(high.get())
                high.set(split.choose(high.get(), high.get() + 1))
                looking.set(~split & (high.get() < n - 1))
            goes_on.set(high.get().differs(low) & (steps.get() < _MOST_STEPS))
            with loops.when(goes_on.get()):
                _ql_step(loops, v, d, e, n, low, high.get())
            steps.set(steps.get() + 1)


def _ql_step(loops: Loops, v: Array, d: Array, e: Array, n: Number, low: Number, high: Number) -> None:
    """Rotations that chase the bulge of an implicit shift from `high` to `low`."""
    element = v.element
    g = (d[low + 1] - d[low]) / (2.0 * e[low])
    r = (g * g + 1.0).sqrt()
    shifted = loops.variable(d[high] - d[low] + e[low] / (g + r.with_sign_of(g)))
    sine, cosine = (loops.variable(loops.float(1.0, element)) for _ in range(2))
    moved = loops.variable(loops.float(0.0, element))
    whole = loops.variable(low >= 0)
    with loops.down(high, low) as i, loops.when(whole.get()):
        f, b = sine.get() * e[i], cosine.get() * e[i]
        radius = (f * f + shifted.get() * shifted.get()).sqrt()
        e[i + 1] = radius
        with loops.when(radius.equals(0.0)):
            # The chase ends early: the matrix has split.
            d[i + 1] = d[i + 1] - moved.get()
            e[high] = 0.0
            whole.set(low < 0)
        with loops.otherwise():
            s, c = f / radius, shifted.get() / radius
            sine.set(s)
            cosine.set(c)
            before = d[i + 1] - moved.get()
            turned = (d[i] - before) * s + 2.0 * c * b
            moved.set(s * turned)
            d[i + 1] = before + moved.get()
            shifted.set(c * turned - b)
            with loops.range(0, n) as k:
                upper, lower = v[i + 1, k], v[i, k]
                v[i + 1, k] = s * lower + c * upper
                v[i, k] = c * lower - s * upper
    with loops.when(whole.get()):
        d[low] = d[low] - moved.get()
        e[low] = shifted.get()
        e[high] = 0.0


def sort_ascending(loops: Loops, v: Array, d: Array, n: Number) -> None:
    with loops.range(0, n) as i:
        place = loops.variable(i)
        with loops.range(i + 1, n) as j, loops.when(d[j] < d[place.get()]):
            place.set(j)
        with loops.when(place.get().differs(i)):
            left, right = d[i], d[place.get()]
            d[i] = right
            d[place.get()] = left
            swap_rows(loops, v, i, place.get())
