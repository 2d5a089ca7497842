"""Sums down columns: what is summed up lies across memory, and points side by side in it.

A workgroup has some columns, which its threads read side by side, and several threads for each of them, which take
turns down the column and join their shares in shared memory. Each has several loads under way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.expressions import Number, select
from eyas.codegen.common.joint import Joint, placed_joint_of
from eyas.codegen.common.kernel import Access, Kernel, Nest, Statement
from eyas.codegen.common.sizes import ONE, Size, product
from eyas.codegen.common.space import Constraint, powers_of_two
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode, each_piece
from eyas.codegen.gpu.shared_values import SharedValues
from eyas.codegen.gpu.strategies.base import (
    THREADS,
    TILES_STICK_OUT,
    KernelStrategy,
    at_most_threads,
    knob,
    powers,
)
from eyas.codegen.gpu.team import why_not_together
from eyas.codegen.gpu.thread_tile import ThreadTile, contiguous_loop, points_along
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_THREADS = 256
# Threads side by side: what they read is a line of memory or more.
_ACROSS = 32
# Rows that each thread sums up at least, and loads that it has under way.
_LEAST_ROWS, _DEPTH = 4, 8
_UNKNOWN = 1024


@dataclass(frozen=True)
class ColumnKnobs:
    threads: int = knob(THREADS)
    across: int = knob("threads side by side along the columns; `threads / across` of them share a column")
    depth: int = knob("rows that a thread loads before it adds the first of them")


@dataclass(frozen=True)
class Columns(KernelStrategy):
    name: ClassVar[str] = "columns"
    knobs_type: ClassVar[type] = ColumnKnobs
    knobs: ColumnKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Columns | str:
        assert isinstance(target, GpuTarget)
        if not target.facts.shared_is_near:
            return "shared memory is no nearer than other memory"
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        nest = kernel.nests[0]
        groups = _groups(nest).static or _UNKNOWN
        rows = _rows(nest).static or _UNKNOWN
        most = min(_THREADS, target.max_threads)
        across = 1
        while across < min(_ACROSS, most) and across < groups:
            across *= 2
        slices = 1
        while (
            slices * across < most
            and (slices * across < target.subgroup or groups * slices < target.wanted_threads)
            and 2 * slices * _LEAST_ROWS <= rows
        ):
            slices *= 2
        if _shared_bytes(nest, slices * across) > target.shared_bytes:
            return "shares of the sums do not fit into shared memory"
        return cls(kernel, ColumnKnobs(slices * across, across, _DEPTH))

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = found.plain
        if isinstance(kernel, str):
            return NO_NESTS
        if len(kernel.nests) != 1 or kernel.steps is not None:
            return "not a single loop nest"
        return _why_no_columns(kernel.nests[0]) or kernel

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        return [*powers(of, "threads", "across", "depth"), at_most_threads(of, "across")]

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        threads = powers_of_two(1, target.max_threads)
        return {"threads": threads, "across": [one for one in threads if one <= 256], "depth": powers_of_two(1, 32)}

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        return select(of.threads > of.across, _shared_bytes(kernel.nests[0], of.threads), 0)

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        return [(_groups(self.kernel.nests[0]), self.knobs.across)]

    def emit(self, interface: Interface) -> None:
        at, memory, nest = interface, Memory(self.kernel, interface), self.kernel.nests[0]
        lane = contiguous_loop(nest, nest.parallel)
        points, groups = points_along(nest, lane), memory.size(_groups(nest))
        across = arith.RemUIOp(at.thread, at.index(self.knobs.across)).result
        tile = ColumnTile(memory, nest, lane, self.knobs)

        def run(first: mlir.Value) -> None:
            number = arith.AddIOp(first, across).result
            exists = arith.CmpIOp(arith.CmpIPredicate.ult, number, groups).result
            # What is beyond the last column runs along, for barriers need all threads, and stores nothing.
            number = arith.SelectOp(exists, number, at.index(0)).result
            tile.writes = arith.AndIOp(exists, tile.is_first).result
            indices = dict(zip(nest.parallel, decode(memory, number, _sizes(nest)), strict=True))
            if lane is not None:
                indices[lane] = memory.multiply(indices[lane], points)
            tile.run(Block([indices.get(loop) for loop in range(len(nest.loops))], 1, points, None))

        each_piece(memory, *self.workgroups[0], run)


class ColumnTile(ThreadTile):
    """Some columns of one thread, of which it sums up every so manieth row."""

    def __init__(self, memory: Memory, nest: Nest, lane_loop: int | None, knobs: ColumnKnobs):
        super().__init__(memory, nest, lane_loop=lane_loop)
        at = memory.at
        self.knobs, self.slices = knobs, knobs.threads // knobs.across
        self.slice = arith.DivUIOp(at.thread, at.index(knobs.across)).result
        self.is_first = arith.CmpIOp(arith.CmpIPredicate.eq, self.slice, at.index(0)).result
        self._shares: dict[tuple[int, int], SharedValues] = {}

    def _reduce(self, statement: Statement, block: Block, made: dict) -> list:
        joint = placed_joint_of(statement)
        assert joint is not None, "the strategy checked this"
        olds = self._initial(statement, block, self._loads(block))
        begin = [joint.first(self.memory, [old[0][lane] for old in olds]) for lane in range(block.vectors)]
        share = self._share(statement, joint, block, begin)
        if self.slices > 1:
            share = self._join(joint, share)
        total = [joint.last(self.memory, [old[0][lane] for old in olds], share[lane]) for lane in range(block.vectors)]
        return [[[lane[output] for lane in total]] for output in range(len(statement.outputs))]

    def _share(self, statement: Statement, joint: Joint, block: Block, begin: list[list[mlir.Value]]) -> list:
        """This thread's sums, for each lane."""
        at, memory, outputs = self.at, self.memory, len(begin[0])
        sizes = [self.nest.loops[loop] for loop in statement.reductions]
        count, outer = memory.size(product(sizes)), self._loads(block)
        sources = [source for source in statement.inputs if isinstance(source, Access)]
        outer.prepare(sources)

        def rows(numbers: list[mlir.Value], carried: list[mlir.Value]) -> list[mlir.Value]:
            inner = []
            for number in numbers:
                indices = list(block.indices)
                for loop, index in zip(statement.reductions, decode(memory, number, sizes), strict=True):
                    indices[loop] = index
                inner.append(replace(block, indices=indices))
            loads = [self._loads(one, outer) for one in inner]
            for one in loads:
                for access in sources:
                    for lane in range(block.vectors):
                        one.get(access, 0, lane)
            for one, there in zip(inner, loads, strict=True):
                values = [
                    [carried[lane * outputs + output] for lane in range(block.vectors)] for output in range(outputs)
                ]
                results = self._apply(statement, one, there, {}, [[value] for value in values])
                carried = [results[output][0][lane] for lane in range(block.vectors) for output in range(outputs)]
            return carried

        low, high, step = self._turns(joint, count)
        carried = [value for lane in begin for value in lane]
        reach = self.knobs.depth * step
        # Whole steps first: from the last of them on, rows come one by one.
        whole = arith.DivUIOp(arith.SubIOp(high, low).result, at.index(reach)).result
        middle = arith.AddIOp(low, arith.MulIOp(whole, at.index(reach)).result).result

        def steps(number: mlir.Value, values: list[mlir.Value]) -> list[mlir.Value]:
            return rows([memory.add(number, at.index(step * one)) for one in range(self.knobs.depth)], values)

        carried = self._carry(low, middle, reach, carried, steps)
        carried = self._carry(middle, high, step, carried, lambda number, values: rows([number], values))
        return [carried[lane * outputs : (lane + 1) * outputs] for lane in range(block.vectors)]

    def _turns(self, joint: Joint, count: mlir.Value) -> tuple[mlir.Value, mlir.Value, int]:
        """The rows of this thread: every so manieth, or, where shares must come in order, neighbours."""
        at = self.at
        if not joint.in_order:
            return arith.MinUIOp(self.slice, count).result, count, self.slices
        each = arith.CeilDivUIOp(count, at.index(self.slices)).result
        low = arith.MinUIOp(arith.MulIOp(self.slice, each).result, count).result
        return low, arith.MinUIOp(arith.AddIOp(low, each).result, count).result, 1

    def _join(self, joint: Joint, share: list[list[mlir.Value]]) -> list[list[mlir.Value]]:
        """All shares of a column, for the first of its threads."""
        at, across = self.at, self.knobs.across
        for lane, values in enumerate(share):
            for output, value in enumerate(values):
                self._place(lane, output, value.type).store(value, at.thread)
        gpu.BarrierOp()
        first = arith.RemUIOp(at.thread, at.index(across)).result
        total = share
        for number in range(1, self.slices):
            other = arith.AddIOp(first, at.index(number * across)).result
            total = [
                joint.join(
                    self.memory,
                    values,
                    [self._place(lane, output, value.type).load(other) for output, value in enumerate(values)],
                )
                for lane, values in enumerate(total)
            ]
        gpu.BarrierOp()  # before the memory is used again
        return total

    def _place(self, lane: int, output: int, type_: mlir.Type) -> SharedValues:
        if (lane, output) not in self._shares:
            self._shares[lane, output] = SharedValues(self.memory.at, type_, self.knobs.threads)
        return self._shares[lane, output]


