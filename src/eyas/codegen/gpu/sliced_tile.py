"""Products of few rows: several threads share the sum of one tile, so that enough of them read the weights.

Each has every so manieth step of the innermost loop of the sum; shared memory adds up what they have, and the first of
them goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu

from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.emission.tile_body import unflatten, with_index
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.kernel import Nest, Statement
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.shared_values import SharedValues
from eyas.codegen.gpu.thread_tile import ThreadTile


class SlicedTile(ThreadTile):
    """A tile that `slices` threads, `columns` apart from each other, sum up together; this one is number `slice_`."""

    def __init__(
        self, memory: Memory, nest: Nest, loops: tuple[int | None, int], depth: int, slices: int, slice_: mlir.Value
    ):
        super().__init__(memory, nest, *loops, depth)
        self.slices, self.slice = slices, slice_
        self.columns = memory.at.threads // slices
        self._shared: list[SharedValues] = []
        self.writes = arith.CmpIOp(arith.CmpIPredicate.eq, slice_, memory.at.index(0)).result

    def _reduce(self, statement: Statement, block: Block, made: dict) -> list:
        combiner = combiner_of(statement.body, len(statement.inputs))
        assert combiner is not None, "the strategy checked this"
        (type_,) = statement.element_types
        outer = self._loads(block)
        olds = self._flatten(self._initial(statement, block, outer), [type_])

        def step(inner: Block, carried: list[mlir.Value]) -> list[mlir.Value]:
            before = unflatten(carried, 1, block.rows, block.vectors)
            return self._flatten(self._apply(statement, inner, self._loads(inner, outer), made, before), [type_])

        nothing = self.at.constant(type_, combiner.identity(type_))
        shares = self._run_reductions(statement.reductions, block, [nothing] * len(olds), step)
        totals = [
            combiner.join(old, self._joined(combiner.join, share)) for old, share in zip(olds, shares, strict=True)
        ]
        return unflatten(totals, 1, block.rows, block.vectors)

    def _joined(self, join: Callable, share: mlir.Value) -> mlir.Value:
        """What all slices have together; the workgroup comes here together."""
        at = self.at
        if not self._shared:
            self._shared.append(SharedValues(self.memory.at, share.type, self.memory.at.threads))
        (place,) = self._shared
        place.store(share, self.memory.at.thread)
        gpu.BarrierOp()
        first = arith.RemUIOp(self.memory.at.thread, at.index(self.columns)).result
        total = place.load(first)
        for other in range(1, self.slices):
            total = join(total, place.load(self.memory.add(first, at.index(other * self.columns))))
        gpu.BarrierOp()  # before the memory is used again
        return total

    def _run_reductions(
        self,
        loops: Sequence[int],
        block: Block,
        carried: list[mlir.Value],
        step: Callable[[Block, list[mlir.Value]], list[mlir.Value]],
        reach: int = 1,
    ) -> list[mlir.Value]:
        if len(loops) != 1:
            return super()._run_reductions(loops, block, carried, step, reach)
        (loop,) = loops
        high = self.memory.size(self.nest.loops[loop])
        low = arith.MulIOp(self.slice, self.at.index(self.depth)).result

        def run(index: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            from_here = Block(with_index(block.indices, loop, index), block.rows, block.vectors, None)
            return self._steps(loop, step)(from_here, values)

        return self._carry(low, high, self.depth * self.slices, carried, run)


def why_not_sliced(nest: Nest) -> str | None:
    """Why several threads cannot share the sum of a tile, whatever its depth, or None."""
    first = nest.statements[0]
    if combiner_of(first.body, len(first.inputs)) is None or len(first.outputs) != 1:
        return "shares of the sum cannot be joined"
    if first.body is not None and any(op.operation.name == "cf.assert" for op in first.body.operations):
        return "it asserts something of each element"
    return None
