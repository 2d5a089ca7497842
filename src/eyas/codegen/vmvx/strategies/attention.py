"""Products that hand rows to each other through softmax or other row-wise ops: attention.

A block of query rows goes through all nests before the next one, so that its scores stay in the first-level cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from eyas.codegen.common.distribute import distribute
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import Schedule, Tile
from eyas.codegen.common.sizes import product
from eyas.codegen.common.strategy import GridAxis
from eyas.codegen.vmvx.emit import NestEmitter
from eyas.codegen.vmvx.emit_product import ProductEmitter
from eyas.codegen.vmvx.products import Product, product_of
from eyas.codegen.vmvx.strategies.contraction import product_tile
from eyas.codegen.vmvx.strategies.nests import NestStrategy
from eyas.codegen.vmvx.strategies.rows import choose_tile
from eyas.targets import Target

_ENOUGH_WORKGROUPS = 4


@dataclass(frozen=True)
class Attention(NestStrategy):
    name: ClassVar[str] = "attention"

    @classmethod
    def choose(cls, kernel: Kernel | None, target: Target) -> Attention | str:
        del target
        if kernel is None:
            return "not expressible as loop nests"
        if not kernel.block:
            return "no rows that go through several nests in blocks"
        tiles = [_tile(kernel, number) for number in range(len(kernel.nests))]
        return cls(kernel, Schedule(tuple(tiles), _grid(kernel, tiles))).tried()

    @property
    def emitters(self) -> list[type[NestEmitter]]:
        pairs = zip(self.kernel.nests, self.schedule.tiles, strict=True)
        return [ProductEmitter if _is_product(nest, tile) else NestEmitter for nest, tile in pairs]


def _is_product(nest: Nest, tile: Tile) -> bool:
    lane = tile.vector_loop
    return lane is not None and isinstance(product_of(nest, lane, tile.unroll_loop), Product)


def _tile(kernel: Kernel, number: int) -> Tile:
    nest = kernel.nests[number]
    common = kernel.common_of(number)
    own = [loop for loop in nest.parallel if loop >= common]
    if number >= kernel.first and nest.reductions:
        tile = product_tile(nest, own, rows=[kernel.shared, *own], block=kernel.block)
        if not isinstance(tile, str):
            return tile
    return choose_tile(kernel, number)


def _grid(kernel: Kernel, tiles: list[Tile]) -> tuple[GridAxis, ...]:
    """One head a workgroup, so that what all of its blocks read is made once; rows are cut where heads are few."""
    nest = kernel.nests[-1]
    heads = [GridAxis(loop, nest.loops[loop], 1) for loop in range(min(kernel.shared, 3))]
    count = product([axis.extent for axis in heads]).static
    if count is None or count < _ENOUGH_WORKGROUPS:
        return distribute(kernel, tiles)
    return tuple(reversed(heads))
