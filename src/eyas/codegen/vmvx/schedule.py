"""Schedules of tile instructions are those of machine code, read in their own way.

`Tile.loop` runs along the columns of a tile, `unroll_loop` along its rows; either may be a reduction. `width` is that
of a panel of weights, and always the same. `unroll` is how many rows a tile has at least (where there are so many); a
product has exactly so many. How many columns that leaves is for the runtime to say.
"""

from __future__ import annotations

from eyas.codegen.common import constraints
from eyas.codegen.common.combine import combiner_of
from eyas.codegen.common.constraints import NO_LOOP, TileNumbers
from eyas.codegen.common.expressions import all_of, differ, equal, one_of
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import Schedule
from eyas.codegen.common.space import Constraint, first_problem, law
from eyas.module.vmvx_isa import PANEL, UNIT_COLUMNS, UNIT_ROWS

MAX_ROWS = UNIT_ROWS * UNIT_COLUMNS


def check_schedule(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why the schedule cannot run this kernel, or None."""
    if (problem := constraints.check_schedule(schedule, kernel)) is not None:
        return problem
    for number, tile in enumerate(schedule.tiles):
        if (problem := first_problem(tile_laws(kernel, number), TileNumbers.of(number).values(tile))) is not None:
            return problem
    if schedule.staged:
        return f"staged is {list(schedule.staged)}; tile instructions copy what they need by themselves"
    return None


def tile_laws(kernel: Kernel, number: int) -> list[Constraint]:
    """What tile instructions ask of the numbers of a tile, beside what every target asks."""
    of, nest = TileNumbers.of(number), kernel.nests[number]
    found = [
        law(equal(getattr(of, name), only), of.words(name, f"for tile instructions it is always {only}"))
        for name, only in (("width", PANEL), ("vectors", 1), ("dot", 1))
    ]
    found.append(law(of.unroll <= MAX_ROWS, of.words("unroll", f"a tile has 1 to {MAX_ROWS} rows")))
    first = nest.statements[0]
    lone = [] if any(statement.reductions for statement in nest.statements[1:]) else first.reductions
    for name in ("loop", "unroll_loop"):
        field = getattr(of, name)
        other = [loop for loop in sorted(nest.reductions) if loop not in lone]
        words = of.words(name, "only the nest's first and only reduction can be in a tile")
        found += [law(~one_of(field, other), words)] if other else []
        if lone and combiner_of(first.body, len(first.inputs)) is None:
            words = f"{of.path}.{name} is {{{of.path}.{name}}}, a reduction whose partial results cannot be combined"
            found.append(law(~one_of(field, lone), words))
    loops = [NO_LOOP, *range(len(nest.loops))]
    pairs = [(lane, row) for lane in loops for row in loops if not gives_boxes(nest, _loop(lane), _loop(row))]
    if pairs:
        words = f"{of.path}.loop is {{{of.path}.loop}} and unroll_loop {{{of.path}.unroll_loop}}; what is padded along"
        boxes = all_of([differ(of.loop, lane) | differ(of.unroll_loop, row) for lane, row in pairs])
        found.append(law(boxes, f"{words} both is no box of a tile"))
    if kernel.block and number >= kernel.first:
        words = "that loop runs in blocks of rows, so it cannot be columns"
        found.append(law(differ(of.loop, kernel.shared), of.words("loop", words)))
    return found


def _loop(number: int) -> int | None:
    return None if number == NO_LOOP else number


def gives_boxes(nest: Nest, lane: int | None, row: int | None) -> bool:
    """A guard gives a box only where it does not change along both loops, nor backwards."""
    for access in nest.all_accesses:
        for guard in access.guards:
            along = [0 if loop is None else guard.coefficients[loop] for loop in (lane, row)]
            if all(along) or min(along) < 0:
                return False
    return True
