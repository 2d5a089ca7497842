"""Rows whose windows lie inside of the image."""

from __future__ import annotations

import itertools

from eyas.codegen.common.windows import Window
from eyas.codegen.vmvx.emit_sum import end_inside, first_inside, why_no_rows


def test_rows_inside_are_those_whose_taps_all_are():
    for extent, taps, step, dilation, padding in itertools.product((1, 5, 8), (1, 3, 5), (1, 2), (1, 2), (0, 1, 3)):
        window = Window(tap=1, dilation=dilation, steps={0: step}, shift=-padding, extent=extent)
        first, end = first_inside(window, 0), end_inside(window, 0, taps)
        rows = (extent + 2 * padding - dilation * (taps - 1) - 1) // step + 1
        for row in range(max(rows, 0)):
            positions = [row * step - padding + dilation * tap for tap in range(taps)]
            assert (first <= row < end) == all(0 <= at < extent for at in positions), (window, taps, row)


def test_rows_along_two_padded_loops_or_padded_columns_are_refused():
    both = Window(tap=3, dilation=1, steps={0: 1, 1: 1}, shift=-1, extent=8)
    assert why_no_rows([both], 2, 0) and why_no_rows([both], 1, 2) and why_no_rows([both], 2, None) is None
