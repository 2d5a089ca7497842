"""Prefetch of weights: while rows run through one panel, the next one comes from memory.

A panel is read once from memory and then, for the other rows, from a cache; so without this the first rows wait for the
memory, and then the memory waits for the other rows. Each block of rows prefetches its share of the next panel, one or
two lines in each step of the reduction. Hardware does not do this: it follows a stream by some kilobytes only.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch_mlir import ir as mlir
from torch_mlir.dialects import arith

from eyas.codegen.common.emission.tile_loads import TileLoads
from eyas.codegen.common.kernel import Access, Nest
from eyas.codegen.common.schedule import Tile
from eyas.codegen.llvm_cpu.memory import Memory

# With more blocks of rows than this to a panel there is nothing to gain.
_MAX_ROW_BLOCKS = 64


@dataclass(frozen=True)
class PanelPrefetch:
    """The weights of a nest that lie in panels, and how many lines of the next panel a step asks for."""

    weights: Access
    tile: Tile
    lane_loop: int
    row_loop: int
    lines: int
    ahead: int = 1
    """How many panels after the one that is read."""

    @staticmethod
    def of(nest: Nest, weights: Access, tile: Tile, pieces: dict[int, int], ahead: int = 1) -> PanelPrefetch | None:
        """`pieces` are the points of loops that a workgroup has. None where it would not pay, or nobody wants it."""
        lanes, rows = tile.loop, tile.unroll_loop
        if not ahead or lanes is None or rows is None or weights.lane_stride is None:
            return None
        total = 1
        for loop in (*tile.inside, rows):
            extent = nest.loops[loop].static
            if not extent:
                return None
            blocks = -(-min(extent, pieces.get(loop, extent)) // (tile.unroll if loop == rows else 1))
            total *= blocks
        if not 2 <= total <= _MAX_ROW_BLOCKS:
            return None
        return PanelPrefetch(weights, tile, lanes, rows, -(-tile.vectors // blocks), ahead)

    def emit(self, memory: Memory, loads: TileLoads, first_row: mlir.Value) -> None:
        """Asks for this step's lines. `first_row` is where the rows of the workgroup begin.

        The next panel is that of the next lanes. After the last of a workgroup it is another's, which will be glad to
        find it; after the last of all there is nothing, and asking for that does no harm.
        """
        row = loads.block.indices[self.row_loop]
        assert row is not None
        block = arith.DivUIOp(arith.SubIOp(row, first_row).result, memory.constant_index(self.tile.unroll)).result
        last = memory.constant_index(self.tile.vectors - self.lines)
        line = arith.MinUIOp(memory.multiply(block, self.lines), last).result
        distance = memory.size(self.weights.strides[self.lane_loop] * (self.tile.lanes * self.ahead))
        offset = memory.add(distance, memory.multiply(line, self.tile.width))
        start = memory.add(loads.address(self.weights, 0, 0), offset)
        for number in range(self.lines):
            memory.prefetch(self.weights.storage, memory.add(start, memory.constant_index(number * self.tile.width)))
