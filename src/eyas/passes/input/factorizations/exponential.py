"""The exponential of matrices: Taylor's series of a part that is small, squared as often as that part was halved."""

from __future__ import annotations

from eyas.ir import mlir
from eyas.ir.loops import Array, Loops, Number
from eyas.passes.input.factorizations.common import each, total

# The first term that is left out is below 2^-19 / 19!.
_TERMS = 18
_MOST_HALVINGS = 1100


def matrix_exp(a: mlir.Value) -> list[mlir.Value]:
    loops = Loops()
    source = loops.array(a)
    n, element = source.size(1), source.element
    made = loops.new([source.size(0), n, n], element)
    scaled, product = (loops.new([n, n], element) for _ in range(2))
    with each(loops, source) as b:
        result, given = made.at(b), source.at(b)
        norm = loops.variable(loops.float(0.0, element))
        with loops.range(0, n) as i:
            row = total(loops, 0, n, element, lambda j: abs(given[i, j]))
            norm.set((row > norm.get()).choose(row, norm.get()))
        halvings, factor = loops.variable(loops.index(0)), loops.variable(loops.float(1.0, element))
        with loops.repeat(lambda: (norm.get() * factor.get() > 0.5) & (halvings.get() < _MOST_HALVINGS)):
            halvings.set(halvings.get() + 1)
            factor.set(factor.get() * 0.5)
        with loops.range(0, n) as i, loops.range(0, n) as j:
            scaled[i, j] = given[i, j] * factor.get()
            result[i, j] = i.equals(j).choose(loops.float(1.0, element), 0.0)
        divisor = loops.variable(loops.float(float(_TERMS), element))
        with loops.range(0, _TERMS):
            _multiply(loops, scaled, result, product, n)
            with loops.range(0, n) as i, loops.range(0, n) as j:
                unit = i.equals(j).choose(loops.float(1.0, element), 0.0)
                result[i, j] = unit + product[i, j] / divisor.get()
            divisor.set(divisor.get() - 1.0)
        with loops.range(0, halvings.get()):
            _multiply(loops, result, result, product, n)
            with loops.range(0, n) as i, loops.range(0, n) as j:
                result[i, j] = product[i, j]
    return [made.place.value]


def _multiply(loops: Loops, left: Array, right: Array, product: Array, n: Number) -> None:
    with loops.range(0, n) as i:
        with loops.range(0, n) as j:
            product[i, j] = 0.0
        with loops.range(0, n) as k:
            factor = left[i, k]
            with loops.range(0, n) as j:
                product[i, j] = product[i, j] + factor * right[k, j]
