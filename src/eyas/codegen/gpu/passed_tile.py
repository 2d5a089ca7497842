"""Products whose subgroups load each row once: a lane has one of the rows in registers, and hands it to the others.

All threads of a subgroup have the same rows and neighbouring columns. Elsewhere each of them loads all rows, and caches
make up for that; a driver that computes on a CPU loads lane by lane, so that the same number is loaded as often as
there are lanes. Here lane `l` loads row `l`, and a step of the sum takes row `r` from lane `r`:

    mine = rows[lane][k]                       # one load, subgroup rows
    sums[r][c] += broadcast(mine, r) * columns[k][c]
"""

from __future__ import annotations

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.emission.tile_body import with_index
from eyas.codegen.common.emission.tile_loads import Block, TileContext, TileLoads
from eyas.codegen.common.kernel import Access, Nest
from eyas.codegen.common.sizes import ZERO
from eyas.codegen.gpu.memory import Memory
from eyas.codegen.gpu.shuffle import broadcast, can_shuffle
from eyas.codegen.gpu.thread_tile import Ahead, ThreadLoads, ThreadTile


class PassedTile(ThreadTile):
    """A tile of a thread whose subgroup, of `subgroup` threads, has the same rows and is here as a whole."""

    def __init__(self, memory: Memory, nest: Nest, loops: tuple[int, int], depth: int, subgroup: int):
        super().__init__(memory, nest, *loops, depth)
        self.subgroup = subgroup
        self.lane = arith.RemUIOp(memory.at.thread, memory.at.index(subgroup)).result

    def _loads(self, block: Block, outer: TileLoads | None = None) -> ThreadLoads:
        if outer is None:
            return super()._loads(block)
        return PassedLoads(self.context, block, outer, self.ahead, self.subgroup, self.lane)


class PassedLoads(ThreadLoads):
    """Loads inside of the sum, where all threads of a subgroup are at the same step."""

    def __init__(
        self,
        context: TileContext,
        block: Block,
        outer: TileLoads,
        ahead: Ahead | None,
        subgroup: int,
        lane: mlir.Value,
    ):
        super().__init__(context, block, outer, ahead)
        self.subgroup, self.lane = subgroup, lane
        self.mine: dict[tuple[int, int, int], list[mlir.Value]] = {}

    def get(self, access: Access, row: int, vector: int) -> mlir.Value:
        if not is_passed(access, self.row_loop, self.lane_loop):
            return super().get(access, row, vector)
        key = (id(access), row, 0)
        if key not in self.values:
            first = row - row % self.subgroup
            mine = self._mine(access, first)
            self.values[key] = broadcast(self.memory.at, mine, row - first, self.subgroup)
        return self.values[key]

    def _mine(self, access: Access, first: int) -> mlir.Value:
        """The element of the row of this lane, of the rows from `first` on; the last lanes may have the same row."""
        ahead = self.ahead if self.ahead is not None and self._is_ahead(access, self.ahead) else None
        found = ahead.loaded if ahead is not None else self.mine
        if (key := (id(access), first, 0)) not in found:
            memory, rows = self.memory, min(self.subgroup, self.block.rows - first)
            lane = self.lane
            if rows < self.subgroup:
                lane = arith.MinUIOp(lane, memory.at.index(rows - 1)).result
            assert self.row_loop is not None
            if access.guards:
                found[key] = [self._guarded(access, self.row_loop, memory.add(lane, memory.at.index(first)))]
            else:
                down = memory.scaled(lane, access.strides[self.row_loop])
                address = memory.add(self.address(access, first, 0), down)
                if ahead is not None:
                    found[key] = memory.load_vector(access.storage, address, ahead.count)
                else:
                    found[key] = [memory.load(access.storage, address, 1, ZERO, None)]
        return found[key][0 if ahead is None else ahead.step]

    def _guarded(self, access: Access, row_loop: int, row: mlir.Value) -> mlir.Value:
        """An element of one row, as many after the first of the tile, if it is inside of its tensor."""
        index = self.block.indices[row_loop]
        assert index is not None
        at = with_index(self.block.indices, row_loop, self.memory.add(index, row))
        alone = TileContext(self.memory, None, None)
        return ThreadLoads(alone, Block(at, 1, 1, None), None, None).get(access, 0, 0)


def is_passed(access: Access, row: int | None, column: int | None) -> bool:
    """Whether lanes can hand what an access reads to each other: it moves along the rows alone, and is a number."""
    if row is None or column is None or access.lane_stride is not None or not can_shuffle(access.storage.element):
        return False
    if access.storage.start or isinstance(access.otherwise, Access):
        return False
    guarded = any(guard.coefficients[column] for guard in access.guards)
    return access.strides[row] != ZERO and access.strides[column] == ZERO and not guarded
