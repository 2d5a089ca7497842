"""Which schedules a kernel can run under, whatever the target: one list for heuristics, people, specs and tuners.

A constraint is broken in a sentence that begins with the field, says what it has, and then what it may have. What is
about the numbers of a tile is data (`tile_laws`): checks evaluate it, and spaces of strategies have it among their
constraints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eyas.codegen.common.expressions import Int, Var, differ, equal, one_of
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.panels import readers_of, why_not_packed
from eyas.codegen.common.schedule import MAX_GRID_AXES, Schedule, Tile
from eyas.codegen.common.space import Constraint, first_problem, law

_MAX_PIECE = 2**31 - 1
MAX_PREFETCH = 8
MAX_WRITTEN_OUT = 64
"""Points of a window: all of them are code."""
NO_LOOP = -1
"""What stands for a loop that is left out, where tiles are numbers."""


@dataclass(frozen=True)
class TileNumbers:
    """The numbers of one tile as variables, which are called as errors call them: `tiles[0].width`."""

    path: str

    def __getattr__(self, name: str) -> Int:
        if name not in FIELDS:
            raise AttributeError(name)
        return Var(f"{self.path}.{name}")

    @property
    def lanes(self) -> Int:
        return self.width * self.vectors

    @staticmethod
    def of(number: int) -> TileNumbers:
        return TileNumbers(f"tiles[{number}]")

    def words(self, name: str, rest: str) -> str:
        """A message that begins with one of them."""
        return f"{self.path}.{name} is {{{self.path}.{name}}}; {rest}"

    def values(self, tile: Tile) -> dict[str, int]:
        """What they are in a tile."""
        numbers = {name: getattr(tile, name) for name in FIELDS}
        return {f"{self.path}.{name}": NO_LOOP if value is None else value for name, value in numbers.items()}

    def read(self, point: Mapping[str, int]) -> Tile:
        """The tile that a point has."""
        numbers = {name: point[f"{self.path}.{name}"] for name in FIELDS}
        loops = {name: None if numbers[name] == NO_LOOP else numbers[name] for name in ("loop", "unroll_loop")}
        return Tile(**(numbers | loops))  # type: ignore[arg-type]


FIELDS = ("loop", "width", "vectors", "unroll_loop", "unroll", "dot")
"""The fields of a tile that are numbers."""


def check_schedule(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why no target can run the kernel under this schedule, or None."""
    if len(schedule.tiles) != len(kernel.nests):
        return f"tiles has {len(schedule.tiles)} tiles; it must have one for each of the {len(kernel.nests)} loop nests"
    for number, (tile, nest) in enumerate(zip(schedule.tiles, kernel.nests, strict=True)):
        if (problem := _check_loops(number, tile, nest, kernel.shared)) is not None:
            return problem
    if schedule.panels not in (0, 1) or (schedule.packed and not schedule.panels):
        return f"panels is {schedule.panels}; it must be 1, or 0 where nothing is packed"
    if not 0 <= schedule.prefetch <= MAX_PREFETCH:
        return f"prefetch is {schedule.prefetch}; it must be 0 to {MAX_PREFETCH}"
    if not 1 <= schedule.taps <= MAX_WRITTEN_OUT:
        return f"taps is {schedule.taps}; it must be 1 to {MAX_WRITTEN_OUT}"
    return check_grid(schedule, kernel) or _check_panels(schedule, kernel)


def own_loops(nest: Nest, shared: int) -> list[int]:
    """The parallel loops of a nest that no other nest runs with it."""
    return [loop for loop in nest.parallel if loop >= shared]


def tile_laws(number: int, nest: Nest, shared: int) -> list[Constraint]:
    """What holds for the tile of a nest on every target; the first `shared` loops are outside of all nests."""
    of, lanes = TileNumbers.of(number), _loops_of_tiles(nest, shared)
    found = [
        law(getattr(of, name) >= 1, of.words(name, "it must be at least 1")) for name in ("width", "vectors", "unroll")
    ]
    found.append(law(one_of(of.loop, [NO_LOOP, *lanes]), of.words("loop", _allowed(lanes))))
    for loop in (NO_LOOP, *lanes):
        others = [other for other in lanes if other != loop]
        condition = differ(of.loop, loop) | one_of(of.unroll_loop, [NO_LOOP, *others])
        found.append(law(condition, of.words("unroll_loop", _allowed(others))))
    alone = differ(of.unroll_loop, NO_LOOP) | equal(of.unroll, 1)
    return [*found, law(alone, of.words("unroll", "without an unroll_loop it must be 1"))]


def _loops_of_tiles(nest: Nest, shared: int) -> list[int]:
    return [*own_loops(nest, shared), *sorted(nest.reductions)]


def _check_loops(number: int, tile: Tile, nest: Nest, shared: int) -> str | None:
    of = TileNumbers.of(number)
    for name in ("loop", "unroll_loop"):
        if getattr(tile, name) == NO_LOOP:  # written by hand: what is left out is None
            return f"{of.path}.{name} is {NO_LOOP}; {_allowed(_loops_of_tiles(nest, shared))}"
    if (problem := first_problem(tile_laws(number, nest, shared), of.values(tile))) is not None:
        return problem
    inside = [loop for loop in own_loops(nest, shared) if loop not in (tile.loop, tile.unroll_loop)]
    if len(set(tile.inside)) != len(tile.inside) or not set(tile.inside) <= set(inside):
        return f"{of.path}.inside is {list(tile.inside)}; {_allowed(inside)}, each once"
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
