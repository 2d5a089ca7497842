"""Tiles that hand values to each other: what one nest makes stays in the registers of its thread for the next ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch_mlir import ir as mlir

from eyas.codegen.common.emission.tile_body import with_index
from eyas.codegen.common.emission.tile_loads import Block, TileLoads
from eyas.codegen.common.kernel import Access, Nest, Storage
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.thread_tile import ThreadLoads, ThreadTile

Tile = list[list[mlir.Value]]
"""Values of rows and lanes."""
Held = dict[Storage, Callable[[int, int], mlir.Value]]
"""What a thread has of storages that are never in memory, by row and lane."""


class HeldTile(ThreadTile):
    """A tile of a nest between others: locals are read from and written to `held`. The first of its lanes has an index
    that is a multiple of `aligned`."""

    def __init__(
        self,
        memory: Memory,
        nest: Nest,
        held: Held,
        row_loop: int,
        lane_loop: int | None,
        depth: int = 1,
        aligned: int = 1,
    ):
        super().__init__(memory, nest, row_loop, lane_loop, depth)
        self.held, self.aligned = held, aligned

    def step(self, block: Block, loop: int, index: mlir.Value, old: Tile) -> Tile:
        """The sums of the first statement after one more step."""
        inner = replace(block, indices=with_index(block.indices, loop, index))
        return self._apply(self.nest.statements[0], inner, self._loads(inner), {}, [old])[0]

    def finish(self, block: Block, sums: Tile) -> None:
        """Runs what follows the first statement."""
        statements, made = self.nest.statements, {}
        self._keep(0, statements[0], block, [sums], made)
        for position, statement in list(enumerate(statements))[1:]:
            loads = self._loads(block)
            tiles = self._apply(statement, block, loads, made, self._initial(statement, block, loads))
            self._keep(position, statement, block, tiles, made)

    def _loads(self, block: Block, outer: TileLoads | None = None) -> ThreadLoads:
        return HeldLoads(self, block, outer)

    def _store(self, access: Access, block: Block, values: Tile) -> None:
        if access.storage.binding is None:
            self.held[access.storage] = in_registers(values)
        else:
            super()._store(access, block, values)


class HeldLoads(ThreadLoads):
    """Loads of such a tile."""

    def __init__(self, tile: HeldTile, block: Block, outer: TileLoads | None):
        super().__init__(tile.context, block, outer, tile.ahead, tile.aligned)
        self.held = tile.held

    def get(self, access: Access, row: int, vector: int) -> mlir.Value:
        source = self.held.get(access.storage)
        return super().get(access, row, vector) if source is None else source(row, vector)


def in_registers(tile: Tile) -> Callable[[int, int], mlir.Value]:
    """Reads a tile; what has one lane is the same for all."""
    return lambda row, lane: tile[row][lane if len(tile[row]) > 1 else 0]
