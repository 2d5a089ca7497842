"""Schedules of tile instructions are those of machine code, read in their own way.

`Tile.loop` runs along the columns of a tile, `unroll_loop` along its rows; either may be a reduction. `width` is that
of a panel of weights, and always the same. `unroll` is how many rows a tile has at least (where there are so many); a
product has exactly so many. How many columns that leaves is for the runtime to say.
"""

from __future__ import annotations

from eyas.codegen.common import constraints
from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.module.vmvx_isa import PANEL, UNIT_COLUMNS, UNIT_ROWS

MAX_ROWS = UNIT_ROWS * UNIT_COLUMNS


def check_schedule(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why the schedule cannot run this kernel, or None."""
    if (problem := constraints.check_schedule(schedule, kernel)) is not None:
        return problem
    for number, (tile, nest) in enumerate(zip(schedule.tiles, kernel.nests, strict=True)):
        if (problem := _check_tile(tile, nest)) is not None:
            return f"tiles[{number}].{problem}"
        if kernel.block and number >= kernel.first and tile.loop == kernel.shared:
            return f"tiles[{number}].loop is {tile.loop}; that loop runs in blocks of rows, so it cannot be columns"
    if schedule.staged:
        return f"staged is {list(schedule.staged)}; tile instructions copy what they need by themselves"
    return None


def _check_tile(tile: Tile, nest: Nest) -> str | None:
    for name, only in (("width", PANEL), ("vectors", 1)):
        if getattr(tile, name) != only:
            return f"{name} is {getattr(tile, name)}; for tile instructions it is always {only}"
    if tile.unroll > MAX_ROWS:
        return f"unroll is {tile.unroll}; a tile has 1 to {MAX_ROWS} rows"
    first = nest.statements[0]
    for name in ("loop", "unroll_loop"):
        loop = getattr(tile, name)
        if loop not in nest.reductions:
            continue
        if loop not in first.reductions or any(statement.reductions for statement in nest.statements[1:]):
            return f"{name} is {loop}; only the nest's first and only reduction can be in a tile"
        if combiner_of(first.body, len(first.inputs)) is None:
            return f"{name} is {loop}, a reduction whose partial results cannot be combined"
    if not gives_boxes(nest, tile.loop, tile.unroll_loop):
        return f"loop is {tile.loop} and unroll_loop {tile.unroll_loop}; what is padded along both is no box of a tile"
    return None


def gives_boxes(nest: Nest, lane: int | None, row: int | None) -> bool:
    """A guard gives a box only where it does not change along both loops, nor backwards."""
    for access in nest.all_accesses:
        for guard in access.guards:
            along = [0 if loop is None else guard.coefficients[loop] for loop in (lane, row)]
            if all(along) or min(along) < 0:
                return False
    return True
