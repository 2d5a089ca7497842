"""Pieces of a row: neighbours that one thread has in registers, and the statements of a nest for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch_mlir import ir as mlir

from eyas.codegen.common.emission.tile_loads import Block, TileLoads
from eyas.codegen.common.kernel import Access, Nest, Storage
from eyas.codegen.gpu.thread_tile import ThreadLoads, ThreadTile

if TYPE_CHECKING:
    from eyas.codegen.gpu.row_walk import RowWalk

Lanes = list[mlir.Value]
"""A value for each neighbour of a piece, or one for all."""


@dataclass
class Piece:
    """Neighbours of a row that one thread has: group `number`, which is a part of the row only where `inside` holds."""

    number: mlir.Value
    inside: mlir.Value | None
    made: dict[Storage, Lanes] = field(default_factory=dict)
    loaded: dict[tuple, Lanes] = field(default_factory=dict)
    stores: list[Callable[[], None]] = field(default_factory=list)


class PieceTile(ThreadTile):
    """The statements of a nest for one piece of a row."""

    def __init__(self, walk: RowWalk, nest: Nest):
        lane = len(nest.loops) - 1 if len(nest.loops) > walk.plan.shared else None
        super().__init__(walk.memory, nest, lane_loop=lane)
        self.walk = walk
        self.piece: Piece | None = None

    def run_piece(self, piece: Piece) -> None:
        self.piece = piece
        self.run(self.walk.block(self.nest, piece))

    def run_row(self, piece: Piece, sums: Lanes) -> None:
        """The statements after the first, whose `sums` are known; all of them, where there are none."""
        self.piece, made = piece, {}
        block = self._row_block()
        statements = self.nest.statements
        if sums:
            self._keep(0, statements[0], block, [[[one]] for one in sums], made)
        for position, statement in list(enumerate(statements))[1 if sums else 0 :]:
            loads = self._loads(block)
            tiles = self._apply(statement, block, loads, made, self._initial(statement, block, loads))
            self._keep(position, statement, block, tiles, made)

    def olds(self) -> Lanes:
        """What a sum is added to."""
        self.piece = Piece(self.at.index(0), None)
        block = self._row_block()
        return [old[0][0] for old in self._initial(self.nest.statements[0], block, self._loads(block))]

    def sum_piece(self, piece: Piece, share: list[Lanes]) -> list[Lanes]:
        """The first statement with each neighbour added to its own sums."""
        self.piece, first = piece, self.nest.statements[0]
        block = self.walk.block(self.nest, piece)
        olds = [[[lane[output] for lane in share]] for output in range(len(share[0]))]
        results = self._apply(first, block, self._loads(block), {}, olds)
        return [[results[output][0][lane] for output in range(len(results))] for lane in range(len(share))]

    def loads_of(self, piece: Piece) -> PieceLoads:
        self.piece = piece
        return self._loads(self.walk.block(self.nest, piece))

    def _row_block(self) -> Block:
        own = len(self.nest.loops) - self.walk.plan.shared
        return Block([*self.walk.shared, *[None] * own], 1, 1, None)

    def _loads(self, block: Block, outer: TileLoads | None = None) -> PieceLoads:
        assert self.piece is not None
        return PieceLoads(self, block, outer, self.piece, self.walk.numbers)

    def _store(self, access: Access, block: Block, values: list[Lanes]) -> None:
        assert self.piece is not None
        self.piece.made[access.storage] = values[0]
        if access.storage.binding is not None:
            self.piece.stores.append(lambda: self._store_all(access, block, values))


class PieceLoads(ThreadLoads):
    """Loads of a piece: what was made or loaded before is in registers."""

    def __init__(
        self, tile: PieceTile, block: Block, outer: TileLoads | None, piece: Piece, numbers: dict[Storage, Lanes]
    ):
        super().__init__(tile.context, block, outer, None)
        self.nest, self.piece, self.numbers = tile.nest, piece, numbers

    def get(self, access: Access, row: int, vector: int) -> mlir.Value:
        made = self.piece.made.get(access.storage) or self.numbers.get(access.storage)
        if made is not None:
            return made[vector if len(made) > 1 else 0]
        if not can_keep(access):
            return super().get(access, row, vector)
        key = (self.nest.loops, access.storage, access.offset, access.strides)
        lanes = self.block.vectors if self._depends(access, self.lane_loop) else 1
        if key not in self.piece.loaded:
            self.piece.loaded[key] = [super(PieceLoads, self).get(access, row, lane) for lane in range(lanes)]
        return self.piece.loaded[key][vector if lanes > 1 else 0]


def can_keep(access: Access) -> bool:
    """Whether an access has no conditions, so that where it reads from says what it reads."""
    return not access.guards and access.otherwise is None
