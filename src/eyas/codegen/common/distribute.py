"""Workgroups: enough to keep the cores busy, few enough that starting one costs nothing beside its work.

Whatever the kernel, cutting it is one function, `cut`; kinds of kernels differ in the order of their loops and in how
much of them is worth a workgroup (`Grain`). How many cores there are is the target's to say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import MAX_GRID_AXES, GridAxis, Tile
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.transform import TileTransform
from eyas.targets import Target

# What a loop of unknown extent is taken for: one that a tile advances along, and any other.
_LIKELY_STEPPED, _LIKELY = 64, 16
# Without rows each weight is read for one multiply-add, which takes as long as this many from registers.
_READ_COST = 5


@dataclass(frozen=True)
class Grain:
    """How finely a kind of kernel is cut.

    A workgroup costs about 0.1 us to claim and start; `points` are what takes 5 to 10 us. Cores finish together when
    there are a few workgroups for each, `per_core`; `fewest` is what small machines want too, since a core that other
    programs disturb is then relieved by the others.
    """

    points: int
    fewest: int = 16
    per_core: int = 4

    @property
    def least(self) -> int:
        """Points below which a workgroup is not worth to be woken for, where nobody knows how many there will be."""
        return self.points // 16

    def workgroups(self, points: int, cores: int) -> int:
        """How many workgroups a kernel of so many points should have."""
        return min(max(self.fewest, self.per_core * cores), points // self.points)


ELEMENTS = Grain(16_384)
# Some 30 multiply-adds a nanosecond and core.
PRODUCTS = Grain(150_000, fewest=24)
# Channels by themselves reuse nothing, so they are slower.
WINDOWS = Grain(40_000)
# Each workgroup makes again what all rows of a head read.
HEADS = Grain(16_384, per_core=2)


def cut(
    loops: Sequence[Size],
    order: Sequence[int | None],
    steps: Mapping[int | None, int],
    points: int | None,
    grain: Grain,
    cores: int,
    beside: Sequence[Sequence[Size]] = (),
) -> tuple[GridAxis, ...]:
    """Cuts loops in an order into pieces of whole steps until there are enough workgroups. `beside` are the loops of
    other nests that are cut alike; `points` is None where an extent is unknown.

    Loops of unknown extent are always cut, into pieces that are right for a likely extent and have enough to do: where
    it is larger there are more of them. The last loop that is cut is x, the fastest axis, so that workgroups which
    follow each other share what the loops before it choose.
    """
    likely = _likely_extents(loops, order, steps)
    if points is None:
        points = math.prod(likely) + sum(math.prod(_likely_extents(other, order, steps)) for other in beside)
        # Where extents are smaller than is likely, workgroups of what is left of other loops would be too small.
        known = math.prod(size.static for size in loops if size.static is not None)
        wanted, most = grain.workgroups(points, cores), max(known // grain.least, 1)
    else:
        wanted = most = grain.workgroups(points, cores)
    axes: list[GridAxis] = []
    count = 1
    for loop in order:
        if loop is None or len(axes) == MAX_GRID_AXES:
            continue
        extent, step = loops[loop].static, steps.get(loop, 1)
        pieces = -(-wanted // count)
        if extent is None:
            blocks = -(-likely[loop] // step)
            enough = -(-grain.points * count * likely[loop] // (max(points, 1) * step))
            axes.append(GridAxis(loop, max(-(-blocks // max(pieces, 1)), enough, 1) * step))
            count *= -(-likely[loop] // axes[-1].tile)
            continue
        blocks = -(-extent // step)
        pieces = min(blocks, pieces, most)
        if pieces > 1:
            axes.append(GridAxis(loop, -(-blocks // pieces) * step))
            cut_into = -(-extent // axes[-1].tile)
            count, most = count * cut_into, max(most // cut_into, 1)
    return tuple(reversed(axes))


def _likely_extents(
    loops: Sequence[Size], order: Sequence[int | None], steps: Mapping[int | None, int]
) -> tuple[int, ...]:
    """Extents, with a likely one where it is unknown: the outermost is often a batch of one image or text."""
    unknown = sorted(loop for loop in order if loop is not None and loops[loop].static is None)

    def likely(loop: int, size: Size) -> int:
        if size.static is not None:
            return size.static
        several = _LIKELY_STEPPED if steps.get(loop, 1) > 1 else 1 if loop in unknown[:1] else _LIKELY
        return max(size.factor, several)

    return tuple(likely(loop, size) for loop, size in enumerate(loops))


def distribute(kernel: Kernel, tiles: Sequence[Tile], target: Target, grain: Grain = ELEMENTS) -> tuple[GridAxis, ...]:
    """Cuts the outermost loops that all nests share, or those of the only nest."""
    if not kernel.nests:
        return ()
    nest, tile = kernel.nests[-1], tiles[-1]
    points = [one.points for one in kernel.nests]
    total = None if None in points else sum(count or 0 for count in points)
    if len(kernel.nests) > 1:
        steps: dict[int | None, int] = {kernel.shared: max(kernel.block, 1)}
        beside = [one.loops for one in kernel.nests[:-1]]
        return cut(nest.loops, range(kernel.common), steps, total, grain, target.cores, beside)
    steps = {tile.unroll_loop: tile.unroll, tile.loop: tile.lanes}
    return cut(nest.loops, nest.parallel, steps, total, grain, target.cores)


def distribute_panels(kernel: Kernel, tile: Tile, target: Target) -> tuple[GridAxis, ...]:
    """Cuts a contraction whose weights are read panel by panel: first along the lanes, so that each workgroup has
    weights of its own, then along the rows."""
    nest = kernel.nests[0]
    steps = {tile.unroll_loop: tile.unroll, tile.loop: tile.lanes}
    grain = replace(PRODUCTS, points=PRODUCTS.points // _READ_COST) if tile.unroll == 1 else PRODUCTS
    return cut(nest.loops, panel_order(nest, tile), steps, nest.points, grain, target.cores)


def panel_order(nest: Nest, tile: Tile) -> tuple[int | None, ...]:
    """The loops of a contraction in the order in which they are cut."""
    around = [loop for loop in nest.parallel if loop not in (*tile.inside, tile.loop, tile.unroll_loop)]
    return (*around, tile.loop, *tile.inside, tile.unroll_loop)


def distribute_windows(kernel: Kernel, tile: Tile, target: Target) -> tuple[GridAxis, ...]:
    """Cuts the loops around the rows, then the lanes; rows know where they are, and stay whole."""
    nest = kernel.nests[0]
    order = window_order(nest, tile)
    return cut(nest.loops, order, {tile.loop: tile.lanes}, nest.points, WINDOWS, target.cores)


def window_order(nest: Nest, tile: Tile) -> tuple[int, ...]:
    """The loops of a window in the order in which they are cut."""
    outer = [loop for loop in nest.parallel if loop not in (tile.unroll_loop, tile.loop)]
    return (*outer, *([] if tile.loop is None else [tile.loop]))


def distribute_transforms(kernel: Kernel, tile: Tile, transform: TileTransform, target: Target) -> tuple[GridAxis, ...]:
    """Cuts the loops over small tiles, but for one that is rows, and then the channels."""
    nest = kernel.nests[0]
    loops = [loop for loop in nest.parallel if loop not in (transform.p, transform.q, tile.loop)]
    elements = product([nest.loops[loop] for loop in (transform.i, transform.j, *loops, tile.loop) if loop is not None])
    order = transform_order(nest, tile, transform)
    return cut(nest.loops, order, {tile.loop: tile.width}, elements.static, ELEMENTS, target.cores)


def transform_order(nest: Nest, tile: Tile, transform: TileTransform) -> list[int]:
    """The loops around small tiles in the order in which they are cut."""
    apart = (transform.p, transform.q, tile.loop, tile.unroll_loop)
    return [*(loop for loop in nest.parallel if loop not in apart), *([] if tile.loop is None else [tile.loop])]


def distribute_heads(kernel: Kernel, tiles: Sequence[Tile], target: Target) -> tuple[GridAxis, ...]:
    """One head a workgroup, so that what all of its blocks read is made once; rows are cut where heads are few."""
    nest = kernel.nests[-1]
    heads = range(min(kernel.shared, MAX_GRID_AXES))
    count = product([nest.loops[loop] for loop in heads]).static
    if count is None or count < max(4, target.cores):
        return distribute(kernel, tiles, target, HEADS)
    return tuple(GridAxis(loop, 1) for loop in reversed(heads))
