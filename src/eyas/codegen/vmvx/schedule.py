"""Schedules of tile instructions are those of machine code, read in their own way.

`Tile.vector_loop` runs along the columns of a tile, `unroll_loop` along its rows; either may be a reduction. `width` is
that of a panel of weights. `unroll` is how many rows a tile has at least (where there are so many); a product has
exactly so many. How many columns that leaves is for the runtime to say.
"""

from __future__ import annotations

from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.panels import why_not_packed
from eyas.codegen.common.schedule import Schedule, Tile, check_grid
from eyas.module.vmvx_isa import PANEL, UNIT_COLUMNS, UNIT_ROWS

MAX_ROWS = UNIT_ROWS * UNIT_COLUMNS


def check_schedule(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why the schedule cannot run this kernel, or None."""
    if len(schedule.tiles) != len(kernel.nests):
        return f"{len(schedule.tiles)} tiles for {len(kernel.nests)} loop nests"
    for number, (tile, nest) in enumerate(zip(schedule.tiles, kernel.nests, strict=True)):
        if (problem := _check_tile(tile, nest, number, kernel)) is not None:
            return f"tile {number}: {problem}"
    if (problem := check_grid(schedule, kernel)) is not None:
        return problem
    for binding in schedule.packed:
        if (problem := why_not_packed(kernel, schedule.tiles, binding)) is not None:
            return f"binding {binding} cannot lie in panels: {problem}"
    return None


def _check_tile(tile: Tile, nest: Nest, number: int, kernel: Kernel) -> str | None:
    own = [loop for loop in nest.parallel if loop >= kernel.shared]
    lanes = [loop for loop in own if not kernel.block or loop != kernel.shared or number < kernel.first]
    if tile.width != PANEL or tile.vectors != 1:
        return f"width {tile.width} by {tile.vectors}; here it is {PANEL} by 1"
    if not 1 <= tile.unroll <= MAX_ROWS:
        return f"{tile.unroll} rows; 1 to {MAX_ROWS} are allowed"
    if tile.vector_loop is not None and tile.vector_loop not in [*lanes, *nest.reductions]:
        return f"columns along loop {tile.vector_loop}, which is not a loop of this nest"
    if tile.unroll_loop is not None and tile.unroll_loop not in [*own, *nest.reductions]:
        return f"rows along loop {tile.unroll_loop}, which is not a loop of this nest"
    if tile.unroll_loop is not None and tile.unroll_loop == tile.vector_loop:
        return f"rows and columns along loop {tile.unroll_loop}"
    for loop in tile.inside:
        if loop not in own or loop in (tile.vector_loop, tile.unroll_loop):
            return f"loop {loop} inside the columns, which is not another parallel loop of this nest"
    return None
