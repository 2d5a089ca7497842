"""Rules for loops and branches. They keep their shape; memory that goes around a loop or out of a branch gets a place.

Two iterations of a loop allocate the same span, so that a buffer which a loop hands on to its next iteration is copied
to a span of the loop's own. A branch only says which of two places it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, scf

from eyas.codegen.gpu.flat_memory import View, plus
from eyas.codegen.gpu.flatten import PRIVATE_BYTES, Flattener, unknown
from eyas.ir.values import element_bytes
from eyas.ir.walk import find_ops

_WRITES = ("memref.store", "memref.copy")
_FOR_MANY = ("scf.parallel", "memref.copy")


def for_(flat: Flattener, op: mlir.Operation) -> None:
    lower, upper, step, *inits = op.operands

    def write() -> list[mlir.Value]:
        carried = _Carried(flat, inits)
        loop = scf.ForOp(flat.value(lower), flat.value(upper), flat.value(step), carried.scalars)
        body = op.regions[0].blocks[0]
        counter, *arguments = body.arguments
        flat.values[counter] = loop.induction_variable
        carried.enter(arguments, loop.inner_iter_args)
        with mlir.InsertionPoint(loop.body):
            end = flat.block(body)
            scf.YieldOp(carried.hand_on(end.operands))
        return carried.leave(op.results, loop.results)

    _structure(flat, op, write)


def while_(flat: Flattener, op: mlir.Operation) -> None:
    def write() -> list[mlir.Value]:
        carried = _Carried(flat, op.operands)
        test, body = op.regions[0].blocks[0], op.regions[1].blocks[0]
        kinds = [value.type for value in op.results if not _is_memory(value)]
        loop = scf.WhileOp(kinds, carried.scalars)
        before = loop.before.blocks.append(*[value.type for value in carried.scalars])
        carried.enter(test.arguments, before.arguments)
        with mlir.InsertionPoint(before):
            end = flat.block(test)
            condition, *passed = end.operands
            views = {one: carried.settled(flat.views[one], end) for one in passed if _is_memory(one)}
            _fence(flat)
            scf.ConditionOp(flat.value(condition), [flat.value(one) for one in passed if not _is_memory(one)])
        after = loop.after.blocks.append(*kinds)
        scalars = iter(after.arguments)
        for argument, one, result in zip(body.arguments, passed, op.results, strict=True):
            if _is_memory(one):
                flat.views[argument] = flat.views[result] = views[one]
            else:
                flat.values[argument] = next(scalars)
        with mlir.InsertionPoint(after):
            end = flat.block(body)
            scf.YieldOp(carried.hand_on(end.operands))
        return list(loop.results)

    _structure(flat, op, write)


def if_(flat: Flattener, op: mlir.Operation) -> None:
    def write() -> list[mlir.Value]:
        kept: list[list[View]] = []

        def branch(region: mlir.Region) -> list[mlir.Value]:
            end = flat.block(region.blocks[0])
            views = [flat.in_scratch(flat.views[one]) for one in end.operands if _is_memory(one)]
            kept.append(views)
            _fence(flat)
            scalars = [flat.value(one) for one in end.operands if not _is_memory(one)]
            return scalars + [part for view in views for part in (view.offset, *view.sizes, *view.strides)]

        scalars = [one for one in op.results if not _is_memory(one)]
        memories = [one for one in op.results if _is_memory(one)]
        index = mlir.IndexType.get()
        ranks = [mlir.MemRefType(one.type).rank for one in memories]
        kinds = [one.type for one in scalars] + [index] * sum(1 + 2 * rank for rank in ranks)
        has_else = bool(op.regions[1].blocks)
        made = scf.IfOp(flat.value(op.operands[0]), kinds, has_else=has_else)
        with mlir.InsertionPoint(made.then_block):
            scf.YieldOp(branch(op.regions[0]))
        if has_else:
            with mlir.InsertionPoint(made.else_block):
                scf.YieldOp(branch(op.regions[1]))
        parts = iter(list(made.results)[len(scalars) :])
        for memory, rank, first, second in zip(memories, ranks, *kept[:2] if memories else ((), ()), strict=True):
            offset = next(parts)
            sizes, strides = (tuple(next(parts) for _ in range(rank)) for _ in range(2))
            bounds = tuple(a if a == b else plus(a, b) for a, b in zip(first.bounds, second.bounds, strict=True))
            one_of = replace(first, sizes=sizes, strides=strides, bounds=bounds)
            flat.views[memory] = flat.spans.at_offset(one_of, offset)
        return list(made.results)[: len(scalars)]

    _structure(flat, op, write)


def parallel(flat: Flattener, op: mlir.Operation) -> None:
    """Iterations that do not depend on each other. What they allocate is each thread's own if it is small; else one
    thread does them all."""
    if op.results:
        raise unknown(op)
    block = op.regions[0].blocks[0]
    rank = len(block.arguments)
    lower, upper, steps = ([flat.value(one) for one in list(op.operands)[k * rank : (k + 1) * rank]] for k in range(3))
    lengths = [arith.subi(high, low) for low, high in zip(lower, upper, strict=True)]
    sizes = [arith.ceildivui(length, step) for length, step in zip(lengths, steps, strict=True)]

    def body(indices: Sequence[mlir.Value]) -> None:
        for argument, index, low, step in zip(block.arguments, indices, lower, steps, strict=True):
            flat.values[argument] = arith.addi(low, arith.muli(index, step))
        flat.block(block)

    allocations = find_ops(op, "memref.alloc", "memref.alloca")
    if not allocations or not flat.crew:
        flat.share(sizes, body)
    elif all(_is_small(one.results[0].type) for one in allocations) and not _carries_memory(op):
        flat.allocates_privately = True
        flat.share(sizes, body)
        flat.allocates_privately = False
    else:
        flat.alone(lambda: flat.share(sizes, body))


def _structure(flat: Flattener, op: mlir.Operation, write: Callable[[], list[mlir.Value]]) -> None:
    """Has a loop or a branch written: by the thread that is alone, by one thread if it writes and nothing in it is for
    many, else by all threads together. `write` gives the results that are not memory."""
    scalars = [one for one in op.results if not _is_memory(one)]
    crew = flat.crew
    if crew is None:
        flat.values.update(zip(scalars, write(), strict=True))
        return
    writes = bool(find_ops(op, *_WRITES, "scf.parallel"))
    if not writes or find_ops(op, *_FOR_MANY) or _carries_memory(op):
        crew.fence()
        results = write()
        crew.fence()
        flat.values.update(zip(scalars, results, strict=True))
        return
    slots = [flat.spans.allocate(one.type, [], []) for one in scalars]

    def leave_results() -> None:
        for slot, result in zip(slots, write(), strict=True):
            slot.store(result, [])

    flat.alone(leave_results)
    for one, slot in zip(scalars, slots, strict=True):
        crew.before_read()
        flat.values[one] = slot.load([])


class _Carried:
    """Values that go around a loop: scalars as they are, memory as spans of the loop."""

    def __init__(self, flat: Flattener, inits: Sequence[mlir.Value]):
        self._flat = flat
        self._own: list[View | None] = []
        self.scalars: list[mlir.Value] = []
        for init in inits:
            if not _is_memory(init):
                self._own.append(None)
                self.scalars.append(flat.value(init))
                continue
            view = flat.views[init]
            own = flat.spans.allocate(view.element, view.sizes, view.bounds)
            flat.copy_view(view, own)
            self._own.append(own)
        _fence(flat)

    def enter(self, arguments: Sequence[mlir.Value], scalars: Sequence[mlir.Value]) -> None:
        """The block that begins an iteration."""
        values = iter(scalars)
        for argument, own in zip(arguments, self._own, strict=True):
            if own is None:
                self._flat.values[argument] = next(values)
            else:
                self._flat.views[argument] = own

    def hand_on(self, yielded: Sequence[mlir.Value]) -> list[mlir.Value]:
        """Moves memory to the loop's spans, and gives the scalars. What lies in one of those spans moves twice: another
        may be moved over it first."""
        flat = self._flat
        moves: list[tuple[View, View]] = []
        for value, own in zip(yielded, self._own, strict=True):
            if own is None or flat.views[value] is own:
                continue
            view = flat.views[value]
            self._check_sizes(view, own, value)
            if flat.spans.has(view):
                aside = flat.spans.allocate(view.element, view.sizes, view.bounds)
                flat.copy_view(view, aside)
                view = aside
            moves.append((view, own))
        for view, own in moves:
            flat.copy_view(view, own)
        _fence(flat)
        return [flat.value(value) for value, own in zip(yielded, self._own, strict=True) if own is None]

    def leave(self, results: Sequence[mlir.Value], scalars: Sequence[mlir.Value]) -> list[mlir.Value]:
        for result, own in zip(results, self._own, strict=True):
            if own is not None:
                self._flat.views[result] = own
        return list(scalars)

    def settled(self, view: View, op: mlir.Operation) -> View:
        """A view that is known outside of the loop as well: one of the loop's own, or a copy."""
        if any(view is own for own in self._own):
            return view
        copied = self._flat.spans.allocate(view.element, view.sizes, view.bounds)
        if not self._flat.spans.is_settled(copied):
            raise unknown(op)
        self._flat.copy_view(view, copied)
        return copied

    def _check_sizes(self, view: View, own: View, value: mlir.Value) -> None:
        if view.bounds != own.bounds:
            owner = value.owner
            raise unknown(owner.owner.operation if isinstance(owner, mlir.Block) else owner.operation)


def _fence(flat: Flattener) -> None:
    if flat.crew:
        flat.crew.fence()


def _is_memory(value: mlir.Value) -> bool:
    return isinstance(value.type, mlir.MemRefType)


def _is_small(type_: mlir.Type) -> bool:
    memory = mlir.MemRefType(type_)
    if not memory.has_static_shape:
        return False
    count = 1
    for size in memory.shape if memory.rank else []:
        count *= size
    return count * element_bytes(memory.element_type) <= PRIVATE_BYTES


def _carries_memory(op: mlir.Operation) -> bool:
    """Whether memory goes around a loop in it or out of a branch."""
    nested = find_ops(op, "scf.for", "scf.while", "scf.if")
    return any(_is_memory(one) for inner in nested for one in (*inner.results, *inner.operands))
