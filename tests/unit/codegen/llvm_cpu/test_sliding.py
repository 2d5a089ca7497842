"""Tiles along the rows of sliding windows."""

from __future__ import annotations

from eyas.codegen.common.kernel import Nest, Statement
from eyas.codegen.common.schedule import Tile
from eyas.codegen.common.sizes import Size
from eyas.codegen.common.windows import Window
from eyas.codegen.llvm_cpu.sliding import row_tiles, unrolled_reductions

ROWS, CHANNELS, DOWN, ACROSS = range(4)


def nest(width: int, taps: int = 3) -> Nest:
    statement = Statement(None, [], [], [], reductions=(DOWN, ACROSS))
    return Nest([Size(width), Size(16), Size(taps), Size(taps)], [statement])


def across(width: int, padding: int) -> Window:
    return Window(tap=ACROSS, dilation=1, steps={ROWS: 1}, shift=-padding, extent=width)


def test_tiles_cover_each_row_once_and_edges_stand_alone():
    tiles = row_tiles(nest(30), [across(30, 1)], Tile(16, CHANNELS, 1, ROWS, 7))
    assert tiles == [(0, 7, 0), (7, 7, 3), (28, 2, 0)]


def test_without_padding_all_tiles_are_one_loop():
    assert row_tiles(nest(28), [], Tile(16, CHANNELS, 1, ROWS, 7)) == [(0, 7, 4)]


def test_one_tile_may_be_both_edges():
    assert row_tiles(nest(7), [across(7, 1)], Tile(16, CHANNELS, 1, ROWS, 7)) == [(0, 7, 0)]


def test_taps_whose_range_depends_on_the_position_are_loops():
    down = Window(tap=DOWN, dilation=1, steps={5: 1}, shift=-1, extent=30)
    assert unrolled_reductions(nest(30), [across(30, 1), down], ROWS, 25) == (ACROSS,)
    assert unrolled_reductions(nest(30), [across(30, 1)], ROWS, 25) == (DOWN, ACROSS)
    assert unrolled_reductions(nest(30, taps=40), [across(30, 1)], ROWS, 25) == (ACROSS,)
