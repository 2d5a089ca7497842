"""Which schedules machine code can run: constraints with messages, for heuristic, verifier and tuner alike."""

from __future__ import annotations

from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.panels import why_not_packed
from eyas.codegen.common.schedule import Schedule, Tile, check_grid
from eyas.codegen.llvm_cpu.staging import why_not_staged

MAX_WIDTH = 64


def check_schedule(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why the schedule cannot run this kernel, or None."""
    if len(schedule.tiles) != len(kernel.nests):
        return f"{len(schedule.tiles)} tiles for {len(kernel.nests)} loop nests"
    for number, (tile, nest) in enumerate(zip(schedule.tiles, kernel.nests, strict=True)):
        problem = _check_tile(tile, nest, kernel.shared)
        if problem is None and number >= kernel.first:
            problem = _check_block(tile, kernel)
        if problem is not None:
            return f"tile {number}: {problem}"
    if (problem := check_grid(schedule, kernel)) is not None:
        return problem
    for binding in schedule.packed:
        if (problem := why_not_packed(kernel, schedule.tiles, binding)) is not None:
            return f"binding {binding} cannot lie in panels: {problem}"
    if len(schedule.staged) > 1 or set(schedule.staged) & set(schedule.packed):
        return "only one binding can be staged, and not one that is packed"
    for binding in schedule.staged:
        if (problem := why_not_staged(kernel, schedule.tiles, binding)) is not None:
            return f"binding {binding} cannot be staged: {problem}"
    for tile in schedule.tiles if len(kernel.nests) == 1 else ():
        for axis in schedule.grid:
            if tile.unroll_loop == axis.loop and axis.tile % tile.unroll:
                return f"pieces of {axis.tile} of loop {axis.loop} do not hold whole rows of {tile.unroll}"
    return None


def _check_block(tile: Tile, kernel: Kernel) -> str | None:
    """Tiles must fit into the blocks in which a common loop runs."""
    if not kernel.block:
        return None
    if tile.vector_loop == kernel.shared:
        return f"lanes along loop {kernel.shared}, which runs in blocks"
    if tile.unroll_loop == kernel.shared and kernel.block % tile.unroll:
        return f"{tile.unroll} rows do not divide blocks of {kernel.block}"
    return None


def _check_tile(tile: Tile, nest: Nest, shared: int) -> str | None:
    own = [loop for loop in nest.parallel if loop >= shared]
    if tile.width < 1 or tile.width > MAX_WIDTH or tile.width & (tile.width - 1):
        return f"width {tile.width}; it must be a power of two up to {MAX_WIDTH}"
    if tile.vectors < 1 or tile.unroll < 1:
        return f"{tile.vectors} vectors by {tile.unroll} rows; both must be at least 1"
    if tile.vector_loop is not None and tile.vector_loop not in [*own, *nest.reductions]:
        return f"lanes along loop {tile.vector_loop}, which is not a loop of this nest"
    if tile.width > 1 and tile.vector_loop is None:
        return f"width {tile.width} without a loop for the lanes"
    if tile.unroll_loop is not None and (tile.unroll_loop not in own or tile.unroll_loop == tile.vector_loop):
        return f"rows along loop {tile.unroll_loop}, which is not another parallel loop of this nest"
    for loop in tile.inside:
        if loop not in own or loop in (tile.vector_loop, tile.unroll_loop):
            return f"loop {loop} inside the lanes, which is not another parallel loop of this nest"
    if tile.unroll > 1 and tile.unroll_loop is None:
        return f"{tile.unroll} rows without a loop for them"
    return None
