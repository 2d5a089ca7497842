"""Sorts one row by a workgroup: not its elements move but their places, between two halves of a memory.

Runs of places that are in order are merged in pairs until one is left. Each place finds by itself where it goes: before
it come as many as do in its own run, and those of the other run that a binary search counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf

from eyas.codegen.common.lone import LoneOp, apply_body, read_place
from eyas.codegen.common.sizes import ZERO
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import each


class SortedRow:
    """The row of the sorted tensors at `others`, the indices along all dimensions but one. `places` holds two numbers
    of 32 bits for each element."""

    def __init__(
        self, memory: Memory, kernel: LoneOp, dimension: int, others: Sequence[mlir.Value], places: mlir.Value
    ):
        self.memory, self.at, self.kernel, self.dimension = memory, memory.at, kernel, dimension
        self.others, self.places = others, places
        self.length = memory.size(kernel.operands[0].shape[dimension])
        self.i32, self.index = mlir.IntegerType.get_signless(32), mlir.IndexType.get()

    def sort(self, start: mlir.Value) -> None:
        """Sorts and writes the results. All threads of the workgroup come here together."""
        zero, one = self.at.index(0), self.at.index(1)
        self._each(lambda place: self._put(arith.AddIOp(start, place).result, place))
        gpu.BarrierOp()
        types = [self.index, self.index, self.index]  # the length of runs, where they are, where they go
        loop = scf.WhileOp(types, [one, start, arith.AddIOp(start, self.length).result])
        check = loop.before.blocks.append(*types)
        with mlir.InsertionPoint(check):
            more = arith.CmpIOp(arith.CmpIPredicate.ult, check.arguments[0], self.length).result
            scf.ConditionOp(more, list(check.arguments))
        step = loop.after.blocks.append(*types)
        with mlir.InsertionPoint(step):
            width, source, target = step.arguments
            self._each(lambda number: self._merge(number, width, source, target))
            gpu.BarrierOp()
            scf.YieldOp([arith.AddIOp(width, width).result, target, source])
        source = loop.results[1]

        def write(number: mlir.Value) -> None:
            place = self._get(arith.AddIOp(source, number).result)
            for operand, result in zip(self.kernel.operands, self.kernel.results, strict=True):
                if result is not None:
                    value = read_place(self.memory, operand, self._position(place))
                    address = zero
                    for index, stride in zip(self._position(number), result.strides, strict=True):
                        address = self.memory.add(address, self.memory.scaled(index, stride))
                    self.memory.store(result, address, value, 1, ZERO, None)

        self._each(write)

    def _merge(self, number: mlir.Value, width: mlir.Value, source: mlir.Value, target: mlir.Value) -> None:
        """Moves the place with a number to where it is in the merged run."""
        place = self._get(arith.AddIOp(source, number).result)
        run = arith.AndIOp(number, arith.SubIOp(self.at.index(0), width).result).result
        is_right = arith.CmpIOp(arith.CmpIPredicate.ne, arith.AndIOp(number, width).result, self.at.index(0)).result
        first = arith.SelectOp(is_right, arith.SubIOp(run, width).result, run).result
        low = arith.SelectOp(is_right, first, arith.AddIOp(run, width).result).result
        low = arith.MinUIOp(low, self.length).result
        high = arith.MinUIOp(arith.AddIOp(low, width).result, self.length).result
        before = self._count(place, low, high, source)
        own = arith.SubIOp(number, run).result
        goes = arith.AddIOp(first, arith.AddIOp(own, before).result).result
        self._put(arith.AddIOp(target, goes).result, place)

    def _count(self, place: mlir.Value, low: mlir.Value, high: mlir.Value, source: mlir.Value) -> mlir.Value:
        """How many of the places that a run has from `low` to `high` come before one."""
        loop = scf.WhileOp([self.index, self.index], [low, high])
        check = loop.before.blocks.append(self.index, self.index)
        with mlir.InsertionPoint(check):
            more = arith.CmpIOp(arith.CmpIPredicate.ult, *check.arguments).result
            scf.ConditionOp(more, list(check.arguments))
        step = loop.after.blocks.append(self.index, self.index)
        with mlir.InsertionPoint(step):
            left, right = step.arguments
            middle = arith.ShRUIOp(arith.AddIOp(left, right).result, self.at.index(1)).result
            is_before = self._comes_before(self._get(arith.AddIOp(source, middle).result), place)
            after = arith.AddIOp(middle, self.at.index(1)).result
            scf.YieldOp(
                [arith.SelectOp(is_before, after, left).result, arith.SelectOp(is_before, right, middle).result]
            )
        return arith.SubIOp(loop.results[0], low).result

    def _comes_before(self, left: mlir.Value, right: mlir.Value) -> mlir.Value:
        """Whether what is at one place comes before what is at another. The body says of two whether the first of them
        may stay where it is, so that equal elements keep their order."""
        swapped = arith.CmpIOp(arith.CmpIPredicate.ugt, left, right).result
        pair = [arith.MinUIOp(left, right).result, arith.MaxUIOp(left, right).result]
        body = self.kernel.body
        arguments: list[mlir.Value | None] = []
        for number, argument in enumerate(body.arguments):
            used = bool(list(argument.uses))
            operand = self.kernel.operands[number // 2]
            arguments.append(read_place(self.memory, operand, self._position(pair[number % 2])) if used else None)
        (stays,) = apply_body(self.memory, body, arguments)
        return arith.XOrIOp(stays, swapped).result

    def _position(self, place: mlir.Value) -> list[mlir.Value]:
        return [*self.others[: self.dimension], place, *self.others[self.dimension :]]

    def _each(self, run: Callable[[mlir.Value], None]) -> None:
        each(self.at.thread, self.length, self.at.index(self.at.threads), run)

    def _get(self, address: mlir.Value) -> mlir.Value:
        return arith.IndexCastOp(self.index, memref.LoadOp(self.places, [address]).result).result

    def _put(self, address: mlir.Value, place: mlir.Value) -> None:
        memref.StoreOp(arith.IndexCastOp(self.i32, place).result, self.places, [address])
