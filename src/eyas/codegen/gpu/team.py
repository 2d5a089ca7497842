"""Threads that work on one row together: each sums up a share of it, and shared memory joins the shares."""

from __future__ import annotations

from collections.abc import Callable

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, memref, scf

from eyas.codegen.common.combine import Combiner, combiner_of
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.emission.values import stored_type
from eyas.codegen.common.kernel import Nest, Statement
from eyas.codegen.common.sizes import product
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode
from eyas.codegen.gpu.thread_tile import ThreadTile


class Team:
    """`size` threads with neighbouring numbers; this one has the number `rank` among them."""

    def __init__(self, memory: Memory, size: int):
        at = memory.at
        self.memory, self.size = memory, size
        alone = size == 1
        self.rank = at.index(0) if alone else arith.RemUIOp(at.thread, at.index(size)).result
        self._shares: dict[str, mlir.Value] = {}

    def join(self, combiner: Combiner, share: mlir.Value) -> mlir.Value:
        """What the shares of all threads of the team are together, for each of them. All threads of the workgroup come
        here together."""
        if self.size == 1:
            return share
        at, type_ = self.memory.at, share.type
        shares = self._memory(stored_type(type_))

        def load(thread: mlir.Value) -> mlir.Value:
            value = memref.LoadOp(shares, [thread]).result
            return value if value.type == type_ else arith.TruncIOp(type_, value).result

        def store(value: mlir.Value) -> None:
            stored = value if stored_type(type_) == type_ else arith.ExtUIOp(stored_type(type_), value).result
            memref.StoreOp(stored, shares, [at.thread])

        store(share)
        gpu.BarrierOp()
        half = self.size // 2
        while half:
            active = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, self.rank, at.index(half)).result)
            with mlir.InsertionPoint(active.then_block):
                other = arith.AddIOp(at.thread, at.index(half)).result
                store(combiner.join(load(at.thread), load(other)))
                scf.YieldOp([])
            gpu.BarrierOp()
            half //= 2
        first = arith.SubIOp(at.thread, self.rank).result
        total = load(first)
        gpu.BarrierOp()  # before the memory is used again
        return total

    def _memory(self, element: mlir.Type) -> mlir.Value:
        key = str(element)
        if key not in self._shares:
            self._shares[key] = self.memory.at.shared(element, self.memory.at.threads)
        return self._shares[key]

    @property
    def is_first(self) -> mlir.Value:
        return arith.CmpIOp(arith.CmpIPredicate.eq, self.rank, self.memory.at.index(0)).result


class TeamTile(ThreadTile):
    """One point of a nest, whose first statement the threads of a team sum up together."""

    def __init__(self, memory: Memory, nest: Nest, team: Team):
        super().__init__(memory, nest)
        self.team = team

    def _reduce(self, statement: Statement, block: Block, made: dict) -> list:
        combiner = combiner_of(statement.body, len(statement.inputs))
        assert combiner is not None, "the strategy checked this"
        type_ = statement.element_types[0]
        outer = self._loads(block)
        olds = self._initial(statement, block, outer)
        sizes = [self.nest.loops[loop] for loop in statement.reductions]

        def step(number: mlir.Value, carried: list[mlir.Value]) -> list[mlir.Value]:
            indices = list(block.indices)
            for loop, index in zip(statement.reductions, decode(self.memory, number, sizes), strict=True):
                indices[loop] = index
            inner = Block(indices, 1, 1, None)
            values = self._apply(statement, inner, self._loads(inner, outer), made, [[carried]])
            return [values[0][0][0]]

        identity = self.at.constant(type_, combiner.identity(type_))
        share = self._stride(self.memory.size(product(sizes)), identity, step)
        total = self.team.join(combiner, share)
        return [[[combiner.join(olds[0][0][0], total)]]]

    def _stride(self, count: mlir.Value, first: mlir.Value, step: Callable) -> mlir.Value:
        """This thread's share: every so manieth number from its rank on."""
        return self._carry(self.team.rank, count, self.team.size, [first], step)[0]


def why_not_together(nest: Nest) -> str | None:
    """Why a team cannot share what the points of a nest sum up, or None."""
    first = nest.statements[0]
    if not first.reductions or any(statement.reductions for statement in nest.statements[1:]):
        return "it is not the nest's first statement alone that sums up"
    if combiner_of(first.body, len(first.inputs)) is None:
        return "shares of the sum cannot be joined"
    if first.body is not None and any(op.operation.name == "cf.assert" for op in first.body.operations):
        return "it asserts something of each element"
    if isinstance(first.element_types[0], mlir.ComplexType):
        return "it sums up complex numbers"
    return None
