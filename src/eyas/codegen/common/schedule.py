"""How a kernel is run: the data that strategies choose, the emitters obey, and a tuner varies.

Each target reads tiles in its own way and has a `check_schedule` with its constraints; those of the grid are here.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Kernel
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.strategy import GridAxis

MAX_GRID_AXES = 3


@dataclass(frozen=True)
class Tile:
    """The register tile of one nest.

    `vector_loop` runs in vectors of `width` lanes, `vectors` of them at a time; `unroll_loop` advances `unroll` points
    at a time, so that operands which do not depend on it are loaded once. A reduction may be the vector loop: then
    partial results are combined across lanes at the end. The loops `inside` run within a block of lanes, the others
    around it: a panel of weights then serves all of an image before the next panel is read.
    """

    width: int = 1
    vector_loop: int | None = None
    vectors: int = 1
    unroll_loop: int | None = None
    unroll: int = 1
    inside: tuple[int, ...] = ()

    @property
    def lanes(self) -> int:
        """Points of the vector loop in one block."""
        return self.width * self.vectors


@dataclass(frozen=True)
class Schedule:
    """A tile per nest, and up to three grid axes (x fastest). Grid loops are shared by all nests.

    `packed` are the bindings whose elements lie in panels (see `panels`), `staged` those of which each block of lanes
    first copies its panel into the worker's scratch memory: only a single nest may have them.
    """

    tiles: tuple[Tile, ...]
    grid: tuple[GridAxis, ...] = ()
    packed: tuple[int, ...] = ()
    staged: tuple[int, ...] = ()

    def to_attribute(self) -> mlir.DictAttr:
        tiles = [
            mlir.DenseI64ArrayAttr.get(
                [t.width, _or(t.vector_loop), t.vectors, _or(t.unroll_loop), t.unroll, *t.inside]
            )
            for t in self.tiles
        ]
        grid = [mlir.DenseI64ArrayAttr.get([axis.loop, axis.tile]) for axis in self.grid]
        entries: dict[str, mlir.Attribute] = {"tiles": mlir.ArrayAttr.get(tiles), "grid": mlir.ArrayAttr.get(grid)}
        for name in ("packed", "staged"):
            if getattr(self, name):
                entries[name] = mlir.DenseI64ArrayAttr.get(list(getattr(self, name)))
        return mlir.DictAttr.get(entries)

    @staticmethod
    def from_attribute(attribute: mlir.DictAttr, kernel: Kernel) -> Schedule:
        """Reads a schedule; the kernel gives the extents of the grid's loops."""
        tiles = []
        for values in mlir.ArrayAttr(attribute["tiles"]):
            width, vector_loop, vectors, unroll_loop, unroll, *inside = list(mlir.DenseI64ArrayAttr(values))
            tiles.append(Tile(width, _none(vector_loop), vectors, _none(unroll_loop), unroll, tuple(inside)))
        axes = [list(mlir.DenseI64ArrayAttr(values)) for values in mlir.ArrayAttr(attribute["grid"])]
        loops = kernel.nests[-1].loops if kernel.nests else []
        grid = [GridAxis(loop, loops[loop] if loop < len(loops) else Size(0), tile) for loop, tile in axes]
        packed, staged = (
            tuple(mlir.DenseI64ArrayAttr(attribute[name])) if name in attribute else () for name in ("packed", "staged")
        )
        return Schedule(tuple(tiles), tuple(grid), packed, staged)


def check_grid(schedule: Schedule, kernel: Kernel) -> str | None:
    """Why workgroups cannot divide the kernel so, or None."""
    if len(schedule.grid) > MAX_GRID_AXES:
        return f"{len(schedule.grid)} grid axes; at most {MAX_GRID_AXES} are allowed"
    allowed = range(kernel.common) if len(kernel.nests) > 1 else kernel.nests[0].parallel if kernel.nests else []
    for axis in schedule.grid:
        if axis.loop not in allowed:
            return f"grid over loop {axis.loop}; workgroups may only divide the loops {list(allowed)}"
        if axis.tile < 1:
            return f"a piece of {axis.tile} of loop {axis.loop}; it must be at least 1"
        if kernel.block and axis.loop == kernel.shared and axis.tile % kernel.block:
            return f"pieces of {axis.tile} of loop {axis.loop} do not hold whole blocks of {kernel.block}"
        for tile in schedule.tiles if schedule.packed else ():
            if tile.vector_loop == axis.loop and axis.tile % tile.lanes:
                return f"pieces of {axis.tile} of loop {axis.loop} do not hold whole panels of {tile.lanes}"
    return None


def _or(loop: int | None) -> int:
    return -1 if loop is None else loop


def _none(loop: int) -> int | None:
    return None if loop < 0 else loop
