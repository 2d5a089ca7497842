"""Eigenvalues and vectors of general real matrices: Hessenberg's form, Francis's double-shift QR steps to real Schur
form (EISPACK's hqr2), and vectors by substitution.

Two columns of the matrix of vectors belong to a pair of conjugate eigenvalues: real and imaginary part of the vector of
the one with the positive imaginary part, which comes first.
"""

from __future__ import annotations

from eyas.ir import mlir
from eyas.ir.loops import Array, Loops, Number, Variable
from eyas.passes.input.factorizations.common import copy_of, each, like, total
from eyas.passes.input.factorizations.substitution import substitute

_EPSILON = 2.0**-52
# Steps between shifts that break cycles, and how many such there are before an eigenvalue is taken as it is.
_PATIENCE, _MOST_STEPS = 10, 300


def eig(a: mlir.Value) -> list[mlir.Value]:
    """Real parts and imaginary parts of the eigenvalues, and the vectors; of f64."""
    loops = Loops()
    source = loops.array(a)
    n, element = source.size(1), source.element
    hessenberg, vectors = like(loops, source), like(loops, source)
    real, imaginary = (loops.new([source.size(0), n], element) for _ in range(2))
    reflector = loops.new([n], element)
    with each(loops, source) as b:
        copy_of(loops, source, b, hessenberg)
        h, v, d, e = (one.at(b) for one in (hessenberg, vectors, real, imaginary))
        with loops.range(0, n) as i, loops.range(0, n) as j:
            v[i, j] = i.equals(j).choose(loops.float(1.0, element), 0.0)
        _reduce(loops, h, v, reflector, n)
        norm = loops.variable(loops.float(0.0, element))
        with loops.range(0, n) as i:
            norm.set(norm.get() + total(loops, 0, n, element, lambda j: abs(h[i, j])))
        size = norm.get().equals(0.0).choose(loops.float(1.0, element), norm.get())
        _iterate(loops, h, v, d, e, n, size)
        substitute(loops, h, v, d, e, n, size * _EPSILON)
    return [real.place.value, imaginary.place.value, vectors.place.value]


def _reduce(loops: Loops, h: Array, v: Array, u: Array, n: Number) -> None:
    """Reflections from both sides leave zeros below the first subdiagonal; v becomes their product."""
    element = h.element
    with loops.range(1, n - 1) as m:
        scale = total(loops, m, n, element, lambda i: abs(h[i, m - 1]))
        beyond = total(loops, m + 1, n, element, lambda i: abs(h[i, m - 1]))
        with loops.when(beyond.differs(0.0)):
            square = loops.variable(loops.float(0.0, element))
            with loops.range(m, n) as i:
                value = h[i, m - 1] / scale
                u[i] = value
                square.set(square.get() + value * value)
            head = u[m]
            root = -(square.get().sqrt().with_sign_of(head))
            half = square.get() - head * root
            u[m] = head - root
            with loops.range(m, n) as j:
                share = total(loops, m, n, element, lambda i: u[i] * h[i, j]) / half
                with loops.range(m, n) as i:
                    h[i, j] = h[i, j] - share * u[i]
            for target in (h, v):
                with loops.range(0, n) as i:
                    share = total(loops, m, n, element, lambda j, target=target: u[j] * target[i, j]) / half
                    with loops.range(m, n) as j:
                        target[i, j] = target[i, j] - share * u[j]
            h[m, m - 1] = scale * root
            with loops.range(m + 1, n) as i:
                h[i, m - 1] = 0.0


def _iterate(loops: Loops, h: Array, v: Array, d: Array, e: Array, n: Number, norm: Number) -> None:
    """Splits off one eigenvalue, or a pair, at the end of what is left, until nothing is."""
    last, steps = loops.variable(n - 1), loops.variable(loops.index(0))
    since, shift = loops.variable(loops.index(0)), loops.variable(loops.float(0.0, h.element))
    with loops.repeat(lambda: last.get() >= 0):
        high = last.get()
        low = _split(loops, h, high, norm)
        is_one = low.equals(high) | (steps.get() >= _MOST_STEPS)
        is_pair = ~is_one & low.equals(high - 1)
        with loops.when(is_one):
            h[high, high] = h[high, high] + shift.get()
            d[high] = h[high, high]
            e[high] = 0.0
            last.set(high - 1)
        with loops.when(is_pair):
            _take_pair(loops, h, v, d, e, n, high, shift.get())
            last.set(high - 2)
        with loops.when(is_one | is_pair):
            steps.set(0)
            since.set(0)
        with loops.otherwise():
            steps.set(steps.get() + 1)
            since.set(since.get() + 1)
            _francis(loops, h, v, n, low, high, since, shift)


def _split(loops: Loops, h: Array, high: Number, norm: Number) -> Number:
    """The first row of the last block that is not coupled with what is before it."""
    row, looking = loops.variable(high), loops.variable(high > 0)
    with loops.repeat(lambda: looking.get()):
        at = row.get()
        near = abs(h[at - 1, at - 1]) + abs(h[at, at])
        near = near.equals(0.0).choose(norm, near)
        coupled = abs(h[at, at - 1]) > _EPSILON * near
        row.set(coupled.choose(at - 1, at))
        looking.set(coupled & (row.get() > 0))
    return row.get()


