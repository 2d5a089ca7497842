"""Which schedules a kernel can run under, whatever the target: one list for heuristics, people, specs and tuners.

A constraint is broken in a sentence that begins with the field, says what it has, and then what it may have.
"""

from __future__ import annotations

from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.panels import readers_of, why_not_packed
from eyas.codegen.common.schedule import MAX_GRID_AXES, Schedule, Tile

_MAX_PIECE = 2**31 - 1


def check_schedule(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why no target can run the kernel under this schedule, or None."""
    if len(schedule.tiles) != len(kernel.nests):
        return f"tiles has {len(schedule.tiles)} tiles; it must have one for each of the {len(kernel.nests)} loop nests"
    for number, (tile, nest) in enumerate(zip(schedule.tiles, kernel.nests, strict=True)):
        if (problem := _check_loops(tile, nest, kernel.shared)) is not None:
            return f"tiles[{number}].{problem}"
    return check_grid(schedule, kernel) or _check_panels(schedule, kernel)


def own_loops(nest: Nest, shared: int) -> list[int]:
    """The parallel loops of a nest that no other nest runs with it."""
    return [loop for loop in nest.parallel if loop >= shared]


def _check_loops(tile: Tile, nest: Nest, shared: int) -> str | None:
    own = own_loops(nest, shared)
    lanes = [*own, *sorted(nest.reductions)]
    for name in ("width", "vectors", "unroll"):
        if getattr(tile, name) < 1:
            return f"{name} is {getattr(tile, name)}; it must be at least 1"
    if tile.loop is not None and tile.loop not in lanes:
        return f"loop is {tile.loop}; {_allowed(lanes)}"
    if tile.unroll_loop is not None and (tile.unroll_loop not in lanes or tile.unroll_loop == tile.loop):
        return f"unroll_loop is {tile.unroll_loop}; {_allowed([loop for loop in lanes if loop != tile.loop])}"
    inside = [loop for loop in own if loop not in (tile.loop, tile.unroll_loop)]
    if len(set(tile.inside)) != len(tile.inside) or not set(tile.inside) <= set(inside):
        return f"inside is {list(tile.inside)}; {_allowed(inside)}, each once"
    if tile.unroll > 1 and tile.unroll_loop is None:
        return f"unroll is {tile.unroll}; without an unroll_loop it must be 1"
    return None


def check_grid(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why workgroups cannot divide the kernel so, or None."""
    if len(schedule.grid) > MAX_GRID_AXES:
        return f"grid has {len(schedule.grid)} axes; at most {MAX_GRID_AXES} are allowed"
    allowed = list(range(kernel.common)) if len(kernel.nests) > 1 else kernel.nests[0].parallel if kernel.nests else []
    for number, axis in enumerate(schedule.grid):
        field = f"grid[{number}]"
        if axis.loop not in allowed or axis.loop in [other.loop for other in schedule.grid[:number]]:
            return f"{field}.loop is {axis.loop}; {_allowed(allowed)}, each once (reductions are never divided)"
        if not 1 <= axis.tile <= _MAX_PIECE:
            return f"{field}.tile is {axis.tile}; it must be 1 to {_MAX_PIECE}"
        if kernel.block and axis.loop == kernel.shared and axis.tile % kernel.block:
            return f"{field}.tile is {axis.tile}; it must hold whole blocks of {kernel.block} rows (block.rows)"
        for tile in schedule.tiles if schedule.packed else ():
            if tile.loop == axis.loop and axis.tile % tile.lanes:
                return f"{field}.tile is {axis.tile}; it must hold whole panels of {tile.lanes} lanes"
    return None


def _check_panels(schedule: Schedule, kernel: Kernel) -> str | None:
    for number, panels in enumerate(schedule.packed):
        field = f"packed[{number}]"
        if panels.binding in schedule.packed_bindings[:number]:
            return f"{field}.binding is {panels.binding}, which is there already; each binding is packed once"
        if (problem := why_not_packed(kernel, schedule.tiles, panels.binding)) is not None:
            return f"{field}.binding is {panels.binding}, which cannot lie in panels: {problem}"
        lanes = schedule.tiles[readers_of(kernel, panels.binding)[0][0]].lanes
        if panels.lanes != lanes:
            return (
                f"{field}.lanes is {panels.lanes}, but the tile reads panels of width * vectors = {lanes}; weights that"
                " are packed already fit only a tile of their own lanes (to pack them for another tile, note the"
                " strategy without `packed` on the dump of the phase before, and resume from there)"
            )
    return None


def _allowed(loops: list[int]) -> str:
    return f"allowed are the loops {loops}" if loops else "no loop is allowed here"
