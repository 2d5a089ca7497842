"""What the factorisations share: loops over a batch, rows as vectors, pivots."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from eyas.ir import mlir
from eyas.ir.loops import Array, Loops, Number, Operand

# Numbers of other magnitude are scaled before they are squared.
LARGE, SMALL = 2.0**400, 2.0**-400


def int32() -> mlir.Type:
    return mlir.IntegerType.get_signless(32)


def real_of(element: mlir.Type) -> mlir.Type:
    """The type of magnitudes."""
    return element.element_type if isinstance(element, mlir.ComplexType) else element


def turned(a: mlir.Value, conjugate: bool) -> mlir.Value:
    """The transposes of the matrices of a batch, or their adjoints."""
    loops = Loops()
    source = loops.array(a)
    made = loops.new([source.size(0), source.size(2), source.size(1)], source.element)
    with each(loops, source) as b, loops.range(0, source.size(2)) as i, loops.range(0, source.size(1)) as j:
        value = source[b, j, i]
        made[b, i, j] = value.conjugate() if conjugate else value
    return made.place.value


def copy_of(loops: Loops, source: Array, at: Number, target: Array) -> None:
    """Copies one matrix of a batch."""
    with loops.range(0, source.size(1)) as i, loops.range(0, source.size(2)) as j:
        target[at, i, j] = source[at, i, j]


def like(loops: Loops, source: Array) -> Array:
    """A new array of the same shape and type."""
    return loops.new([source.size(dim) for dim in range(source.type.rank)], source.element)


def largest(loops: Loops, count: Operand, first: Operand, element: mlir.Type, value_at) -> tuple[Number, Number]:  # noqa: ANN001
    """Where `abs(value_at(i))` is largest for i from `first`, the first of equals, and that value."""
    start = first if isinstance(first, Number) else loops.index(int(first))
    place, most = loops.variable(start), loops.variable(loops.float(-1.0, real_of(element)))
    with loops.range(first, count) as i:
        magnitude = abs(value_at(i))
        with loops.when(magnitude > most.get()):
            place.set(i)
            most.set(magnitude)
    return place.get(), most.get()


def total(loops: Loops, lower: Operand, upper: Operand, element: mlir.Type, term_at) -> Number:  # noqa: ANN001
    """The sum of `term_at(i)`, which is of this type."""
    found = loops.variable(loops.float(0.0, element))
    with loops.range(lower, upper) as i:
        found.set(found.get() + term_at(i))
    return found.get()


def swap_rows(loops: Loops, a: Array, first: Number, second: Number) -> None:
    with loops.range(0, a.size(1)) as j:
        left, right = a[first, j], a[second, j]
        a[first, j] = right
        a[second, j] = left


def subtract_multiple(
    loops: Loops, a: Array, row: Number, factor: Number, other: Array, source: Number, columns: tuple[Operand, Operand]
) -> None:
    """a[row, columns] -= factor * other[source, columns]."""
    with loops.range(*columns) as j:
        a[row, j] = a[row, j] - factor * other[source, j]


@contextlib.contextmanager
def each(loops: Loops, array: Array) -> Iterator[Number]:
    """Over the batch: one loop around everything, which stays one also where the batch is known to be 1."""
    at = loops.variable(loops.index(0))
    with loops.repeat(lambda: at.get() < array.size(0)):
        yield at.get()
        at.set(at.get() + 1)


def scale_of(loops: Loops, count: tuple[Operand, Operand], value_at, element: mlir.Type) -> Number:  # noqa: ANN001
    """A power of two that brings a matrix to where squares of its elements neither overflow nor vanish."""
    element = real_of(element)
    most = loops.variable(loops.float(0.0, element))
    with loops.range(0, count[0]) as i, loops.range(0, count[1]) as j:
        magnitude = abs(value_at(i, j))
        most.set((magnitude > most.get()).choose(magnitude, most.get()))
    if str(element) != "f64":
        return loops.float(1.0, element)
    one = loops.float(1.0, element)
    found = (most.get() > LARGE).choose(loops.float(SMALL, element), one)
    return ((most.get() < SMALL) & (most.get() > 0.0)).choose(loops.float(LARGE, element), found)
