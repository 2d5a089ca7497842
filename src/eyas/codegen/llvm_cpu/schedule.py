"""How a kernel is run: the data that strategies choose, the emitter obeys, and a tuner varies.

`check_schedule` holds the constraints, with a message for each: the heuristic, the verifier and the tuner share them.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.strategy import GridAxis
from eyas.codegen.llvm_cpu.panels import why_not_packed, why_not_staged

MAX_WIDTH = 64
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
    for binding in schedule.packed:
        if (problem := why_not_packed(kernel, schedule.tiles, binding)) is not None:
            return f"binding {binding} cannot lie in panels: {problem}"
    if len(schedule.staged) > 1 or set(schedule.staged) & set(schedule.packed):
        return "only one binding can be staged, and not one that is packed"
    for binding in schedule.staged:
        if (problem := why_not_staged(kernel, schedule.tiles, binding)) is not None:
            return f"binding {binding} cannot be staged: {problem}"
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
        for tile in schedule.tiles if len(kernel.nests) == 1 else ():
            if tile.unroll_loop == axis.loop and axis.tile % tile.unroll:
                return f"pieces of {axis.tile} of loop {axis.loop} do not hold whole rows of {tile.unroll}"
            if schedule.packed and tile.vector_loop == axis.loop and axis.tile % tile.lanes:
                return f"pieces of {axis.tile} of loop {axis.loop} do not hold whole panels of {tile.lanes}"
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


def _or(loop: int | None) -> int:
    return -1 if loop is None else loop


def _none(loop: int) -> int | None:
    return None if loop < 0 else loop
