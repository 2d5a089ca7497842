"""Into how many workgroups loops are cut, as knobs: one for each loop that may be cut.

A loop of known extent has the number of its pieces, `workgroups[1]`, each of whole steps of its tile; one of unknown
extent the points of a piece, `piece[1]`, with 0 where it is not cut. Axes of the grid follow an order that the strategy
has, the last of them fastest, as in `distribute.cut`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eyas.codegen.common.expressions import Number, Var, ceil_div, equal, least, lift, product_of
from eyas.codegen.common.schedule import MAX_GRID_AXES, GridAxis
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.space import Constraint, Knob, advice, domain, law

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
# Times the default, where nobody knows the extent.
_TIMES = (1, 2, 4)
_UNKNOWN_PIECE = 16
# Workgroups for each core that are worth trying, and on small machines.
_MOST_PER_CORE, _MOST_WORKGROUPS = 16, 64


@dataclass(frozen=True)
class GridSpace:
    """The loops of a kernel that may be cut, by their numbers in `loops`."""

    loops: tuple[Size, ...]
    cut: tuple[int, ...]

    def name(self, loop: int) -> str:
        return f"piece[{loop}]" if self.loops[loop].static is None else f"workgroups[{loop}]"

    def point(self, grid: Sequence[GridAxis]) -> dict[str, int]:
        """The grid as numbers."""
        pieces = {axis.loop: axis.tile for axis in grid}
        found = {}
        for loop in self.cut:
            extent = self.loops[loop].static
            if extent is None:
                found[self.name(loop)] = pieces.get(loop, 0)
            else:
                found[self.name(loop)] = max(1, -(-extent // pieces.get(loop, max(extent, 1))))
        return found

    def grid(self, point: Mapping[str, int], order: Sequence[int], steps: Mapping[int, int]) -> tuple[GridAxis, ...]:
        """The grid that a point has; pieces are of whole `steps`."""
        axes = []
        for loop in (loop for loop in order if loop in self.cut):
            number, step, extent = point[self.name(loop)], steps.get(loop, 1), self.loops[loop].static
            if extent is None:
                axes += [GridAxis(loop, -(-number // step) * step)] if number else []
            elif number > 1:
                blocks = -(-extent // step)
                axes.append(GridAxis(loop, -(-blocks // number) * step))
        return tuple(reversed(axes))

    def knobs(self, default: Sequence[GridAxis]) -> list[Knob]:
        chosen, found = self.point(default), []
        for loop in self.cut:
            name, extent = self.name(loop), self.loops[loop].static
            if extent is None:
                piece = chosen[name] or _UNKNOWN_PIECE
                values = domain(
                    [0, *(piece * times for times in _TIMES), *(max(1, piece // times) for times in _TIMES)]
                )
                found.append(Knob(name, values, f"points of loop {loop} that one workgroup has; 0: all"))
            else:
                values = domain([count for count in _COUNTS if count <= max(extent, 1)], chosen[name])
                found.append(Knob(name, values, f"workgroups that divide the {extent} points of loop {loop}"))
        return found

    def constraints(self, step: Callable[[int], Number], default: Sequence[GridAxis], cores: int) -> list[Constraint]:
        """What pieces must keep, with the steps that tiles advance in along each loop."""
        numbers = {loop: Var(self.name(loop)) for loop in self.cut}
        static = {loop: size for loop in self.cut if (size := self.loops[loop].static) is not None}
        axes = lift(0)
        for loop, number in numbers.items():
            axes = axes + least(number - 1 if loop in static else number, 1)
        found = []
        if len(self.cut) > MAX_GRID_AXES:
            words = f"grid has {{axes}} axes; at most {MAX_GRID_AXES} are allowed"
            found.append(law(axes <= MAX_GRID_AXES, words, axes=axes))
        for loop, extent in static.items():
            blocks = ceil_div(max(extent, 1), step(loop))
            name = self.name(loop)
            words = f"{name} is {{{name}}}; pieces of whole tiles are as many as with fewer workgroups"
            number = numbers[loop]
            found.append(advice(equal(ceil_div(blocks, ceil_div(blocks, number)), number), words))
        chosen = self.point(default)
        total = product_of(numbers[loop] for loop in static)
        begin = product_of(chosen[self.name(loop)] for loop in static)
        assert isinstance(begin, int)
        most = max(_MOST_WORKGROUPS, _MOST_PER_CORE * cores, begin)
        if static:
            first = self.name(next(iter(static)))
            words = f"{first} is {{{first}}}; {{total}} workgroups are more than {most}"
            found.append(advice(lift(total) <= most, words, total=total))
        return found
