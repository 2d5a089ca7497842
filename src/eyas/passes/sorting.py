"""Sorts as loops on tensors: a merge sort, and a selection of the first few.

Both are stable. What comes first is decided by a function that builds the comparison of two places, each given by the
elements there of all tensors that are sorted together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir.dialects import arith, linalg, scf, tensor

from eyas.ir import mlir
from eyas.ir.structured import index_constant
from eyas.passes.input.stablehlo_scalars import Values, loop, nest, size_of, sizes_of, when

Before = Callable[[Values, Values], mlir.Value]
"""Builds whether the elements of the second list, which stand behind those of the first, must come before them."""

# Rows of a dynamic length double their runs at most this often: no tensor has more elements.
_MOST_PASSES = 48


def merge_sort(inputs: Sequence[mlir.Value], dimension: int, before: Before, used: Sequence[bool]) -> Values:
    """Sorts rows along a dimension: each is copied out, merged in passes of doubled width between two buffers, and
    written back. Only tensors that are `used` are written; others are returned as they are."""
    type_ = mlir.RankedTensorType(inputs[0].type)
    if not type_.is_dynamic_dim(dimension) and type_.shape[dimension] <= 1:
        return list(inputs)
    others = [size for dim, size in enumerate(sizes_of(inputs[0])) if dim != dimension]
    zero, end = index_constant(0), size_of(inputs[0], dimension)
    passes = _passes(type_, dimension)
    length = end if type_.is_dynamic_dim(dimension) else type_.shape[dimension]

    def sort_row(outer: Values, written: Values) -> Values:
        def at(index: mlir.Value) -> Values:
            return [*outer[:dimension], index, *outer[dimension:]]

        carried = iter(written)
        tensors = [next(carried) if is_used else value for value, is_used in zip(inputs, used, strict=True)]
        rows = loop(
            zero,
            end,
            [_zeros(length, _element(value)) for value in tensors],
            lambda i, into: [
                tensor.insert(tensor.extract(v, at(i)), t, [i]) for v, t in zip(tensors, into, strict=True)
            ],
        )
        rows = _merge_passes(before, rows, length, end, passes)
        kept = [row for row, is_used in zip(rows, used, strict=True) if is_used]
        return loop(
            zero,
            end,
            written,
            lambda i, into: [tensor.insert(tensor.extract(v, [i]), t, at(i)) for v, t in zip(kept, into, strict=True)],
        )

    made = iter(nest(others, [value for value, is_used in zip(inputs, used, strict=True) if is_used], sort_row))
    return [next(made) if is_used else value for value, is_used in zip(inputs, used, strict=True)]


def select_first(inputs: Sequence[mlir.Value], dimension: int, before: Before, count: int) -> Values:
    """The first `count` places of rows that are sorted along a dimension, which is at least as long. Each element is
    compared with the last of those found so far, and seldom moves any of them."""
    others = [size for dim, size in enumerate(sizes_of(inputs[0])) if dim != dimension]
    zero, one, end = index_constant(0), index_constant(1), size_of(inputs[0], dimension)
    last, i1 = index_constant(count - 1), mlir.IntegerType.get_signless(1)
    results = [_first_of(value, dimension, count) for value in inputs]

    def select_row(outer: Values, into: Values) -> Values:
        def at(index: mlir.Value) -> Values:
            return [*outer[:dimension], index, *outer[dimension:]]

        def consider(place: mlir.Value, best: Values) -> Values:
            elements = [tensor.extract(value, at(place)) for value in inputs]
            lasts = [tensor.extract(value, [last]) for value in best]
            is_early = arith.cmpi(arith.CmpIPredicate.ult, place, index_constant(count))
            wanted = arith.ori(is_early, before(lasts, elements))
            return when(wanted, best, lambda: _insert(before, best, elements, arith.minui(place, last)))

        best = loop(zero, end, [_zeros(count, _element(value)) for value in inputs], consider)
        return loop(
            zero,
            index_constant(count),
            into,
            lambda i, into: [tensor.insert(tensor.extract(v, [i]), t, at(i)) for v, t in zip(best, into, strict=True)],
        )

    def _insert(before: Before, best: Values, elements: Values, place: mlir.Value) -> Values:
        """Moves those that come later by one place, from `place` upwards."""
        types = [mlir.IndexType.get(), *(value.type for value in best)]
        move = scf.WhileOp(types, [place, *best])
        locations = [mlir.Location.current] * len(types)
        check = mlir.Block.create_at_start(move.before, types, locations)
        step = mlir.Block.create_at_start(move.after, types, locations)
        with mlir.InsertionPoint(check):
            here, *rows = check.arguments
            more = arith.cmpi(arith.CmpIPredicate.ne, here, zero)
            # The first place is compared with itself; what that says does not matter.
            previous = arith.subi(here, arith.index_castui(mlir.IndexType.get(), more))
            goes_on = before([tensor.extract(row, [previous]) for row in rows], elements)
            scf.ConditionOp(arith.select(more, goes_on, arith.constant(i1, 0)), list(check.arguments))
        with mlir.InsertionPoint(step):
            here, *rows = step.arguments
            previous = arith.subi(here, one)
            moved = [tensor.insert(tensor.extract(row, [previous]), row, [here]) for row in rows]
            scf.YieldOp([previous, *moved])
        here, *rows = move.results
        return [tensor.insert(element, row, [here]) for element, row in zip(elements, rows, strict=True)]

    return nest(others, results, select_row)


def _element(value: mlir.Value) -> mlir.Type:
    return mlir.RankedTensorType(value.type).element_type


def _zeros(length: int | mlir.Value, element: mlir.Type) -> mlir.Value:
    """A row. Two that were not filled could become one, since nothing is known to be in them."""
    return _filled(tensor.empty([length], element))


def _first_of(value: mlir.Value, dimension: int, count: int) -> mlir.Value:
    sizes = [
        count if dim == dimension else size_of(value, dim) if value.type.is_dynamic_dim(dim) else value.type.shape[dim]
        for dim in range(value.type.rank)
    ]
    return _filled(tensor.empty(sizes, _element(value)))


def _filled(empty: mlir.Value) -> mlir.Value:
    element = _element(empty)
    is_integer = isinstance(element, mlir.IntegerType | mlir.IndexType)
    return linalg.fill(arith.constant(element, 0 if is_integer else 0.0), outs=[empty])


def _passes(type_: mlir.RankedTensorType, dimension: int) -> mlir.Value:
    """How often runs double until one is as long as the row."""
    if not type_.is_dynamic_dim(dimension):
        return index_constant((type_.shape[dimension] - 1).bit_length())
    return index_constant(_MOST_PASSES)


def _merge_passes(
    before: Before, rows: Values, length: int | mlir.Value, end: mlir.Value, passes: mlir.Value
) -> Values:
    zero, one = index_constant(0), index_constant(1)
    index = mlir.IndexType.get()

    def one_pass(number: mlir.Value, source: Values) -> Values:
        width = arith.shli(one, number)
        double = arith.shli(width, one)
        runs = arith.ceildivui(end, double)

        def merge(run: mlir.Value, target: Values) -> Values:
            start = arith.muli(run, double)
            middle = arith.minui(arith.addi(start, width), end)
            stop = arith.minui(arith.addi(start, double), end)

            def take(position: mlir.Value, carried: Values) -> Values:
                left, right, into = carried[0], carried[1], carried[2:]
                has_left = arith.cmpi(arith.CmpIPredicate.ult, left, middle)
                has_right = arith.cmpi(arith.CmpIPredicate.ult, right, stop)
                # An exhausted side is read at a place that exists; its value is not used.
                left_at = arith.minui(left, arith.subi(middle, one))
                right_at = arith.minui(right, arith.subi(stop, one))
                lefts = [tensor.extract(value, [left_at]) for value in source]
                rights = [tensor.extract(value, [right_at]) for value in source]
                right_first = before(lefts, rights)
                no = arith.constant(mlir.IntegerType.get_signless(1), 0)
                from_right = arith.select(has_left, arith.select(has_right, right_first, no), has_right)
                chosen = [arith.select(from_right, r, x) for x, r in zip(lefts, rights, strict=True)]
                step = arith.index_castui(index, from_right)
                return [
                    arith.addi(left, arith.subi(one, step)),
                    arith.addi(right, step),
                    *(tensor.insert(value, t, [position]) for value, t in zip(chosen, into, strict=True)),
                ]

            return loop(start, stop, [start, middle, *target], take)[2:]

        if not isinstance(length, int):
            # The number of passes is known only here: what is sorted already goes through.
            unsorted = arith.cmpi(arith.CmpIPredicate.ult, width, end)
            return when(unsorted, source, lambda: merge_runs(source, runs, merge))
        return merge_runs(source, runs, merge)

    def merge_runs(source: Values, runs: mlir.Value, merge: Callable[[mlir.Value, Values], Values]) -> Values:
        return loop(zero, runs, [_zeros(length, _element(value)) for value in source], merge)

    return loop(zero, passes, rows, one_pass)
