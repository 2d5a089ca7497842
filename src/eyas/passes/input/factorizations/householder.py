"""QR factors by Householder's reflections, packed as LAPACK does."""

from __future__ import annotations

from eyas.ir import mlir
from eyas.ir.loops import Array, Loops, Number, Operand
from eyas.passes.input.factorizations.common import copy_of, each, like, real_of, scale_of


def qr(a: mlir.Value) -> list[mlir.Value]:
    """R on and above the diagonal, reflectors below it with a leading 1 that is not stored, and their factors tau.

    The diagonal of R is real. The product of the reflectors I - tau v v* is Q; their adjoints make R from A.
    """
    loops = Loops()
    source = loops.array(a)
    packed = like(loops, source)
    m, n, element = packed.size(1), packed.size(2), packed.element
    shape = mlir.RankedTensorType(a.type).shape
    dynamic = mlir.ShapedType.get_dynamic_size()
    steps = (m < n).choose(m, n) if dynamic in shape[1:] else loops.index(min(shape[1:]))
    taus = loops.new([packed.size(0), steps], element)
    weights = loops.new([n], element)
    with each(loops, packed) as b:
        copy_of(loops, source, b, packed)
        r = packed.at(b)
        with loops.range(0, steps) as j:
            scale = scale_of(loops, (m - j, 1), lambda i, _: r[i + j, j], element)
            squares = loops.variable(loops.float(0.0, real_of(element)))
            with loops.range(j + 1, m) as i:
                squares.set(squares.get() + (r[i, j] * scale).square())
            head, rest = r[j, j] * scale, squares.get()
            beyond = rest + head.imaginary() * head.imaginary() if head.is_complex else rest
            with loops.when(beyond.differs(0.0)):
                beta = -((head.square() + rest).sqrt().with_sign_of(head.real()))
                tau = (beta - head) / beta
                divisor = (head - beta) / scale
                taus[b, j] = tau
                r[j, j] = beta / scale
                with loops.range(j + 1, m) as i:
                    r[i, j] = r[i, j] / divisor
                _reflect(loops, r, r, j, tau.conjugate(), weights, (j + 1, n))
    return [packed.place.value, taus.place.value]


def householder_product(a: mlir.Value, taus: mlir.Value) -> list[mlir.Value]:
    """The first columns of the product of reflectors, as many as A has."""
    loops = Loops()
    vectors, factors = loops.array(a), loops.array(taus)
    m, n, element = vectors.size(1), vectors.size(2), vectors.element
    made = loops.new([vectors.size(0), m, n], element)
    weights = loops.new([n], element)
    with each(loops, vectors) as b:
        q = made.at(b)
        with loops.range(0, n) as i:
            q[i, i] = 1.0
        with loops.down(factors.size(1)) as j:
            _reflect(loops, q, vectors.at(b), j, factors[b, j], weights, (j, n))
    return [made.place.value]


def _reflect(
    loops: Loops, a: Array, vectors: Array, j: Number, tau: Number, weights: Array, columns: tuple[Operand, Operand]
) -> None:
    """(I - tau v v*) A in some columns; v is 1 at j and column j of `vectors` below."""
    m = a.size(0)
    with loops.range(*columns) as c:
        weights[c] = a[j, c]
    with loops.range(j + 1, m) as i:
        entry = vectors[i, j].conjugate()
        with loops.range(*columns) as c:
            weights[c] = weights[c] + entry * a[i, c]
    with loops.range(*columns) as c:
        weight = tau * weights[c]
        weights[c] = weight
        a[j, c] = a[j, c] - weight
    with loops.range(j + 1, m) as i:
        entry = vectors[i, j]
        with loops.range(*columns) as c:
            a[i, c] = a[i, c] - entry * weights[c]
