"""How many workgroups: enough to keep the cores busy, few enough that starting one costs nothing beside its work."""

from __future__ import annotations

from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import Size, product
from eyas.codegen.common.strategy import GridAxis

# A workgroup costs about 0.1 us to claim and start; this many scalar operations take some 10 us.
_MINIMUM_POINTS = 16_384
_WORKGROUPS = 16
# A contraction does some 30 multiply-adds a nanosecond and core; 5 us are worth a workgroup.
_MINIMUM_PANEL_POINTS = 150_000
# Without rows each weight is read for one multiply-add, which takes as long as this many from registers.
_READ_COST = 5
_PANEL_WORKGROUPS = 24
_MAX_AXES = 3
# What a loop of unknown extent is cut into.
_DYNAMIC_PIECE_POINTS = 32_768


def distribute(kernel: Kernel, tiles: list[Tile]) -> tuple[GridAxis, ...]:
    """Cuts the outermost parallel loops into pieces until there are enough workgroups."""
    if not kernel.nests:
        return ()
    nest, tile = kernel.nests[-1], tiles[-1]
    loops = list(range(kernel.common)) if len(kernel.nests) > 1 else nest.parallel
    steps = {tile.unroll_loop: tile.unroll, tile.vector_loop: tile.width * tile.vectors}
    if len(kernel.nests) > 1:
        steps = {kernel.shared: max(kernel.block, 1)}
    points = sum(product(n.loops).static or 0 for n in kernel.nests)
    dynamic = any(not product(n.loops).is_static for n in kernel.nests)
    if not dynamic and points < 2 * _MINIMUM_POINTS:
        return ()
    wanted = _WORKGROUPS if dynamic else min(_WORKGROUPS, points // _MINIMUM_POINTS)

    axes: list[GridAxis] = []
    count = 1
    for loop in loops:
        extent, step = nest.loops[loop], steps.get(loop, 1)
        if len(axes) == _MAX_AXES or count >= wanted:
            break
        if extent.static is None:
            axes.append(GridAxis(loop, extent, _dynamic_piece(nest.loops, loop, step)))
            count *= 4  # a guess: dynamic loops are rarely short
            continue
        blocks = -(-extent.static // step)
        if blocks <= 1:
            continue
        pieces = min(blocks, -(-wanted // count))
        piece = -(-blocks // pieces) * step
        axes.append(GridAxis(loop, extent, piece))
        count *= -(-extent.static // piece)
    # x is the fastest axis, so it takes the innermost loop: neighbours in time then share operands.
    return tuple(reversed(axes))


def distribute_panels(kernel: Kernel, tile: Tile) -> tuple[GridAxis, ...]:
    """Cuts a contraction whose weights are read panel by panel: first along the lanes, so that each workgroup has
    weights of its own, then along the rows. Workgroups that follow each other share their panels."""
    nest = kernel.nests[0]
    points = product(nest.loops).static
    if points is None:
        return distribute(kernel, [tile])
    work = points * (_READ_COST if tile.unroll == 1 else 1)
    wanted = min(_PANEL_WORKGROUPS, work // _MINIMUM_PANEL_POINTS)
    steps = {tile.unroll_loop: tile.unroll, tile.vector_loop: tile.lanes}
    around = [loop for loop in nest.parallel if loop not in (*tile.inside, *steps)]
    axes: list[GridAxis] = []
    count = 1
    for loop in (*around, tile.vector_loop, *tile.inside, tile.unroll_loop):
        if loop is None or len(axes) == _MAX_AXES or count >= wanted:
            continue
        extent, step = nest.loops[loop].static or 0, steps.get(loop, 1)
        blocks = -(-extent // step)
        pieces = min(blocks, -(-wanted // count))
        if pieces > 1:
            axes.append(GridAxis(loop, nest.loops[loop], -(-blocks // pieces) * step))
            count *= -(-extent // axes[-1].tile)
    return tuple(reversed(axes))


def _dynamic_piece(loops: list[Size], loop: int, step: int) -> int:
    rest = product([size for other, size in enumerate(loops) if other != loop])
    per_index = max(1, rest.static if rest.static is not None else 256)
    return max(1, _DYNAMIC_PIECE_POINTS // per_index // step) * step
