"""`convert-stablehlo-sort`: sorts become merge sorts in loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir.dialects import arith, tensor

from eyas.ir import Pass, mlir
from eyas.ir.structured import index_constant
from eyas.ir.walk import find_ops
from eyas.passes.input.stablehlo_scalars import (
    Values,
    inline_scalars,
    loop,
    nest,
    restore,
    signless,
    size_of,
    sizes_of,
    when,
)

# Rows of a dynamic length double their runs at most this often: no tensor has more elements.
_MOST_PASSES = 48


@dataclass(frozen=True)
class ConvertStablehloSort(Pass):
    """Turns `stablehlo.sort` into a bottom-up merge sort, which is stable whether asked or not.

    Each row is copied out, merged in passes of doubled width between two buffers, and written back.

        %r = stablehlo.sort(%x) ({ compare LT }) {dimension = 1}
    becomes
        scf.for %row ... {
          scf.for %pass ... { scf.for %run ... { scf.for %k ... merge two runs } }
        }
    """

    name: ClassVar[str] = "convert-stablehlo-sort"

    def run(self, module: mlir.Module) -> None:
        for op in find_ops(module, "stablehlo.sort"):
            dimension = mlir.IntegerAttr(op.operation.attributes["dimension"]).value
            type_ = mlir.RankedTensorType(op.operation.operands[0].type)
            dimension += type_.rank if dimension < 0 else 0
            with mlir.InsertionPoint(op), op.location:
                results = _convert(op.operation, dimension)
                for old, new in zip(op.operation.results, results, strict=True):
                    old.replace_all_uses_with(restore(new, old.type))
            op.operation.erase()


def _convert(op: mlir.Operation, dimension: int) -> Values:
    inputs = [signless(value) for value in op.operands]
    type_ = mlir.RankedTensorType(inputs[0].type)
    if not type_.is_dynamic_dim(dimension) and type_.shape[dimension] <= 1:
        return inputs
    others = [size for dim, size in enumerate(sizes_of(inputs[0])) if dim != dimension]
    zero, end = index_constant(0), size_of(inputs[0], dimension)
    passes = _passes(type_, dimension)
    comparator = op.regions[0].blocks[0]

    def sort_row(outer: Values, tensors: Values) -> Values:
        def at(index: mlir.Value) -> Values:
            return [*outer[:dimension], index, *outer[dimension:]]

        length = end if type_.is_dynamic_dim(dimension) else type_.shape[dimension]
        buffers = [tensor.empty([length], mlir.RankedTensorType(value.type).element_type) for value in tensors]
        rows = loop(
            zero,
            end,
            buffers,
            lambda i, into: [
                tensor.insert(tensor.extract(v, at(i)), t, [i]) for v, t in zip(tensors, into, strict=True)
            ],
        )
        rows = _merge_passes(comparator, rows, length, end, passes)
        return loop(
            zero,
            end,
            tensors,
            lambda i, into: [tensor.insert(tensor.extract(v, [i]), t, at(i)) for v, t in zip(rows, into, strict=True)],
        )

    return nest(others, inputs, sort_row)


def _passes(type_: mlir.RankedTensorType, dimension: int) -> mlir.Value:
    """How often runs double until one is as long as the row."""
    if not type_.is_dynamic_dim(dimension):
        return index_constant((type_.shape[dimension] - 1).bit_length())
    return index_constant(_MOST_PASSES)


def _merge_passes(
    comparator: mlir.Block, rows: Values, length: int | mlir.Value, end: mlir.Value, passes: mlir.Value
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
                pairs = [value for pair in zip(rights, lefts, strict=True) for value in pair]
                right_first = inline_scalars(comparator, pairs)[0]
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
        targets = [tensor.empty([length], mlir.RankedTensorType(value.type).element_type) for value in source]
        return loop(zero, runs, targets, merge)

    return loop(zero, passes, rows, one_pass)
