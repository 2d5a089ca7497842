"""The part of a scatter's target that one workgroup has: how its threads bring the updates there that belong there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf

from eyas.codegen.common.sizes import ONE, ZERO
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import each
from eyas.codegen.gpu.scattered import Scattered


def part_bytes(threads: Any, slots: Any) -> Any:
    """Shared memory that a part takes at the most."""
    return 4 * (threads + slots + 1)


class Part:
    """The part of the target that a workgroup has."""

    def __init__(self, memory: Memory, scattered: Scattered, threads: int, slots: int):
        self.memory, self.at, self.scattered = memory, memory.at, scattered
        self.threads, self.slots = threads, slots
        self.i32 = mlir.IntegerType.get_signless(32)
        result = scattered.kernel.results[0]
        assert result is not None
        self.result = result
        self.run = memory.size(scattered.run)
        self.updates = memory.size(scattered.updates)
        self.step = memory.at.index(threads)

    def assign(self, first: mlir.Value) -> None:
        """Finds the last update of each slot, then writes all elements."""
        winners = self._numbers(self.slots)
        self._fill(winners, self.slots, 0)
        gpu.BarrierOp()

        def find(update: mlir.Value) -> None:
            slot, inside = self._slot(first, update)
            branch = scf.IfOp(inside)
            with mlir.InsertionPoint(branch.then_block):
                number = self._number(arith.AddIOp(update, self.at.index(1)).result)
                _atomic("maxu", winners, slot, number)
                scf.YieldOp([])

        def write(element: mlir.Value, address: mlir.Value) -> None:
            slot, rest = self._split(element)
            winner = memref.LoadOp(winners, [slot]).result
            is_new = arith.CmpIOp(arith.CmpIPredicate.ne, winner, self.at.constant(self.i32, 0)).result
            choice = scf.IfOp(is_new, [self.result.element], has_else=True)
            with mlir.InsertionPoint(choice.then_block):
                number = arith.IndexCastOp(mlir.IndexType.get(), winner).result
                update = arith.SubIOp(number, self.at.index(1)).result
                scf.YieldOp([self.scattered.value(self.memory, update, rest, None)])
            with mlir.InsertionPoint(choice.else_block):
                scf.YieldOp([self.scattered.old(self.memory, address)])
            self._store(address, choice.results[0])

        each(self.at.thread, self.updates, self.step, find)
        gpu.BarrierOp()
        self._each_element(first, write)
        gpu.BarrierOp()  # before the memory is used again

    def change_runs(self, first: mlir.Value) -> None:
        """The slots of so many updates as there are threads are noted, then all threads make each change in turn."""
        slots, found = self._numbers(self.threads), self._numbers(1)
        self._copy(first)

        def change(number: mlir.Value, block: mlir.Value) -> None:
            slot = memref.LoadOp(slots, [number]).result
            branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.sge, slot, self.at.constant(self.i32, 0)).result)
            with mlir.InsertionPoint(branch.then_block):
                update = arith.AddIOp(block, number).result
                row = arith.AddIOp(first, arith.IndexCastOp(mlir.IndexType.get(), slot).result).result
                start = arith.MulIOp(row, self.run).result

                def one(rest: mlir.Value) -> None:
                    self._change(update, rest, arith.AddIOp(start, rest).result)

                each(self.at.thread, self.run, self.step, one)
                scf.YieldOp([])

        def block_of_updates(block: mlir.Value) -> None:
            self._fill(found, 1, 0)
            slot, inside = self._slot_of_thread(first, block)
            gpu.BarrierOp()
            none = self.at.constant(self.i32, -1)
            memref.StoreOp(arith.SelectOp(inside, self._number(slot), none).result, slots, [self.at.thread])
            one = self.at.constant(self.i32, 1)
            self._when(inside, lambda: _atomic("maxu", found, self.at.index(0), one))
            gpu.BarrierOp()
            some = memref.LoadOp(found, [self.at.index(0)]).result
            branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ne, some, self.at.constant(self.i32, 0)).result)
            with mlir.InsertionPoint(branch.then_block):
                each(self.at.index(0), self.step, self.at.index(1), lambda number: change(number, block))
                scf.YieldOp([])
            gpu.BarrierOp()

        each(self.at.index(0), self.updates, self.step, block_of_updates)

    def change_elements(self, first: mlir.Value) -> None:
        """Each thread has an update, and waits for those before it that go to the same element."""
        owners, waiting = self._numbers(self.slots), self._numbers(1)
        nobody, thread = self.at.constant(self.i32, -1), self._number(self.at.thread)
        self._fill(owners, self.slots, -1)
        self._fill(waiting, 1, 0)
        self._copy(first)
        i1 = mlir.IntegerType.get_signless(1)

        def turn(update: mlir.Value, slot: mlir.Value, pending: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
            """Those go ahead that are first; gives whether this thread waits, and how many do."""
            self._when(pending, lambda: _atomic("minu", owners, slot, thread))
            gpu.BarrierOp()
            owner = memref.LoadOp(owners, [slot]).result
            mine = arith.AndIOp(pending, arith.CmpIOp(arith.CmpIPredicate.eq, owner, thread).result).result
            gpu.BarrierOp()

            def change() -> None:
                self._change(update, self.at.index(0), arith.AddIOp(first, slot).result)
                memref.StoreOp(nobody, owners, [slot])

            self._when(mine, change)
            waits = arith.AndIOp(pending, arith.XOrIOp(mine, self.at.constant(i1, 1)).result).result
            one = self.at.constant(self.i32, 1)
            self._when(waits, lambda: _atomic("addi", waiting, self.at.index(0), one))
            gpu.BarrierOp()
            count = memref.LoadOp(waiting, [self.at.index(0)]).result
            gpu.BarrierOp()
            self._fill(waiting, 1, 0)
            return waits, count

        def block_of_updates(block: mlir.Value) -> None:
            slot, inside = self._slot_of_thread(first, block)
            update = arith.AddIOp(block, self.at.thread).result
            slot = arith.SelectOp(inside, slot, self.at.index(0)).result
            loop = scf.WhileOp([i1, self.i32], [inside, self.at.constant(self.i32, 1)])
            check = loop.before.blocks.append(i1, self.i32)
            with mlir.InsertionPoint(check):
                more = arith.CmpIOp(arith.CmpIPredicate.ne, check.arguments[1], self.at.constant(self.i32, 0)).result
                scf.ConditionOp(more, list(check.arguments))
            step = loop.after.blocks.append(i1, self.i32)
            with mlir.InsertionPoint(step):
                scf.YieldOp(list(turn(update, slot, step.arguments[0])))

        each(self.at.index(0), self.updates, self.step, block_of_updates)
        gpu.BarrierOp()

    # --- parts of these -----------------------------------------------------------------------------------------------

    def _slot(self, first: mlir.Value, update: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
        """The slot of an update, counted from the first of this part, and whether it is one of them."""
        slot, inside = self.scattered.slot(self.memory, update)
        own = arith.SubIOp(slot, first).result
        near = arith.CmpIOp(arith.CmpIPredicate.ult, own, self.at.index(self.slots)).result
        return own, arith.AndIOp(inside, near).result

    def _slot_of_thread(self, first: mlir.Value, block: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
        """The same for this thread's update of a block of them, the last of which may be short."""
        update = arith.AddIOp(block, self.at.thread).result
        exists = arith.CmpIOp(arith.CmpIPredicate.ult, update, self.updates).result
        slot, inside = self._slot(first, arith.SelectOp(exists, update, self.at.index(0)).result)
        return slot, arith.AndIOp(exists, inside).result

    def _copy(self, first: mlir.Value) -> None:
        self._each_element(first, lambda _, address: self._store(address, self.scattered.old(self.memory, address)))
        gpu.BarrierOp()

    def _each_element(self, first: mlir.Value, run: Callable[[mlir.Value, mlir.Value], None]) -> None:
        """Runs code for each element of the part, with its number there and its address."""
        start = arith.MulIOp(first, self.run).result
        last = arith.AddIOp(first, self.at.index(self.slots)).result
        end = arith.MulIOp(arith.MinUIOp(last, self.memory.size(self.scattered.slots)).result, self.run).result
        count = arith.SubIOp(end, start).result
        each(self.at.thread, count, self.step, lambda element: run(element, arith.AddIOp(start, element).result))

    def _change(self, update: mlir.Value, rest: mlir.Value, address: mlir.Value) -> None:
        old = self.memory.load(self.result, address, 1, ZERO, None)
        self._store(address, self.scattered.value(self.memory, update, rest, old))

    def _split(self, element: mlir.Value) -> tuple[mlir.Value, mlir.Value]:
        """The slot of an element of the part, and where in it that is."""
        if self.scattered.run == ONE:
            return element, self.at.index(0)
        return arith.DivUIOp(element, self.run).result, arith.RemUIOp(element, self.run).result

    def _store(self, address: mlir.Value, value: mlir.Value) -> None:
        self.memory.store(self.result, address, value, 1, ZERO, None)

    def _numbers(self, count: int) -> mlir.Value:
        return self.at.shared(self.i32, count)

    def _number(self, index: mlir.Value) -> mlir.Value:
        return arith.IndexCastOp(self.i32, index).result

    def _fill(self, numbers: mlir.Value, count: int, value: int) -> None:
        constant = self.at.constant(self.i32, value)
        once = count <= self.threads

        def store(index: mlir.Value) -> None:
            memref.StoreOp(constant, numbers, [index])

        each(self.at.thread, self.at.index(count), self.step, store, once)

    def _when(self, condition: mlir.Value, run: Callable[[], object]) -> None:
        branch = scf.IfOp(condition)
        with mlir.InsertionPoint(branch.then_block):
            run()
            scf.YieldOp([])


def _atomic(kind: str, numbers: mlir.Value, index: mlir.Value, value: mlir.Value) -> None:
    memref.AtomicRMWOp(getattr(arith.AtomicRMWKind, kind), value, numbers, [index])
