"""Elementwise ops that read an operand across the direction in which they write: transposes, layout changes.

A workgroup has a square of two loops, one along which the operand's elements are neighbours and one along which the
result's are. Threads first load the square in the operand's direction into shared memory, then go through it in the
result's: memory is read and written in whole lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu, scf

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.expressions import Number, all_of, divides, one_of
from eyas.codegen.common.kernel import Access, Kernel, Nest, Storage
from eyas.codegen.common.sizes import ONE, ZERO, Size, product
from eyas.codegen.common.space import Constraint, law, powers_of_two
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.common.traffic import element_bytes
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode, each, fits_a_grid
from eyas.codegen.gpu.strategies.base import (
    THREADS,
    TILES_STICK_OUT,
    KernelStrategy,
    at_most_threads,
    knob,
    powers,
)
from eyas.codegen.gpu.thread_tile import VECTORS, ThreadTile, contiguous_loop
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

_THREADS = 256
_SIDES = (64, 32)
# Squares that fill less than this part of the extents waste more than they save.
_FULL = 0.5


@dataclass(frozen=True)
class TransposeKnobs:
    threads: int = knob(THREADS)
    side: int = knob("points of both loops that a workgroup has")
    points: int = knob("neighbours that a thread reads and writes at once; in shared memory they are apart")


@dataclass(frozen=True)
class Crossing:
    """The loop along which results are neighbours, and the operands whose neighbours are along another one."""

    written: int
    read: int
    sources: tuple[Access, ...]

    @property
    def loops(self) -> tuple[int, int]:
        return self.written, self.read


@dataclass(frozen=True)
class Transposes(KernelStrategy):
    name: ClassVar[str] = "transposes"
    knobs_type: ClassVar[type] = TransposeKnobs
    knobs: TransposeKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Transposes | str:
        assert isinstance(target, GpuTarget)
        if not target.facts.shared_is_near:
            return "shared memory is no nearer than other memory"
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        nest, crossing = kernel.nests[0], _crossing_of(kernel)
        threads = min(_THREADS, target.max_threads)
        for side in _SIDES:
            filled = _filled(nest.loops[crossing.written], side) * _filled(nest.loops[crossing.read], side)
            if filled >= _FULL and _shared_bytes(crossing, side) <= target.shared_bytes:
                return cls(kernel, TransposeKnobs(threads, side, _points(nest, crossing)))
        return "too few points along one of both directions"

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = found.plain
        if isinstance(kernel, str):
            return NO_NESTS
        if len(kernel.nests) != 1 or kernel.steps is not None or kernel.nests[0].reductions:
            return "not a single loop nest without sums"
        if kernel.nests[0].guards:
            return TILES_STICK_OUT
        crossing = crossing_of(kernel.nests[0])
        return crossing if isinstance(crossing, str) else kernel

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        loops, crossing = kernel.nests[0].loops, _crossing_of(kernel)
        whole = all_of([divides(of.points, loops[one].factor) for one in crossing.loops])
        words = "points is {points}; it must be 1, 2 or 4, and divide both extents"
        return [
            *powers(of, "threads", "side"),
            at_most_threads(of, "side"),
            law(one_of(of.points, (1, *VECTORS)) & whole, words),
        ]

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        sides = powers_of_two(4, 128)
        return {"threads": powers_of_two(1, target.max_threads), "side": sides, "points": (1, *VECTORS)}

    @classmethod
    def shared_bytes(cls, kernel: Kernel, of: Any) -> Number:
        return _shared_bytes(_crossing_of(kernel), of.side)

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        """Of everything else, and of both loops."""
        nest, crossing = self.kernel.nests[0], _crossing_of(self.kernel)
        others = product([nest.loops[loop] for loop in _others(nest, crossing)])
        return [(others, 1), *((nest.loops[loop], self.knobs.side) for loop in (crossing.written, crossing.read))]

    def emit(self, interface: Interface) -> None:
        at, memory, side = interface, Memory(self.kernel, interface), self.knobs.side
        nest, crossing = self.kernel.nests[0], _crossing_of(self.kernel)
        corner = {
            loop: arith.MulIOp(at.ids[axis], at.index(side)).result
            for axis, loop in ((1, crossing.written), (2, crossing.read))
        }
        squares = {id(source): _square(nest, crossing, source, side) for source in crossing.sources}
        for near in squares.values():
            memory.starts[id(near.storage)] = corner
        closer = nest.map_accesses(lambda access: squares.get(id(access), access))
        tile, points = ThreadTile(memory, closer, None, crossing.written), self.knobs.points

        def run(number: mlir.Value) -> None:
            indices: list[mlir.Value | None] = [None] * len(nest.loops)
            others = _others(nest, crossing)
            for loop, index in zip(others, decode(memory, number, [nest.loops[one] for one in others]), strict=True):
                indices[loop] = index

            def load(at_point: list[mlir.Value | None]) -> None:
                for source in crossing.sources:
                    mover = _copy(memory, nest, crossing, source, squares[id(source)])
                    mover.run(Block(at_point, 1, points, None))

            self._walk(memory, indices, corner, (crossing.written, crossing.read), load)
            gpu.BarrierOp()
            finish = (crossing.read, crossing.written)
            self._walk(memory, indices, corner, finish, lambda one: tile.run(Block(one, 1, points, None)))
            gpu.BarrierOp()

        others, _ = self.workgroups[0]
        if fits_a_grid(others, 1):
            run(at.ids[0])
        else:
            each(at.ids[0], memory.size(others), gpu.grid_dim(gpu.Dimension.x), run)

    def _walk(
        self,
        memory: Memory,
        indices: list[mlir.Value | None],
        corner: dict[int, mlir.Value],
        loops: tuple[int, int],
        run: Callable[[list[mlir.Value | None]], None],
    ) -> None:
        """Threads side by side along the second of the loops, one line of the square after the other."""
        at, side, nest = memory.at, self.knobs.side, self.kernel.nests[0]
        slow, fast = loops
        each_line = side // self.knobs.points
        across = arith.RemUIOp(at.thread, at.index(each_line)).result
        if self.knobs.points > 1:
            across = arith.MulIOp(across, at.index(self.knobs.points)).result
        line = arith.DivUIOp(at.thread, at.index(each_line)).result
        lines = at.threads // each_line
        fast_index = arith.AddIOp(corner[fast], across).result
        for number in range(0, side, lines):
            position = arith.AddIOp(corner[slow], memory.add(line, at.index(number))).result
            point = list(indices)
            point[slow], point[fast] = position, fast_index
            conditions = [
                arith.CmpIOp(arith.CmpIPredicate.ult, index, memory.size(nest.loops[loop])).result
                for loop, index in ((slow, position), (fast, fast_index))
                if (nest.loops[loop].static or 1) % side
            ]
            if not conditions:
                run(point)
                continue
            inside = conditions[0] if len(conditions) == 1 else arith.AndIOp(*conditions).result
            branch = scf.IfOp(inside)
            with mlir.InsertionPoint(branch.then_block):
                run(point)
                scf.YieldOp([])


def crossing_of(nest: Nest) -> Crossing | str:
    """Along which two loops a nest reads and writes, or why these are not two."""
    written = contiguous_loop(nest, nest.parallel)
    if written is None:
        return "no loop along which results are neighbours"
    inputs = [one for statement in nest.statements for one in statement.inputs if isinstance(one, Access)]
    single = [one for one in inputs if not isinstance(one.otherwise, Access)]
    across = [one for one in single if one.strides[written] not in (ZERO, ONE)]
    for read in (loop for loop in nest.parallel if loop != written):
        sources = tuple(one for one in across if one.strides[read] == ONE)
        if sources:
            return Crossing(written, read, sources)
    return "what is read lies in the direction in which is written"


def _crossing_of(kernel: Kernel) -> Crossing:
    crossing = crossing_of(kernel.nests[0])
    assert isinstance(crossing, Crossing)
    return crossing


def _others(nest: Nest, crossing: Crossing) -> list[int]:
    return [loop for loop in nest.parallel if loop not in (crossing.written, crossing.read)]


def _square(nest: Nest, crossing: Crossing, source: Access, side: int) -> Access:
    """Shared memory for an operand's square; lines are one element longer, so that columns lie in different banks."""
    strides = [ZERO] * len(nest.loops)
    strides[crossing.written], strides[crossing.read] = Size(side + 1), ONE
    return Access(Storage("square", source.storage.element, (Size(side), Size(side + 1))), (), tuple(strides))


def _copy(memory: Memory, nest: Nest, crossing: Crossing, source: Access, target: Access) -> ThreadTile:
    """A nest that moves an operand into its square."""
    statement = replace(
        nest.statements[0], body=None, inputs=(source,), outputs=(target,), inits=(None,), reductions=()
    )
    return ThreadTile(memory, Nest(nest.loops, (statement,)), None, crossing.read)


def _points(nest: Nest, crossing: Crossing) -> int:
    """As many neighbours as make a word, where they are whole: loads and stores of less are too many."""
    outputs = [one for statement in nest.statements for one in statement.outputs if one is not None]
    narrow = min(element_bytes(one.storage.element) for one in (*crossing.sources, *outputs))
    points = max(1, 4 // narrow)
    while points > 1 and any(nest.loops[loop].factor % points for loop in crossing.loops):
        points //= 2
    return points


def _filled(extent: Size, side: int) -> float:
    """The part of an extent's squares that has points."""
    if not extent.static:
        return 1.0 if extent.static is None else 0.0
    return extent.static / (-(-extent.static // side) * side)


def _shared_bytes(crossing: Crossing, side: Any) -> Any:
    return sum(side * (side + 1) * element_bytes(source.storage.element) for source in crossing.sources)
