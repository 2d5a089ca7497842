"""Products that hand rows to each other through softmax or other row-wise ops: attention.

A block of query rows goes through all nests before the next one, so that its scores stay in the first-level cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.strategies.attention import BlocksOfRows
from eyas.codegen.vmvx.emit import NestEmitter
from eyas.codegen.vmvx.emit_product import ProductEmitter
from eyas.codegen.vmvx.products import Product, product_of
from eyas.codegen.vmvx.strategies.contraction import product_tile
from eyas.codegen.vmvx.strategies.nests import NestStrategy
from eyas.codegen.vmvx.strategies.rows import choose_tile
from eyas.targets import Target


@dataclass(frozen=True)
class Attention(BlocksOfRows, NestStrategy):
    @classmethod
    def tile(cls, kernel: Kernel, number: int, target: Target) -> Tile:
        del target
        return tile_of_rows(kernel, number)

    @property
    def emitters(self) -> list[type[NestEmitter]]:
        pairs = zip(self.kernel.nests, self.schedule.tiles, strict=True)
        return [ProductEmitter if is_product(nest, tile) else NestEmitter for nest, tile in pairs]


def is_product(nest: Nest, tile: Tile) -> bool:
    """Whether a nest under a tile is a product for the machine's instruction."""
    lane = tile.loop
    return lane is not None and isinstance(product_of(nest, lane, tile.unroll_loop), Product)


def tile_of_rows(kernel: Kernel, number: int) -> Tile:
    """The tile of a nest whose rows run in blocks with those of others."""
    nest = kernel.nests[number]
    common = kernel.common_of(number)
    own = [loop for loop in nest.parallel if loop >= common]
    if number >= kernel.first and nest.reductions:
        tile = product_tile(nest, own, rows=[kernel.shared, *own] if kernel.block else own, block=kernel.block)
        if not isinstance(tile, str):
            return tile
    return choose_tile(kernel, number)