def _why_no_columns(nest: Nest) -> str | None:
    """Why threads would not read side by side what lies side by side, or None."""
    if nest.guards:
        return TILES_STICK_OUT
    if (reason := why_not_together(nest)) is not None:
        return reason
    first, lane = nest.statements[0], contiguous_loop(nest, nest.parallel)
    if lane is None:
        return "no loop along which results are neighbours"
    inputs = [one for one in first.inputs if isinstance(one, Access)]
    if any(one.strides[first.reductions[-1]] == ONE for one in inputs):
        return "what it sums up is contiguous"
    if not any(one.strides[lane] == ONE for one in inputs):
        return "what it reads does not lie side by side"
    return None


def _sizes(nest: Nest) -> list[Size]:
    """Extents of the parallel loops, that of neighbours in groups."""
    lane = contiguous_loop(nest, nest.parallel)
    points = points_along(nest, lane)
    extents = [(loop, nest.loops[loop]) for loop in nest.parallel]
    return [Size(one.factor // points, one.symbols) if loop == lane else one for loop, one in extents]


def _groups(nest: Nest) -> Size:
    return product(_sizes(nest))


def _rows(nest: Nest) -> Size:
    return product([nest.loops[loop] for loop in nest.statements[0].reductions])


def _shared_bytes(nest: Nest, threads: Any) -> Any:
    points = points_along(nest, contiguous_loop(nest, nest.parallel))
    return sum(8 * points * threads for _ in nest.statements[0].outputs)
