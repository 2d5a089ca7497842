"""Each point of the result by one thread: elementwise ops, copies, padding, joins, gathers, pooling, sums down columns.

A thread has neighbours, which it loads and stores in vectors; what a point sums up, its thread sums up alone. Several
loop nests are fine as long as none reads what another writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith, gpu

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.emission.tile_loads import Block
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.gpu.interface import Interface
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.points import decode, each, fits_a_grid
from eyas.codegen.gpu.strategies.base import TILES_STICK_OUT, KernelStrategy, check_powers_of_two
from eyas.codegen.gpu.thread_tile import ThreadTile, contiguous_loop, points_along, storages_read
from eyas.targets import Target
from eyas.targets.gpu import GpuTarget

# Threads of a workgroup, where there is work for so many.
_THREADS = 256
# Workgroups that each processor is given: some run while others wait for memory.
_PER_CORE = 32
_UNKNOWN_POINTS = 1 << 20


@dataclass(frozen=True)
class PointKnobs:
    threads: int
    points: int
    """Neighbours of one thread, at the most; what divides the extent of a nest's contiguous loop is used."""
    repeat: int
    """Groups of neighbours that a thread has, one after the other."""


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
        return cls(kernel, PointKnobs(threads, points, repeat))

    @classmethod
    def kernel_of(cls, found: Analysis) -> Kernel | str:
        kernel = found.plain
        if isinstance(kernel, str):
            return NO_NESTS
        return _why_not_apart(kernel) or kernel

    @classmethod
    def check(cls, kernel: Kernel, knobs: PointKnobs) -> str | None:
        return check_powers_of_two(threads=knobs.threads, points=knobs.points, repeat=knobs.repeat)

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
            each(first, memory.size(groups), stride, _point_of(memory, nest, self.knobs.points), once)


def _point_of(memory: Memory, nest: Nest, most: int):
    """Runs a nest for the group of neighbours with a number."""
    lane = _lane_loop(nest)
    points = min(most, points_along(nest, lane))
    tile = ThreadTile(memory, nest, lane_loop=lane)
    parallel = nest.parallel

    def run(number: mlir.Value) -> None:
        indices = decode(memory, number, [_in_groups(nest, loop, lane, points) for loop in parallel])
        at = dict(zip(parallel, indices, strict=True))
        if lane is not None and points > 1:
            at[lane] = arith.MulIOp(at[lane], memory.at.index(points)).result
        tile.run(Block([at.get(loop) for loop in range(len(nest.loops))], 1, points, None))

    return run


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
