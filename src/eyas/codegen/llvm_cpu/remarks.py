"""What a schedule leaves on the table, in sentences for `eyas explain`."""

from __future__ import annotations

from collections.abc import Iterator

from torch_mlir import ir as mlir

from eyas.codegen.common.kernel import Access, Kernel, Nest
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import Size
from eyas.targets import Target

# A tile that does this part of useful work is full enough.
_FULL = 0.97
# Multiply-adds have a latency of four to five cycles, and most cores start two in each.
_SUMS_IN_FLIGHT = 8


def remarks(kernel: Kernel, schedule: Schedule, target: Target) -> list[str]:
    """About the nest with the most work, where nearly all of the time goes."""
    if not kernel.nests or len(schedule.tiles) != len(kernel.nests):
        return []
    nest, tile = max(zip(kernel.nests, schedule.tiles, strict=True), key=lambda pair: pair[0].points or 0)
    return list(_remarks(nest, tile, target))


def _remarks(nest: Nest, tile: Tile, target: Target) -> Iterator[str]:
    if tile.width == 1:
        yield "nothing runs in vectors: no loop walks through memory element by element, or the types have none"
    else:
        yield from _about_lanes(nest, tile, target)
    if tile.unroll_loop is not None and tile.unroll > 1:
        yield from _remainder("rows", nest.loops[tile.unroll_loop], tile.unroll)
    if not nest.statements[0].reductions:
        return
    sums = tile.vectors * tile.unroll
    if sums < _SUMS_IN_FLIGHT and tile.width > 1:
        yield f"{sums} vectors of sums at once; {_SUMS_IN_FLIGHT} would hide their latency"
    if any(isinstance(source, Access) and source.guards for source in nest.statements[0].inputs):
        yield "reads are tested for padding"


def _about_lanes(nest: Nest, tile: Tile, target: Target) -> Iterator[str]:
    loop = tile.loop
    assert loop is not None
    full = target.lanes(max([32, *(_bits(type_) for one in nest.statements for type_ in one.element_types)]))
    extent = nest.loops[loop]
    if tile.width < full:
        yield f"{tile.width} of {full} lanes: the loop has {extent.static} steps"
    yield from _remainder("lanes", extent, tile.lanes)
    jumps = {source.stride_of_lanes(loop) for source in _inputs(nest)} - {Size(0), Size(1)}
    if jumps:
        apart = ", ".join(sorted(str(one.static) if one.is_static else "?" for one in jumps))
        yield f"neighbours are not neighbours in memory: lanes read {apart} elements apart"


def _remainder(what: str, extent: Size, step: int) -> Iterator[str]:
    if not extent.static or extent.static % step == 0:
        return
    full = extent.static / (-(-extent.static // step) * step)
    if full < _FULL:
        yield f"{what}: {extent.static} in tiles of {step} leave {extent.static % step}, tiles are {full:.0%} full"


def _inputs(nest: Nest) -> list[Access]:
    return [source for one in nest.statements for source in one.inputs if isinstance(source, Access)]


def _bits(type_: mlir.Type) -> int:
    return type_.width if isinstance(type_, mlir.FloatType | mlir.IntegerType) else 64
