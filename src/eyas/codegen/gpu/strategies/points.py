"""Each point of the result by one thread: elementwise ops, copies, padding, joins, gathers, pooling, sums down columns.

A thread has neighbours, which it loads and stores in vectors; what a point sums up, its thread sums up alone. Several
loop nests are fine as long as none reads what another writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.expressions import differ, equal
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.sizes import ONE, Size, product
from eyas.codegen.common.space import Constraint, advice, law, powers_of_two
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.common.traffic import element_bytes
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode, each, fits_a_grid
from eyas.codegen.gpu.strategies.base import (
    THREADS,
    TILES_STICK_OUT,
    KernelStrategy,
    knob,
    powers,
    within_the_device,
)
from eyas.codegen.gpu.thread_tile import ThreadTile, contiguous_loop, points_along, storages_read
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

# Threads of a workgroup, where there is work for so many.
_THREADS = 256
# Workgroups that each processor is given: some run while others wait for memory.
_PER_CORE = 32
_UNKNOWN_POINTS = 1 << 20
# Bytes that each thread loads before it goes on, and ops of a body that is not written out several times.
_BYTES_UNDER_WAY, _MOST_OPS = 16, 64
_POINTS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class PointKnobs:
    threads: int = knob(THREADS)
    points: int = knob("neighbours of one thread, at the most; what divides the contiguous loop of a nest is used")
    repeat: int = knob("groups of neighbours that a thread has, one after the other")
    ahead: int = knob("how many of them it loads before it stores the first")


@dataclass(frozen=True)
class Points(KernelStrategy):
    name: ClassVar[str] = "points"
    knobs_type: ClassVar[type] = PointKnobs
    knobs: PointKnobs

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Points | str:
        assert isinstance(target, GpuTarget)
        kernel = cls.kernel_of(found)
        if isinstance(kernel, str):
            return kernel
        points = max(points_along(nest, _lane_loop(nest)) for nest in kernel.nests)
        groups = max(_groups(nest, points).static or _UNKNOWN_POINTS for nest in kernel.nests)
        threads = min(_THREADS, target.max_threads)
        while threads > target.subgroup and threads // 2 * target.cores >= groups:
            threads //= 2
        repeat = 1
        while repeat < 64 and threads * 2 * repeat * _PER_CORE * target.cores <= groups:
            repeat *= 2
        return cls(kernel, PointKnobs(threads, points, repeat, min(repeat, _ahead(kernel, points, target))))

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = found.plain
        if isinstance(kernel, str):
            return NO_NESTS
        return _why_not_apart(kernel) or kernel

    @classmethod
    def constraints(cls, kernel: Kernel, of: Any) -> list[Constraint]:
        found = powers(of, "threads", "points", "repeat", "ahead")
        return [*found, law(of.ahead <= of.repeat, "ahead is {ahead}; it must be at most repeat")]

    @classmethod
    def limits(cls, kernel: Kernel, of: Any, target: GpuTarget) -> list[Constraint]:
        # The grid is of groups, of which there are so many only once `points` is known.
        counts = {points: max(_groups(nest, points).static or 0 for nest in kernel.nests) for points in _POINTS}
        found = list(within_the_device(of.threads, target))
        for points, groups in counts.items():
            piece = of.threads * of.repeat
            words = f"repeat is {{repeat}}; workgroups of {{piece}} groups are for {groups} of them"
            small = (piece < 2 * groups) | (equal(of.repeat, 1) & (of.threads <= target.subgroup))
            found += [advice(differ(of.points, points) | small, words, piece=piece)] if groups else []
        return found

    @classmethod
    def domains(cls, kernel: Kernel, target: GpuTarget) -> dict[str, Sequence[int]]:
        along = max(points_along(nest, _lane_loop(nest)) for nest in kernel.nests)
        return {
            "threads": powers_of_two(1, target.max_threads),
            "points": [points for points in _POINTS if points <= along],
            "repeat": powers_of_two(1, 64),
            "ahead": powers_of_two(1, 8),
        }

    @property
    def workgroups(self) -> Sequence[tuple[Size, int]]:
        groups = [_groups(nest, self.knobs.points) for nest in self.kernel.nests]
        largest = max(groups, key=lambda size: (len(size.symbols), size.factor), default=Size(1))
        return [(largest, self.knobs.threads * self.knobs.repeat)]

    def emit(self, interface: Interface) -> None:
        at, memory = interface, Memory(self.kernel, interface)
        extent, piece = self.workgroups[0]
        stride = arith.MulIOp(gpu.grid_dim(gpu.Dimension.x), at.index(at.threads)).result
        first = arith.AddIOp(arith.MulIOp(at.ids[0], at.index(at.threads)).result, at.thread).result
        for nest in self.kernel.nests:
            groups = _groups(nest, self.knobs.points)
            once = self.knobs.repeat == 1 and groups == extent and piece == at.threads and fits_a_grid(extent, piece)
            points = _Group(memory, nest, self.knobs.points)
            begin, end = first, memory.size(groups)
            if self.knobs.ahead > 1 and not nest.reductions:
                begin = self._several(points, first, end, stride)
            each(begin, end, stride, points.run, once)

    def _several(self, points: _Group, first: mlir.Value, end: mlir.Value, stride: mlir.Value) -> mlir.Value:
        """Runs as many groups as come out even, `ahead` of them at a time; the number of the first that is left."""
        at, ahead = points.memory.at, self.knobs.ahead
        reach = arith.MulIOp(stride, at.index(ahead)).result
        left = arith.SubIOp(end, arith.MinUIOp(first, end).result).result
        whole = arith.MulIOp(arith.DivUIOp(left, reach).result, reach).result
        middle = arith.AddIOp(first, whole).result

        def run(number: mlir.Value) -> None:
            points.tile.later = []
            for _ in range(ahead):
                points.run(number)
                number = arith.AddIOp(number, stride).result
            stores, points.tile.later = points.tile.later, None
            for store in stores:
                store()

        each(first, middle, reach, run)
        return middle


class _Group:
    """Runs a nest for the group of neighbours with a number."""

    def __init__(self, memory: Memory, nest: Nest, most: int):
        self.memory, self.nest, self.lane = memory, nest, _lane_loop(nest)
        self.points = min(most, points_along(nest, self.lane))
        self.tile = ThreadTile(memory, nest, lane_loop=self.lane)

    def run(self, number: mlir.Value) -> None:
        nest, lane, parallel = self.nest, self.lane, self.nest.parallel
        indices = decode(self.memory, number, [_in_groups(nest, loop, lane, self.points) for loop in parallel])
        at = dict(zip(parallel, indices, strict=True))
        if lane is not None and self.points > 1:
            at[lane] = arith.MulIOp(at[lane], self.memory.at.index(self.points)).result
        self.tile.run(Block([at.get(loop) for loop in range(len(nest.loops))], 1, self.points, None))


def _ahead(kernel: Kernel, points: int, target: GpuTarget) -> int:
    """Groups that a thread needs under way, so that all threads together keep memory busy."""
    if not target.facts.shared_is_near:
        return 1
    bodies = [statement.body for nest in kernel.nests for statement in nest.statements if statement.body is not None]
    if sum(len(list(body.operations)) for body in bodies) > _MOST_OPS:
        return 1
    least = _BYTES_UNDER_WAY
    for nest in kernel.nests:
        lane, read = _lane_loop(nest), {}
        for access in nest.accesses:
            if lane is not None and access.strides[lane] == ONE and not access.storage.is_output:
                read[access.storage] = points * element_bytes(access.storage.element)
        least = min(least, sum(read.values()) or _BYTES_UNDER_WAY)
    ahead = 1
    while ahead * least < _BYTES_UNDER_WAY:
        ahead *= 2
    return ahead


def _lane_loop(nest: Nest) -> int | None:
    return contiguous_loop(nest, nest.parallel)


def _in_groups(nest: Nest, loop: int, lane: int | None, points: int) -> Size:
    extent = nest.loops[loop]
    return Size(extent.factor // points, extent.symbols) if loop == lane else extent


def _groups(nest: Nest, most: int) -> Size:
    """Groups of neighbours in a nest."""
    lane = _lane_loop(nest)
    points = min(most, points_along(nest, lane))
    return product([_in_groups(nest, loop, lane, points) for loop in nest.parallel])


def _why_not_apart(kernel: Kernel) -> str | None:
    """Why threads would have to wait for each other, or None."""
    if kernel.steps is not None:
        return "it runs in steps"
    if any(nest.guards for nest in kernel.nests):
        return TILES_STICK_OUT
    written: set[int] = set()
    for nest in kernel.nests:
        if any(id(storage) in written for storage in storages_read(nest)):
            return "a loop nest reads what another one has made"
        outputs = [one.storage for statement in nest.statements for one in statement.outputs if one is not None]
        if any(storage.binding is None for storage in outputs):
            return "a loop nest leaves something to the next one"
        written |= {id(storage) for storage in outputs}
    return None
