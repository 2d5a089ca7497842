"""Matrix products and convolutions: tiles of sums, with weights in panels.

Columns are where the right operand changes, rows where the left one does. Blocks of columns are outermost within a
workgroup, so that a panel is read from memory once and all rows go past it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from eyas.codegen.common.analysis import Analysis
from eyas.codegen.common.distribute import distribute_panels, panel_order
from eyas.codegen.common.kernel import Kernel, Nest
from eyas.codegen.common.panels import why_not_packed
from eyas.codegen.common.schedule import Panels, Schedule, Tile
from eyas.codegen.common.sizes import ONE, ZERO, Size
from eyas.codegen.common.sizes import product as product_of_sizes
from eyas.codegen.common.space import Knob
from eyas.codegen.common.strategies.nests import NO_NESTS
from eyas.codegen.common.windows import Window
from eyas.codegen.vmvx.emit import NestEmitter
from eyas.codegen.vmvx.emit_product import ProductEmitter
from eyas.codegen.vmvx.emit_sum import why_no_rows, without_padding
from eyas.codegen.vmvx.products import STEPS, Product, product_of
from eyas.codegen.vmvx.strategies.nests import NestStrategy
from eyas.module.vmvx_isa import PANEL
from eyas.targets import Target

# Columns that a workgroup has at least, where there are so many: the block of a wide machine.
_COLUMNS = 64
# Copying a column costs as much as a few rows of work on it.
_MIN_COPIED_ROWS = 4
# How many rows a tile of sums may have, the best first.
_ROWS = (8, 7, 6, 5, 4, 3, 2, 1)


@dataclass(frozen=True)
class Contraction(NestStrategy):
    name: ClassVar[str] = "contraction"

    @classmethod
    def choose(cls, found: Analysis, target: Target) -> Contraction | str:
        kernel = found.default
        if isinstance(kernel, str):
            return NO_NESTS
        if len(kernel.nests) != 1:
            return "more than one loop nest"
        stripped = without_padding(kernel.nests[0])
        if isinstance(stripped, str):
            return stripped
        nest, windows = stripped
        tile = product_tile(nest, nest.parallel, windows)
        if isinstance(tile, str):
            return tile
        grid = distribute_panels(kernel, replace(tile, width=_COLUMNS), target)
        chosen = cls(kernel, Schedule((tile,), grid))
        rows = product_of_sizes([nest.loops[loop] for loop in (tile.unroll_loop, *tile.inside) if loop is not None])
        if chosen.is_copied and rows.static is not None and rows.static < _MIN_COPIED_ROWS:
            return f"{rows} rows, too few to copy the columns into panels for"
        return chosen.tried()

    @classmethod
    def check(cls, schedule: Schedule, kernel: Kernel) -> str | None:
        if len(kernel.nests) != 1:
            return "tiles: the dispatch has more than one loop nest"
        return super().check(schedule, kernel)

    @property
    def emitters(self) -> list[type[NestEmitter]]:
        return [ProductEmitter]

    def cut_order(self, tiles: Sequence[Tile]) -> Sequence[int]:
        return [loop for loop in panel_order(self.kernel.nests[0], tiles[0]) if loop is not None]

    def lane_step(self, tile: Any) -> Any:
        del tile
        return _COLUMNS

    def own_knobs(self, target: Target) -> list[Knob]:
        return [
            Knob("inside", (0, 1), "1: loops on which the weights do not depend run inside of a block of columns"),
            Knob("panels", (0, 1), "1: weights that are constant lie in panels"),
        ]

    def own_point(self) -> dict[str, int]:
        return {"inside": int(bool(self.schedule.tiles[0].inside)), "panels": self.schedule.panels}

    def own_schedule(self, schedule: Schedule, point: Mapping[str, int]) -> Schedule:
        (tile,) = schedule.tiles
        stripped = without_padding(self.kernel.nests[0])
        nest = self.kernel.nests[0] if isinstance(stripped, str) else stripped[0]
        found = "" if tile.loop is None else product_of(nest, tile.loop, tile.unroll_loop)
        if point["inside"] and isinstance(found, Product):
            apart = (tile.loop, tile.unroll_loop)
            inside = [loop for loop in nest.parallel if loop not in apart and found.right.strides[loop] == ZERO]
            tile = replace(tile, inside=tuple(inside))
        return replace(schedule, tiles=(tile,), panels=point["panels"])

    @property
    def product(self) -> Product:
        tile = self.schedule.tiles[0]
        assert tile.loop is not None
        stripped = without_padding(self.kernel.nests[0])
        assert not isinstance(stripped, str)
        found = product_of(stripped[0], tile.loop, tile.unroll_loop)
        assert isinstance(found, Product)
        return found

    @property
    def is_copied(self) -> bool:
        """Whether each block of columns is first copied into panels."""
        lane, found = self.schedule.tiles[0].loop, self.product
        assert lane is not None
        return STEPS[found.kind] > 1 or found.right.strides[lane] != ONE

    @property
    def packable(self) -> tuple[Panels, ...]:
        if self.is_copied or not self.schedule.panels:
            return ()
        binding, (tile,) = self.product.right.storage.binding, self.schedule.tiles
        if binding is None or why_not_packed(self.kernel, self.schedule.tiles, binding):
            return ()
        if any(axis.loop == tile.loop and axis.tile % tile.lanes for axis in self.schedule.grid):
            return ()
        return () if binding in self.schedule.packed_bindings else (Panels(binding, tile.lanes),)


def product_tile(
    nest: Nest, loops: list[int], windows: Sequence[Window] = (), rows: list[int] | None = None, block: int = 0
) -> Tile | str:
    """Columns and rows among some parallel loops of a nest that begins with a product; or why there are none. With a
    `block`, the first loop for rows runs in blocks of so many."""
    reason = "no columns"
    for lane in reversed(loops):
        found = product_of(nest, lane, None)
        if isinstance(found, str):
            reason = found
            continue
        if nest.loops[lane] == ONE:
            continue
        outputs = [output for one in nest.statements for output in one.outputs if output is not None]
        if any(output.strides[lane] != ONE for output in outputs) and found.right.strides[lane] != ONE:
            reason = "neither the result nor an operand has neighbours along the columns"
            continue
        candidates = [
            loop
            for loop in reversed(loops if rows is None else rows)
            if loop != lane and nest.loops[loop] != ONE and found.right.strides[loop] == ZERO
            and found.left.strides[loop] != ZERO and why_no_rows(list(windows), lane, loop) is None
        ]  # fmt: skip
        extents = {loop: Size(block) if rows and block and loop == rows[0] else nest.loops[loop] for loop in candidates}
        row = max(candidates, key=lambda loop: _rows_score(extents[loop]), default=None)
        count = 1 if row is None else best_rows(extents[row])
        apart = (lane, row)
        inside = tuple(loop for loop in loops if loop not in apart and found.right.strides[loop] == ZERO)
        return Tile(PANEL, lane, 1, row, count, inside)
    return reason


def best_rows(extent: Size) -> int:
    """Rows of a tile that divide a loop into few tiles of nearly one size."""
    if not extent.static:
        return _ROWS[0]
    tiles = -(-extent.static // _ROWS[0])
    return -(-extent.static // tiles)


def _rows_score(extent: Size) -> float:
    """How full the tiles along a loop are, and that later loops come first when they are as good."""
    if not extent.static:
        return float(_ROWS[0])
    return extent.static / -(-extent.static // _ROWS[0])