def _take_pair(loops: Loops, h: Array, v: Array, d: Array, e: Array, n: Number, high: Number, shift: Number) -> None:
    """Two eigenvalues of a block of two; a rotation makes it triangular if they are real."""
    before = high - 1
    w = h[high, before] * h[before, high]
    p = (h[before, before] - h[high, high]) * 0.5
    q = p * p + w
    root = abs(q).sqrt()
    h[high, high] = h[high, high] + shift
    h[before, before] = h[before, before] + shift
    x = h[high, high]
    with loops.when(q >= 0.0):
        z = p + root.with_sign_of(p)
        d[before] = x + z
        d[high] = z.equals(0.0).choose(x + z, x - w / z)
        e[before] = 0.0
        e[high] = 0.0
        corner = h[high, before]
        size = abs(corner) + abs(z)
        sine, cosine = corner / size, z / size
        length = (sine * sine + cosine * cosine).sqrt()
        sine, cosine = sine / length, cosine / length
        with loops.range(before, n) as j:
            upper, lower = h[before, j], h[high, j]
            h[before, j] = cosine * upper + sine * lower
            h[high, j] = cosine * lower - sine * upper
        for target, rows in ((h, high + 1), (v, n)):
            with loops.range(0, rows) as i:
                left, right = target[i, before], target[i, high]
                target[i, before] = cosine * left + sine * right
                target[i, high] = cosine * right - sine * left
    with loops.otherwise():
        d[before] = x + p
        d[high] = x + p
        e[before] = root
        e[high] = -root


def _francis(
    loops: Loops, h: Array, v: Array, n: Number, low: Number, high: Number, since: Variable, shift: Variable
) -> None:
    """One double-shift QR step on rows and columns low..high."""
    element = h.element
    x, y = loops.variable(h[high, high]), loops.variable(h[high - 1, high - 1])
    w = loops.variable(h[high, high - 1] * h[high - 1, high])
    with loops.when(since.get() > _PATIENCE):
        since.set(0)
        shift.set(shift.get() + x.get())
        own = x.get()
        with loops.range(0, high + 1) as i:
            h[i, i] = h[i, i] - own
        size = abs(h[high, high - 1]) + abs(h[high - 1, high - 2])
        x.set(size * 0.75)
        y.set(size * 0.75)
        w.set(size * size * -0.4375)
    p, q, r = (loops.variable(loops.float(0.0, element)) for _ in range(3))
    start = _start(loops, h, low, high, (x.get(), y.get(), w.get()), (p, q, r))
    with loops.range(start + 2, high + 1) as i:
        h[i, i - 2] = 0.0
        with loops.when(i > start + 2):
            h[i, i - 3] = 0.0
    with loops.range(start, high) as k:
        _chase(loops, h, v, n, (low, start, high), k, (p, q, r))


def _start(
    loops: Loops,
    h: Array,
    low: Number,
    high: Number,
    shifts: tuple[Number, Number, Number],
    vector: tuple[Variable, Variable, Variable],
) -> Number:
    """Where two consecutive small subdiagonal elements let the step begin, and the vector that it begins with."""
    x, y, w = shifts
    p, q, r = vector
    row, looking = loops.variable(high - 2), loops.variable(high >= 0)
    with loops.repeat(lambda: looking.get()):
        at = row.get()
        z = h[at, at]
        right, down = x - z, y - z
        p.set((right * down - w) / h[at + 1, at] + h[at, at + 1])
        q.set(h[at + 1, at + 1] - z - right - down)
        r.set(h[at + 2, at + 1])
        size = abs(p.get()) + abs(q.get()) + abs(r.get())
        for one in vector:
            one.set(one.get() / size)
        before = (at > 0).choose(at - 1, 0)
        coupled = abs(h[at, before]) * (abs(q.get()) + abs(r.get()))
        around = abs(h[before, before]) + abs(z) + abs(h[at + 1, at + 1])
        more = (at > low) & (coupled >= _EPSILON * abs(p.get()) * around)
        row.set(more.choose(at - 1, at))
        looking.set(more)
    return row.get()


def _chase(
    loops: Loops,
    h: Array,
    v: Array,
    n: Number,
    block: tuple[Number, Number, Number],
    k: Number,
    vector: tuple[Variable, Variable, Variable],
) -> None:
    """One reflection of rows and columns k, k + 1 and k + 2, which moves the bulge on; the last one has only two."""
    low, start, high = block
    p, q, r = vector
    has_third, is_first = k.differs(high - 1), k.equals(start)
    # Without a third, its factors are 0 and the second stands in for it.
    third = has_third.choose(k + 2, high)
    size = loops.variable(loops.float(1.0, h.element))
    with loops.when(~is_first):
        p.set(h[k, k - 1])
        q.set(h[k + 1, k - 1])
        r.set(has_third.choose(h[third, k - 1], 0.0))
        whole = abs(p.get()) + abs(q.get()) + abs(r.get())
        size.set(whole.equals(0.0).choose(loops.float(1.0, h.element), whole))
        for one in vector:
            one.set(one.get() / size.get())
    length = (p.get() * p.get() + q.get() * q.get() + r.get() * r.get()).sqrt().with_sign_of(p.get())
    with loops.when(length.differs(0.0)):
        with loops.when(~is_first):
            h[k, k - 1] = -length * size.get()
        with loops.when(is_first & low.differs(start)):
            h[k, k - 1] = -h[k, k - 1]
        head = p.get() + length
        x, y, z = head / length, q.get() / length, r.get() / length
        second, last = q.get() / head, r.get() / head
        with loops.range(k, n) as j:
            a, b, c = h[k, j], h[k + 1, j], h[third, j]
            share = a + second * b + last * c
            h[third, j] = c - share * z
            h[k, j] = a - share * x
            h[k + 1, j] = b - share * y
        reach = (high < k + 3).choose(high, k + 3) + 1
        for target, rows in ((h, reach), (v, n)):
            with loops.range(0, rows) as i:
                a, b, c = target[i, k], target[i, k + 1], target[i, third]
                share = x * a + y * b + z * c
                target[i, third] = c - share * last
                target[i, k] = a - share
                target[i, k + 1] = b - share * second
