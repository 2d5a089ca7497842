"""Strategies that emit loop nests under a schedule."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from torch_mlir import ir as mlir

from eyas.codegen.common import constraints
from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.constraints import TileNumbers
from eyas.codegen.common.expressions import Number, Var, equal, select
from eyas.codegen.common.grid_space import GridSpace
from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.schedule import Block, GridAxis, Schedule, Tile
from eyas.codegen.common.sizes import ONE, Size
from eyas.codegen.common.space import Constraint, Knob, Space, domain, suited, wrong_names
from eyas.codegen.common.strategies.base import Strategy
from eyas.targets import Target

Nested = TypeVar("Nested", bound="NestStrategy")
NO_NESTS = "not expressible as loop nests"
BLOCK_ROWS = "block.rows"
# Rows of a block that are worth trying.
_BLOCKS = (2, 4, 6, 8, 12, 16, 24, 32, 48)


@dataclass(frozen=True)
class NestStrategy(Strategy):
    """A kernel, with rows in the blocks that the schedule says, and the schedule.

    Its space is that around the default choice: the numbers of each tile, rows of a block, pieces of the grid, and what
    a strategy has on top. Targets say which tiles there are (`tile_knobs`, `tile_constraints`)."""

    kernel: Kernel
    schedule: Schedule

    @classmethod
    @abstractmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        """Why the kernel cannot run under this schedule, in a sentence that begins with the field; or None."""

    @classmethod
    def check_target(cls, schedule: Schedule, kernel: Kernel, target: Target) -> str | None:
        """Why this target cannot run such a schedule, though others may; or None."""
        del schedule, kernel, target
        return None

    @classmethod
    def from_attribute(
        cls: type[Nested], schedule: mlir.Attribute, found: Analysis, target: Target | None = None
    ) -> Nested | str:
        read = Schedule.from_attribute(schedule)
        kernel = found.kernel(read.block)
        if isinstance(kernel, str):
            return f"block: {kernel}" if read.block is not None else f"tiles: {kernel}"
        return cls._checked(read, kernel, target)

    @classmethod
    def _checked(cls: type[Nested], schedule: Schedule, kernel: Kernel, target: Target | None) -> Nested | str:
        if (problem := cls.check(schedule, kernel)) is not None:
            return problem
        return (None if target is None else cls.check_target(schedule, kernel, target)) or cls(kernel, schedule)

    def problem(self) -> str | None:
        return self.check(self.schedule, self.kernel)

    def schedule_attribute(self) -> mlir.DictAttr:
        return self.schedule.to_attribute()

    @property
    def grid(self) -> tuple[GridAxis, ...]:
        return self.schedule.grid

    @property
    def grid_extents(self) -> tuple[Size, ...]:
        return tuple(self.kernel.nests[-1].loops[axis.loop] for axis in self.schedule.grid)

    # --- the space ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def tile_knobs(self, number: int, target: Target) -> Sequence[Knob]:
        """The numbers of a nest's tile: `TileNumbers`."""

    @abstractmethod
    def tile_constraints(self, number: int, target: Target) -> Sequence[Constraint]:
        """What they must keep, beside `constraints.tile_laws`, and what is worth trying."""

    def own_knobs(self, target: Target) -> Sequence[Knob]:
        """What else can be chosen."""
        del target
        return ()

    def own_constraints(self, target: Target) -> Sequence[Constraint]:
        del target
        return ()

    def own_point(self) -> dict[str, int]:
        """What was chosen for `own_knobs`."""
        return {}

    def own_schedule(self, schedule: Schedule, point: Mapping[str, int]) -> Schedule:
        """The schedule with what a point has for `own_knobs`."""
        del point
        return schedule

    def cut_order(self, tiles: Sequence[Tile]) -> Sequence[int]:
        """Loops in the order in which they are cut into workgroups, under these tiles."""
        del tiles
        return self._grid_space.cut

    @classmethod
    def space(cls, found: Analysis, target: Target) -> Space | str:
        default = cls.choose(found, target)
        if isinstance(default, str):
            return default
        assert isinstance(default, NestStrategy)
        if (problem := default.problem()) is not None:
            return f"its own schedule is refused: {problem}"
        point, grid = default.point, default._grid_space
        numbers = range(len(default.kernel.nests))
        knobs = [
            *(knob for number in numbers for knob in default.tile_knobs(number, target)),
            *default._block_knobs(found),
            *default.own_knobs(target),
            *grid.knobs(default.grid),
        ]
        constraints_ = [
            *(one for number in numbers for one in default._laws(number)),
            *(one for number in numbers for one in default.tile_constraints(number, target)),
            *default.own_constraints(target),
            *grid.constraints(default._step, default.grid, target.cores),
        ]
        wider = tuple(replace(one, domain=domain(one.domain, point[one.name])) for one in knobs)
        return Space(cls.name, wider, suited(constraints_, point))

    @classmethod
    def at(cls: type[Nested], found: Analysis, target: Target, point: Mapping[str, int]) -> Nested | str:
        default = cls.choose(found, target)
        if isinstance(default, str):
            return default
        assert isinstance(default, cls)
        if (problem := wrong_names(list(default.point), point)) is not None:
            return problem
        block = default.schedule.block
        block = None if block is None else replace(block, rows=point[BLOCK_ROWS])
        kernel = found.kernel(block)
        if isinstance(kernel, str):
            return f"{BLOCK_ROWS} is {point[BLOCK_ROWS]}; {kernel}"
        moved = default._moved(kernel, block, point)
        chosen = cls._checked(moved, kernel, target)
        return chosen if isinstance(chosen, str) else chosen.tried()

    @property
    def point(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, tile in enumerate(self.schedule.tiles):
            found |= TileNumbers.of(number).values(tile)
        if self.schedule.block is not None:
            found[BLOCK_ROWS] = self.schedule.block.rows
        return found | self.own_point() | self._grid_space.point(self.schedule.grid)

    def _moved(self, kernel: Kernel, block: Block | None, point: Mapping[str, int]) -> Schedule:
        tiles = tuple(TileNumbers.of(number).read(point) for number in range(len(kernel.nests)))
        plain = replace(self, kernel=kernel, schedule=Schedule(tiles, block=block))
        schedule = plain.own_schedule(plain.schedule, point)
        order = plain.cut_order(schedule.tiles)
        if len(kernel.nests) > 1:
            steps = {kernel.shared: max(kernel.block, 1)}
        else:
            (tile,) = schedule.tiles
            pairs = ((tile.unroll_loop, tile.unroll), (tile.loop, plain.lane_step(tile)))
            steps = {loop: step for loop, step in pairs if loop is not None}
        return replace(schedule, grid=plain._grid_space.grid(point, order, steps))

    @property
    def _grid_space(self) -> GridSpace:
        kernel = self.kernel
        if not kernel.nests:
            return GridSpace((), ())
        nest = kernel.nests[-1]
        loops = range(kernel.common) if len(kernel.nests) > 1 else nest.parallel
        return GridSpace(nest.loops, tuple(loop for loop in loops if nest.loops[loop] != ONE and self.may_cut(loop)))

    def lane_step(self, tile: Any) -> Any:
        """Of how many points along the lanes of a tile, or of its numbers, a workgroup has whole multiples."""
        return tile.lanes

    def may_cut(self, loop: int) -> bool:
        """Whether workgroups may divide a loop."""
        del loop
        return True

    def _step(self, loop: int) -> Number:
        """How many points of a loop are done at once at least."""
        if len(self.kernel.nests) > 1:
            return Var(BLOCK_ROWS) if self.schedule.block is not None and loop == self.kernel.shared else 1
        of = TileNumbers.of(0)
        return select(equal(of.loop, loop), self.lane_step(of), select(equal(of.unroll_loop, loop), of.unroll, 1))

    def _laws(self, number: int) -> list[Constraint]:
        return constraints.tile_laws(number, self.kernel.nests[number], self.kernel.shared)

    def _block_knobs(self, found: Analysis) -> list[Knob]:
        """Rows of a block for which the nests are the same."""
        block = self.schedule.block
        if block is None:
            return []
        shapes = [nest.loops for nest in self.kernel.nests]
        most = self.kernel.nests[-1].loops[self.kernel.shared].static
        values = []
        for rows in _BLOCKS:
            other = found.kernel(replace(block, rows=rows)) if most is None or rows <= most else ""
            if not isinstance(other, str) and [nest.loops for nest in other.nests] == shapes:
                values.append(rows)
        return [Knob(BLOCK_ROWS, domain(values, block.rows), "rows that go through the nests together")]
